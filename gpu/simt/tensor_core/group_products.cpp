// The products of a warpgroup of lanes on the host: the registers that they take are memory.
#include <algorithm>
#include <limits>
#include <string>

#include "gpu/simt/block.hpp"
#include "gpu/simt/tensor_core/warpgroup.hpp"

namespace attest::simt {
namespace {

bool overlaps(const void* pointer, std::size_t bytes, const void* registers, std::size_t size) {
  const auto a = reinterpret_cast<std::uintptr_t>(pointer);
  const auto b = reinterpret_cast<std::uintptr_t>(registers);
  return registers != nullptr && a < b + size && b < a + bytes;
}

constexpr std::uintptr_t kWord = 4;

}  // namespace

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
    if (!used(calls[lane].d, calls[lane].product.columns / 2) &&
        !used(calls[lane].a, kFragmentWords))
      continue;
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
        return each.d[0] == calls[0].d && each.columns == calls[0].product.columns;
      });
  if (known != accumulators_.end()) return known;
  Accumulators made;
  made.columns = calls[0].product.columns;
  made.values.resize(calls.size() * made.columns / 2);
  for (std::size_t lane = 0; lane < calls.size(); ++lane) {
    float* const d = made.d[lane] = calls[lane].d;
    for (std::size_t k = 0; k < made.columns / 2; ++k) {
      made.values[accumulator_place(lane, k, made.columns)] = d[k];
    }
    std::fill_n(d, made.columns / 2, std::numeric_limits<float>::quiet_NaN());
  }
  return accumulators_.insert(accumulators_.end(), std::move(made));
}

void GroupProducts::begin(Block& block, std::uint32_t group, const Calls& calls, SourceLine where) {
  for (const GroupProductCall& call : calls) {
    if (call.product == calls[0].product) continue;
    block.report_once({Fault::divergence,
                       "lanes of a warpgroup give wgmma.mma_async different descriptors or scales"},
                      where);
    return;
  }
  if (const auto found = misplaced(block.shared(), calls[0].product)) {
    block.stop(found->fault, found->text, where);
  }
  require_fence(block, calls, where);
  if (const auto found = begin_reads(block.shared(), calls[0].product, group)) {
    block.report_once(*found, where);
  }
  Product made{calls, {}, take_accumulators(calls), group_, where};
  ++made.d->products;
  for (const GroupProductCall& call : calls) {
    if (call.a != nullptr) made.a.insert(made.a.end(), call.a, call.a + kFragmentWords);
  }
  pending_.push_back(std::move(made));
}

void GroupProducts::wait(Block& block, std::uint32_t group, std::uint64_t most_pending) {
  const std::uint64_t before = group_ - std::min(group_, most_pending);
  const bool ends_some = !pending_.empty() && pending_.front().group < before;
  while (!pending_.empty() && pending_.front().group < before) {
    const Product& product = pending_.front();
    carry_out(block.shared(), product.calls[0].product, product.a, product.d->values);
    end_reads(block.shared(), product.calls[0].product, group);
    --product.d->products;
    pending_.erase(pending_.begin());
  }
  accumulators_.remove_if([](const Accumulators& each) {
    if (each.products > 0) return false;
    for (std::size_t lane = 0; lane < each.d.size(); ++lane) {
      for (std::size_t k = 0; k < each.columns / 2; ++k) {
        each.d[lane][k] = each.values[accumulator_place(lane, k, each.columns)];
      }
    }
    return true;
  });
  if (ends_some) come_after_reads(block.shared(), group);
}

std::optional<Finding> GroupProducts::touch(std::uint32_t lane, const void* pointer,
                                            std::size_t bytes) {
  const std::size_t in_group = lane % kWarpgroupLanes;
  for (const Product& product : pending_) {
    const GroupProductCall& call = product.calls[in_group];
    const bool is_d = overlaps(pointer, bytes, call.d, call.product.columns / 2 * sizeof(float));
    if (is_d || overlaps(pointer, bytes, call.a, kFragmentWords * sizeof(std::uint32_t))) {
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
