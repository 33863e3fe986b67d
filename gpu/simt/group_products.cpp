// The matrix products of a warpgroup.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>

#include "core/dtype.hpp"
#include "gpu/simt/block.hpp"
#include "gpu/simt/tensor_copy.hpp"
#include "gpu/simt/warpgroup.hpp"

namespace attest::simt {
namespace {

constexpr std::uint32_t kRows = 64, kInner = 16, kPiece = 16, kElements = 8;
constexpr std::uint32_t kFragments = 4;  // words of A that a lane has
constexpr std::uint32_t kWarps = kWarpgroupLanes / kWarpLanes;

struct Operand {
  MatrixDescriptor matrix;
  Major major;
  std::uint32_t rows;
};

// function(row, k, address) for each piece of 8 elements.
template <class Function>
void for_each_piece(const Operand& operand, Function&& function) {
  const bool by_k = operand.major == Major::k;
  for (std::uint32_t row = 0; row < operand.rows; row += by_k ? 1 : kElements) {
    for (std::uint32_t k = 0; k < kInner; k += by_k ? kElements : 1) {
      const std::uint32_t offset = piece_offset(operand.matrix, operand.major, row, k);
      function(row, k, swizzled(operand.matrix.start + offset, operand.matrix.swizzle));
    }
  }
}

template <class Function>
void for_each_operand(const GroupProductCall& call, Function&& function) {
  if (call.a == nullptr) function(Operand{decode(call.a_matrix), call.a_major, kRows});
  function(Operand{decode(call.b_matrix), call.b_major, call.columns});
}

float value_of(std::uint16_t bits, Half type) {
  return type == Half::bf16 ? float_from_bf16(bits) : float_from_f16(bits);
}

std::vector<float> load(const SharedMemory& shared, const Operand& operand, Half type) {
  std::vector<float> values(std::size_t{operand.rows} * kInner);
  for_each_piece(operand, [&](std::uint32_t row, std::uint32_t k, std::uint32_t address) {
    std::array<std::uint16_t, kElements> bits{};
    std::memcpy(bits.data(), shared.at(address, kPiece), kPiece);
    for (std::uint32_t e = 0; e < kElements; ++e) {
      const bool by_k = operand.major == Major::k;
      const std::size_t at =
          by_k ? std::size_t{row} * kInner + k + e : std::size_t{row + e} * kInner + k;
      values[at] = value_of(bits[e], type);
    }
  });
  return values;
}

// PTX ISA, wgmma.mma_async, register fragments of A: each warp has 16 rows, as mma.m16n8k16.
std::vector<float> load_fragments(const std::vector<std::uint32_t>& a, Half type) {
  std::vector<float> values(std::size_t{kRows} * kInner);
  for (std::size_t lane = 0; lane < kWarpgroupLanes; ++lane) {
    const std::size_t first = lane / kWarpLanes * 16 + lane % kWarpLanes / 4, pair = lane % 4 * 2;
    for (std::size_t word = 0; word < kFragments; ++word) {
      for (std::size_t part = 0; part < 2; ++part) {
        const std::size_t row = first + 8 * (word % 2), k = pair + part + 8 * (word / 2);
        const auto bits = static_cast<std::uint16_t>(a[lane * kFragments + word] >> 16 * part);
        values[row * kInner + k] = value_of(bits, type);
      }
    }
  }
  return values;
}

bool overlaps(const void* pointer, std::size_t bytes, const void* registers, std::size_t size) {
  const auto a = reinterpret_cast<std::uintptr_t>(pointer);
  const auto b = reinterpret_cast<std::uintptr_t>(registers);
  return registers != nullptr && a < b + size && b < a + bytes;
}

constexpr std::uintptr_t kWord = 4;

// Stops the block where a piece's place keeps a product from being carried out.
void require_places(Block& block, const Operand& operand, SourceLine where) {
  constexpr std::uint32_t kPattern = 128 * 8;  // PTX ISA: where the widest swizzle repeats
  const std::uint32_t pattern =
      kPattern >> (3 - static_cast<std::uint32_t>(operand.matrix.swizzle));
  const std::uint32_t line = pattern / 8;
  if (operand.matrix.base_offset != 0 ||
      (operand.matrix.swizzle != Swizzle::none && operand.matrix.start % pattern >= line)) {
    block.stop(Fault::misaligned,
               "a matrix at byte " + std::to_string(operand.matrix.start) +
                   " of shared memory begins amid the lines of its swizzle, which is not emulated",
               where);
  }
  for_each_piece(operand, [&](std::uint32_t row, std::uint32_t k, std::uint32_t address) {
    if (block.shared().at(address, kPiece) != nullptr) return;
    block.stop(Fault::out_of_bounds,
               "wgmma reads row " + std::to_string(row) + ", k " + std::to_string(k) + " at byte " +
                   std::to_string(address) + " of shared memory, where there is no variable",
               where);
  });
}

}  // namespace

bool GroupProductCall::is_like(const GroupProductCall& other) const {
  const auto key = [](const GroupProductCall& call) {
    return std::tuple(call.a_matrix, call.b_matrix, call.columns, call.type, call.a_major,
                      call.b_major, call.adds, call.a == nullptr);
  };
  return key(*this) == key(other);
}

void GroupProducts::fence() {
  fenced_ = true;
  for (auto& words : touched_) words.clear();
}

void GroupProducts::require_fence(Block& block, const Calls& calls, SourceLine where) const {
  if (!fenced_) {
    block.report_once({Fault::missing_fence, "no wgmma_fence() before the first product"}, where);
    return;
  }
  for (std::size_t lane = 0; lane < calls.size(); ++lane) {
    const auto used = [&](const void* registers, std::size_t words) {
      const auto first = reinterpret_cast<std::uintptr_t>(registers) / kWord;
      for (std::size_t k = 0; registers != nullptr && k < words; ++k) {
        if (touched_[lane].count(first + k) != 0) return true;
      }
      return false;
    };
    if (!used(calls[lane].d, calls[lane].columns / 2) && !used(calls[lane].a, kFragments)) continue;
    block.report_once({Fault::missing_fence, "lane " + std::to_string(lane) +
                                                 " of the warpgroup has used registers " +
                                                 "of this product since the last wgmma_fence()"},
                      where);
    return;
  }
}

std::list<GroupProducts::Accumulators>::iterator GroupProducts::take_accumulators(
    const Calls& calls) {
  const auto known =
      std::find_if(accumulators_.begin(), accumulators_.end(), [&](const Accumulators& each) {
        return each.d[0] == calls[0].d && each.columns == calls[0].columns;
      });
  if (known != accumulators_.end()) return known;
  Accumulators made;
  made.columns = calls[0].columns;
  for (std::size_t lane = 0; lane < calls.size(); ++lane) {
    float* const d = made.d[lane] = calls[lane].d;
    made.values.insert(made.values.end(), d, d + made.columns / 2);
    std::fill_n(d, made.columns / 2, std::numeric_limits<float>::quiet_NaN());
  }
  return accumulators_.insert(accumulators_.end(), std::move(made));
}

void GroupProducts::begin(Block& block, std::uint32_t group, const Calls& calls, SourceLine where) {
  for (const GroupProductCall& call : calls) {
    if (call.is_like(calls[0])) continue;
    block.report_once({Fault::divergence,
                       "lanes of a warpgroup give wgmma.mma_async different descriptors or scales"},
                      where);
    return;
  }
  for_each_operand(calls[0],
                   [&](const Operand& operand) { require_places(block, operand, where); });
  require_fence(block, calls, where);
  if (block.shared().is_checked()) {
    const SharedMemory::Readers readers{group * kWarpgroupLanes, kWarpLanes, kWarps};
    for_each_operand(calls[0], [&](const Operand& operand) {
      for_each_piece(operand, [&](std::uint32_t, std::uint32_t, std::uint32_t address) {
        auto finding =
            block.shared().begin_async_read(block.shared().at(address, kPiece), kPiece, readers);
        if (!finding) return;
        finding->text = "wgmma of warpgroup " + std::to_string(group) + " " + finding->text;
        block.report_once(*finding, where);
      });
    });
  }
  Product made{calls, {}, take_accumulators(calls), group_, where};
  ++made.d->products;
  for (const GroupProductCall& call : calls) {
    if (call.a != nullptr) made.a.insert(made.a.end(), call.a, call.a + kFragments);
  }
  pending_.push_back(std::move(made));
}

// PTX ISA, wgmma.mma_async, register fragments of D.
void GroupProducts::carry_out(Block& block, std::uint32_t group, const Product& product) {
  const GroupProductCall& call = product.calls[0];
  const SharedMemory& shared = block.shared();
  const std::vector<float> a =
      call.a != nullptr ? load_fragments(product.a, call.type)
                        : load(shared, {decode(call.a_matrix), call.a_major, kRows}, call.type);
  const std::vector<float> b =
      load(shared, {decode(call.b_matrix), call.b_major, call.columns}, call.type);
  float* value = product.d->values.data();
  for (std::size_t lane = 0; lane < kWarpgroupLanes; ++lane) {
    for (std::size_t k = 0; k < call.columns / 2; ++k, ++value) {
      const std::size_t row = lane / kWarpLanes * 16 + lane % kWarpLanes / 4 + k / 2 % 2 * 8;
      const std::size_t column = k / 4 * 8 + lane % 4 * 2 + k % 2;
      double sum = call.adds ? static_cast<double>(*value) : 0;
      for (std::size_t i = 0; i < kInner; ++i) {
        sum += static_cast<double>(a[row * kInner + i]) *
               static_cast<double>(b[column * kInner + i]);  // exact product
      }
      *value = static_cast<float>(sum);
    }
  }
  if (!shared.is_checked()) return;
  const std::uint32_t engine = block.shared().order().engine(group);
  for_each_operand(call, [&](const Operand& operand) {
    for_each_piece(operand, [&](std::uint32_t, std::uint32_t, std::uint32_t address) {
      block.shared().end_async_read(shared.at(address, kPiece), kPiece, engine);
    });
  });
}

void GroupProducts::wait(Block& block, std::uint32_t group, std::uint64_t most_pending) {
  const std::uint64_t before = group_ - std::min(group_, most_pending);
  const bool ends_some = !pending_.empty() && pending_.front().group < before;
  while (!pending_.empty() && pending_.front().group < before) {
    carry_out(block, group, pending_.front());
    --pending_.front().d->products;
    pending_.erase(pending_.begin());
  }
  accumulators_.remove_if([](const Accumulators& each) {
    if (each.products > 0) return false;
    const std::size_t words = each.columns / 2;
    for (std::size_t lane = 0; lane < each.d.size(); ++lane) {
      std::copy_n(each.values.data() + lane * words, words, each.d[lane]);
    }
    return true;
  });
  AccessOrder& order = block.shared().order();
  if (!ends_some || !block.shared().is_checked() || !order.has_hand_overs()) return;
  AccessOrder::Clock clock;
  order.release(order.engine(group), clock);
  for (std::uint32_t k = 0; k < kWarpgroupLanes; ++k) {
    order.acquire(group * kWarpgroupLanes + k, clock);
  }
}

std::optional<Finding> GroupProducts::touch(std::uint32_t lane, const void* pointer,
                                            std::size_t bytes) {
  const std::size_t in_group = lane % kWarpgroupLanes;
  for (const Product& product : pending_) {
    const GroupProductCall& call = product.calls[in_group];
    const bool is_d = overlaps(pointer, bytes, call.d, call.columns / 2 * sizeof(float));
    if (is_d || overlaps(pointer, bytes, call.a, kFragments * sizeof(std::uint32_t))) {
      return Finding{Fault::async_pending, "lane " + std::to_string(lane) + " uses " +
                                               (is_d ? "an accumulator" : "a fragment") +
                                               " of the wgmma of " + product.where.to_string() +
                                               ", which has not ended"};
    }
  }
  const auto first = reinterpret_cast<std::uintptr_t>(pointer);
  for (std::uintptr_t word = first / kWord; word <= (first + bytes - 1) / kWord; ++word) {
    touched_[in_group].insert(word);
  }
  return std::nullopt;
}

void GroupProducts::end(Block& block) const {
  if (pending_.empty()) return;
  block.report_once({Fault::async_pending, "the block ends while a wgmma is under way; " +
                                               std::string("wgmma_wait<0>() waits for it")},
                    pending_.front().where);
}

}  // namespace attest::simt
