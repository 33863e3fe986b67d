// Rows of global memory: where a race detector keeps what has been done to them, and their bytes
// as they were.
#include <algorithm>
#include <bit>
#include <cstring>

#include "gpu/simt/memory/global_races.hpp"

namespace attest::simt {

// The bytes of a row within its region.
void GlobalRaces::keep(const Region& region, std::size_t row, Chunk& chunk) {
  const std::uint64_t bit = std::uint64_t{1} << row % kChunkRows;
  if ((chunk.kept & bit) != 0) return;
  chunk.kept |= bit;
  if (!chunk.before) chunk.before = std::make_unique<std::byte[]>(kChunkRows * kRowBytes);
  const auto [begin, end] = region.bytes_of(row);
  std::copy(begin, end, &chunk.before[row % kChunkRows * kRowBytes]);
}

void GlobalRaces::restore_memory() const {
  for (const Region& region : regions_) {
    for (std::size_t k = 0; k < region.chunks.size(); ++k) {
      const Chunk& chunk = region.chunks[k];
      for (std::uint64_t kept = chunk.kept; kept != 0; kept &= kept - 1) {
        const auto row = static_cast<std::size_t>(std::countr_zero(kept));
        const auto [begin, end] = region.bytes_of(k * kChunkRows + row);
        // The launch may write there.
        std::memcpy(const_cast<std::byte*>(begin), &chunk.before[row * kRowBytes],
                    static_cast<std::size_t>(end - begin));
      }
    }
  }
}

GlobalRaces::Region* GlobalRaces::region_of(const std::byte* byte) {
  const auto region = std::find_if(regions_.begin(), regions_.end(), [byte](const Region& each) {
    return byte >= each.begin && byte < each.end;
  });
  return region == regions_.end() ? nullptr : &*region;
}

GlobalRaces::Held GlobalRaces::hold(Region& region, std::size_t row,
                                    std::unique_lock<std::mutex>& lock) {
  Chunk& chunk = region.chunks[row / kChunkRows];
  if (lock.mutex() != &chunk.lock) {
    if (lock) lock.unlock();
    lock = std::unique_lock(chunk.lock);
  }
  if (!chunk.rows) {
    chunk.rows = std::make_unique<Row[]>(kChunkRows);
    chunk.part_bytes.fill(kRowBytes);
  }
  return {chunk.rows[row % kChunkRows], chunk.part_bytes[row % kChunkRows]};
}

void GlobalRaces::Held::take_apart(std::size_t bytes) const {
  if (row.parts && bytes >= part_bytes) return;
  bytes = std::min<std::size_t>(bytes, part_bytes);
  const std::size_t count = kRowBytes / bytes;
  auto parts = std::make_unique<Element[]>(count);
  for (std::size_t k = 0; k < count; ++k) {
    if (row.parts) {
      parts[k] = row.parts[k * bytes / part_bytes];
    } else {
      parts[k].reads = row.reads;
    }
  }
  row.parts = std::move(parts);
  part_bytes = static_cast<std::uint8_t>(bytes);
}

}  // namespace attest::simt
