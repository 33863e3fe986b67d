#include "core/features/pages.hpp"

#include <algorithm>
#include <cstddef>
#include <map>

#include "core/rng.hpp"

namespace attest {
namespace {

std::int64_t pages_for(std::int64_t keys, std::int64_t page_size) {
  return keys / page_size + (keys % page_size > 0 ? 1 : 0);
}

std::int64_t pages_with_keys(const Problem& problem) {
  std::int64_t count = 0;
  for (const Sequence& sequence : problem.sequences()) {
    count += pages_for(sequence.visible_keys, problem.paged_kv.page_size);
  }
  return count;
}

std::int64_t pages_of(const Problem& problem) {
  const std::int64_t needed = pages_with_keys(problem), asked = problem.paged_kv.pages;
  return asked == 0 ? needed + 1 : std::max({needed, asked, std::int64_t{1}});
}

// The first `wanted` of `count` pages in an order that the seed draws. Cost: `wanted`.
std::vector<std::int32_t> drawn(std::int64_t wanted, std::int64_t count, std::uint64_t seed) {
  constexpr std::uint64_t kStream = 0x7061676573u;
  std::map<std::int64_t, std::int64_t> moved;  // of a shuffled list, the places that changed
  const auto at = [&](std::int64_t k) { return moved.try_emplace(k, k).first->second; };
  std::vector<std::int32_t> order;
  Rng rng(seed, kStream);
  for (std::int64_t k = 0; k < wanted; ++k) {
    const std::int64_t other = rng.between(k, count - 1), page = at(other);
    moved[other] = at(k);
    order.push_back(static_cast<std::int32_t>(page));
  }
  return order;
}

std::vector<Axis> stored_axes(const Problem& problem, std::vector<Axis> axes) {
  if (!is_paged(problem)) return axes;
  axes[0] = {"pages", pages_of(problem), 0};
  axes[1] = {"page_size", problem.paged_kv.page_size, 0};
  return axes;
}

// Visits the row of each key: where it lies among the keys, and where in the pages.
template <class Visit>
void for_each_key(const Problem& problem, const Visit& visit) {
  const Pages pages(problem);
  const attest_paged_kv paged{sizeof(attest_paged_kv), pages.page_size, pages.pages,
                              pages.max_pages, pages.block_table.data()};
  std::int64_t b = 0;
  for (const Sequence& sequence : problem.sequences()) {
    for (std::int64_t j = 0; j < sequence.visible_keys; ++j) {
      visit(sequence.tensor_batch, sequence.k_begin + j, place_of_key(paged, b, j));
    }
    ++b;
  }
}

}  // namespace

bool is_paged(const Problem& problem) { return problem.paged_kv.page_size > 0; }

Pages::Pages(const Problem& problem)
    : page_size(problem.paged_kv.page_size), pages(pages_of(problem)), max_pages(1) {
  const std::uint64_t order = problem.paged_kv.order;
  const std::vector<Sequence> sequences = problem.sequences();
  const auto spare = static_cast<std::int64_t>(order % 3);
  max_pages = std::max(max_pages, pages_for(problem.seqlen_k, page_size) + spare);
  // A page that holds no key comes after those that do.
  const std::int64_t needed = pages_with_keys(problem);
  const std::vector<std::int32_t> handed_out = drawn(std::min(needed + 1, pages), pages, order);
  auto next = handed_out.begin();
  block_table.assign(sequences.size() * static_cast<std::size_t>(max_pages), handed_out.back());
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    const std::int64_t count = pages_for(sequences[b].visible_keys, page_size);
    std::copy_n(next, count, block_table.begin() + static_cast<std::ptrdiff_t>(b) * max_pages);
    next += count;
  }
}

std::vector<Axis> stored_k_axes(const Problem& problem) {
  return stored_axes(problem, problem.k_axes());
}

std::vector<Axis> stored_v_axes(const Problem& problem) {
  return stored_axes(problem, problem.v_axes());
}

PagedKey place_of_key(const attest_paged_kv& paged_kv, std::int64_t b, std::int64_t j) {
  const std::int64_t entry = b * paged_kv.max_pages + j / paged_kv.page_size;
  return {paged_kv.block_table[entry], j % paged_kv.page_size};
}

Tensor in_pages(const Problem& problem, const Tensor& keys, double unused) {
  if (!is_paged(problem)) return keys;
  const TensorView& from = keys.view();
  std::vector<Axis> axes = stored_k_axes(problem);
  axes[3] = from.axis(3);
  Tensor stored(from.name(), from.dtype(), axes);
  const TensorView& to = stored.view();
  for (std::int64_t page = 0; page < to.extent(0); ++page) {
    for (std::int64_t slot = 0; slot < to.extent(1); ++slot) {
      for (std::int64_t h = 0; h < to.extent(2); ++h) {
        for (std::int64_t c = 0; c < to.extent(3); ++c) to.set(unused, page, slot, h, c);
      }
    }
  }
  for_each_key(problem, [&](std::int64_t batch, std::int64_t row, const PagedKey& at) {
    for (std::int64_t h = 0; h < to.extent(2); ++h) {
      for (std::int64_t c = 0; c < to.extent(3); ++c) {
        to.set(from(batch, row, h, c), at.page, at.slot, h, c);
      }
    }
  });
  return stored;
}

void poison_unused(const Problem& problem, const TensorView& stored) {
  if (!is_paged(problem)) return;
  std::vector<char> holds(static_cast<std::size_t>(stored.extent(0) * stored.extent(1)));
  const auto slot_of = [&](std::int64_t page, std::int64_t slot) -> char& {
    return holds[static_cast<std::size_t>(page * stored.extent(1) + slot)];
  };
  for_each_key(problem, [&](std::int64_t, std::int64_t, const PagedKey& at) {
    slot_of(at.page, at.slot) = 1;
  });
  for (std::int64_t page = 0; page < stored.extent(0); ++page) {
    for (std::int64_t slot = 0; slot < stored.extent(1); ++slot) {
      if (slot_of(page, slot) != 0) continue;
      for (std::int64_t h = 0; h < stored.extent(2); ++h) {
        for (std::int64_t c = 0; c < stored.extent(3); ++c) {
          stored.set(std::numeric_limits<double>::quiet_NaN(), page, slot, h, c);
        }
      }
    }
  }
}

}  // namespace attest
