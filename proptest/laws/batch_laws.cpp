// Laws about what a row's bits do not depend on, where a kernel claims that.
#include <optional>

#include "core/rng.hpp"
#include "proptest/judge/limits.hpp"
#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/neighbours.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

// The case's problem in memory in which a row lies alike in every batch, with what all entries
// share: drawn biases and masks of heads do not depend on the place then. Now and then with key
// lengths, where it has no list and the kernel takes them.
Problem of_own_rows(const attest_kernel& kernel, const Case& c) {
  constexpr std::uint64_t kStream = 0x6c656e67u;
  constexpr std::size_t kBatch = 0;  // axis
  Problem p = c.problem;
  const bool any = (kernel.description.features & ATTEST_LAYOUT_BITS) != 0;
  if (!any || p.strides == Strides::broadcast || p.strides == Strides::huge) {
    p.strides = Strides::packed;
  }
  p.bias = p.bias.kind == Bias::Kind::given ? Bias{} : p.bias.first_of(kBatch);
  p.head_mask =
      p.head_mask.kind == HeadMask::Kind::given ? HeadMask{} : p.head_mask.first_of(kBatch);
  if (p.mask.packed()) p.mask.boolean = nullptr;  // its size is that of the longest sequence
  Rng rng(c.seed, kStream);
  if (p.mask.packed() || !p.mask.key_lengths.empty() || p.seqlen_k == 0) return p;
  if (rng.between(0, 1) == 0) return p;
  Problem listed = p;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    listed.mask.key_lengths.push_back(static_cast<std::int32_t>(rng.between(1, p.seqlen_k)));
  }
  return unclaimed(kernel.description, listed, Direction::forward).empty() ? listed : p;
}

// An entry with queries and keys, by the seed.
std::optional<std::size_t> drawn_entry(const Problem& p, std::uint64_t seed) {
  const std::vector<Sequence> sequences = p.sequences();
  for (std::size_t k = 0; k < sequences.size(); ++k) {
    const std::size_t entry = (k + seed) % sequences.size();
    if (sequences[entry].q_length > 0 && sequences[entry].visible_keys > 0) return entry;
  }
  return std::nullopt;
}

LawResult check_batch(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_feature(kernel, ATTEST_BATCH_INVARIANT, "bits that do not depend on the batch");
    require_deterministic(kernel);
    const Problem p = of_own_rows(kernel, c);
    const Direction direction = furthest(kernel, p);
    require_pairs(kernel, p, direction);
    const auto entry = drawn_entry(p, mix(c.seed, 1));
    if (!entry) stop(Verdict::vacuous, "no batch entry has queries and keys");
    const InputValues in = make_values(p, c.values, c.seed);
    const KernelRun run = complete(kernel, p, in, direction, c);
    std::string missing;
    LawResult result;
    for (const Neighbours& batch : neighbours_of(kernel.description, p, *entry)) {
      const std::string lacks = unclaimed(kernel.description, batch.problem, direction);
      if (!lacks.empty()) missing = lacks;
      if (!lacks.empty() || (batch.problem.batch == 1 && p.batch == 1)) continue;
      const InputValues beside = values_beside(p, in, *entry, batch, mix(c.seed, 2));
      const KernelRun other = complete(kernel, batch.problem, beside, direction, c);
      result = same_bits(run, with_entry_of(run, p, *entry, other, batch), direction,
                         "batch entry " + std::to_string(*entry) + " differs " + batch.words);
      if (result.verdict != Verdict::passed) return result;
    }
    if (result.comparisons.empty()) stop(Verdict::unsupported, "not claimed: " + missing);
    return result;
  });
}

LawResult check_splits(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_feature(kernel, ATTEST_SPLIT_INVARIANT, "a number of splits");
    require_deterministic(kernel);
    Problem p = c.problem;
    p.num_splits = 0;
    const Direction direction = furthest(kernel, p);
    require_pairs(kernel, p, direction);
    const InputValues in = make_values(p, c.values, c.seed);
    const KernelRun run = complete(kernel, p, in, direction, c);
    LawResult result;
    for (const std::int64_t splits : {1, 3, 8}) {
      Problem split = p;
      split.num_splits = splits;
      result = same_bits(run, complete(kernel, split, in, direction, c), direction,
                         "num_splits=" + std::to_string(splits) + " differs from 0");
      if (result.verdict != Verdict::passed) return result;
    }
    return result;
  });
}

}  // namespace

std::vector<Law> batch_laws() {
  Law batch{"batch_invariance",
            "a batch entry alone, at other places and beside other lengths has the same bits",
            check_batch},
      splits{"split_invariance", "the number of splits changes no bit", check_splits};
  batch.features = ATTEST_BATCH_INVARIANT;
  splits.features = ATTEST_SPLIT_INVARIANT;
  return {batch, splits};
}

}  // namespace attest::proptest
