// Laws about bits: what must not change an output at all.
#include "core/dtype/dtype_range.hpp"
#include "core/numerics.hpp"
#include "core/rng.hpp"
#include "proptest/judge/limits.hpp"
#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

void require_content(const Problem& problem) {
  if (problem.visible_pairs() == 0) stop(Verdict::vacuous, "no query sees a key");
}

LawResult check_repeat(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_deterministic(kernel);
    require_content(c.problem);
    const Direction direction = furthest(kernel, c.problem);
    const InputValues in = make_values(c.problem, c.values, c.seed);
    const KernelRun first = complete(kernel, c.problem, in, direction, c);
    call_with_another_shape(kernel, c.problem, direction, c);
    LawResult result = same_bits(first, complete(kernel, c.problem, in, direction, c), direction,
                                 "the second of two equal calls differs");
    const bool may_omit_lse = unclaimed(kernel.description, c.problem, Direction::forward).empty();
    if (result.verdict != Verdict::passed || !may_omit_lse) return result;
    const KernelRun alone =
        complete(kernel, c.problem, in, Direction::forward, c, LseRequest::never);
    return judged_bits({compare_bits(alone.O.view(), first.O.view())}, "O differs without LSE");
  });
}

// Bits where the kernel claims that it does not choose its way by the strides.
LawResult check_layout(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    const bool bits = (kernel.description.features & ATTEST_LAYOUT_BITS) != 0;
    if (bits) require_deterministic(kernel);
    require_content(c.problem);
    Problem packed = c.problem, other = c.problem;
    packed.strides = Strides::packed;
    if (!packed.mask.packed()) packed.layout = Layout::bshd;
    if (packed.layout == other.layout && other.strides == Strides::packed) {
      const bool any = (kernel.description.features & ATTEST_ANY_STRIDES) != 0;
      other.strides = any ? Strides::transposed : Strides::padded;
      if (!other.mask.packed()) other.layout = Layout::bhsd;
    }
    const Direction direction = furthest(kernel, other);
    const InputValues in = make_values(other, c.values, c.seed);
    const std::string what = "layout " + std::string(name(other.layout)) + " with strides " +
                             std::string(name(other.strides)) + " differs from packed";
    if (bits) {
      const KernelRun first = complete(kernel, packed, in, direction, c);
      return same_bits(first, complete(kernel, other, in, direction, c), direction, what);
    }
    const Solved first(kernel, packed, in, direction, c);
    LawResult result = judged_with_truth(
        first.truth.agreement(complete(kernel, other, in, direction, c), first.run), first);
    if (result.verdict == Verdict::violated) result.message = what + ": " + result.message;
    return result;
  });
}

// Copies the elements of `from` for which `chosen` holds into a copy of `to`.
Tensor merged(const Tensor& to, const Tensor& from,
              const std::function<bool(std::int64_t, std::int64_t, std::int64_t)>& chosen) {
  return mapped(to, [&](auto b, auto s, auto h, auto x) {
    return chosen(b, s, h) ? from(b, s, h, x) : to(b, s, h, x);
  });
}

LawResult check_heads(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_deterministic(kernel);
    Problem p = c.problem;
    if (p.strides == Strides::broadcast) p.strides = Strides::packed;
    const bool lists = p.mask.packed() || !p.mask.key_lengths.empty();
    if (p.num_heads_kv == 1 && p.tensor_batch() == 1) {
      Problem heads = p;
      heads.num_heads_kv *= 2;
      heads.num_heads_q *= 2;
      if (!lists && !unclaimed(kernel.description, heads, Direction::forward).empty()) {
        p.batch *= 2;  // of a kernel with one head
      } else {
        p = heads;
      }
    }
    const Direction direction = furthest(kernel, p);
    require_claimed(kernel, p, direction);
    require_content(p);
    const std::int64_t group = p.group_size();
    const InputValues in = make_values(p, c.values, c.seed);
    const InputValues noise = make_values(p, Values::normal, c.seed + 1);
    InputValues changed = in;
    const auto first_kv = [](auto b, auto, auto h) { return b == 0 && h == 0; };
    const auto first_q = [=](auto b, auto, auto h) { return b == 0 && h < group; };
    changed.Q = merged(in.Q, noise.Q, first_q);
    changed.dO = merged(in.dO, noise.dO, first_q);
    changed.K = merged(in.K, noise.K, first_kv);
    changed.V = merged(in.V, noise.V, first_kv);
    const KernelRun before = complete(kernel, p, in, direction, c);
    KernelRun after = complete(kernel, p, changed, direction, c);
    // The first head may change; put the old results back and nothing else may differ.
    after.O = merged(after.O, before.O, first_q);
    if (after.LSE.view().rank() > 0) {
      after.LSE =
          merged(after.LSE, before.LSE, [=](auto b, auto h, auto) { return b == 0 && h < group; });
    }
    if (direction == Direction::backward) {
      after.dQ = merged(after.dQ, before.dQ, first_q);
      after.dK = merged(after.dK, before.dK, first_kv);
      after.dV = merged(after.dV, before.dV, first_kv);
      for (std::int64_t h = 0; h < group && p.sinks != Sinks::none; ++h) {
        after.dSinks.set(before.dSinks(h), h);  // of this head in every batch entry
      }
      if (p.bias.kind != Bias::Kind::none) {
        // All sequences of a packed tensor are its entry 0, but each has a bias of its own.
        const std::int64_t changed_entries = p.tensor_batch() == 1 ? p.batch : 1;
        const Tensor own = after.dBias;
        after.dBias = mapped(own, [&](auto b, auto h, auto i, auto j) {
          return b < changed_entries && h < group ? before.dBias(b, h, i, j) : own(b, h, i, j);
        });
      }
    }
    return same_bits(before, after, direction, "changing one head changes another");
  });
}

// One key per sequence is changed; rows that do not see it keep their O, LSE and dQ.
LawResult check_masked_keys(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_deterministic(kernel);
    const Problem p = with_hidden_keys(kernel, c.problem);
    const Direction direction = furthest(kernel, p);
    require_claimed(kernel, p, direction);
    require_hidden_keys(kernel);
    require_content(p);
    const InputValues in = make_values(p, c.values, c.seed);
    InputValues changed = in;
    Tensor sees("sees", DType::f64, p.q_axes());  // 1 where the row sees a changed key
    std::int64_t blind = 0;
    // Scores of it stay within what the contract adds them up in.
    constexpr double kLarge = 1000, kLargeInHalf = 16;
    const Numerics numerics = resolve(kernel.description.numerics, p.dtype);
    const bool half = has_narrow_range(numerics.accumulator_roundoff);
    const double large = half ? kLargeInHalf : kLarge;
    for (const Sequence& sequence : p.sequences()) {
      if (sequence.k_length == 0) continue;
      const auto key = static_cast<std::int64_t>(mix(c.seed, 0x6b6579u) %
                                                 static_cast<std::uint64_t>(sequence.k_length));
      for (std::int64_t h = 0; h < p.num_heads_kv; ++h) {
        const auto put = [&](Tensor& tensor, std::int64_t columns) {
          for (std::int64_t x = 0; x < columns; ++x) {
            tensor.set(round_to(p.dtype, large), sequence.tensor_batch, sequence.k_begin + key, h,
                       x);
          }
        };
        put(changed.K, p.head_dim_qk);
        put(changed.V, p.head_dim_v);
      }
      for (std::int64_t i = 0; i < sequence.q_length; ++i) {
        const bool visible = p.mask.visible(sequence, i, key);
        blind += visible ? 0 : 1;
        for (std::int64_t h = 0; h < p.num_heads_q; ++h) {
          sees.set(visible ? 1 : 0, sequence.tensor_batch, sequence.q_begin + i, h, 0);
        }
      }
    }
    if (blind == 0) stop(Verdict::vacuous, "the key drawn is seen by every row");
    const KernelRun before = complete(kernel, p, in, direction, c);
    KernelRun after = complete(kernel, p, changed, direction, c);
    const auto seen = [&](auto b, auto i, auto h) { return sees(b, i, h, 0) != 0; };
    after.O = merged(after.O, before.O, seen);
    if (after.LSE.view().rank() > 0) {
      after.LSE =
          merged(after.LSE, before.LSE, [&](auto b, auto h, auto i) { return seen(b, i, h); });
    }
    if (direction == Direction::backward) {
      after.dQ = merged(after.dQ, before.dQ, seen);
      after.dK = before.dK;  // other keys feel the change through the rows that see it
      after.dV = before.dV;
      after.dSinks = before.dSinks;
      after.dBias = before.dBias;
    }
    return same_bits(before, after, direction, "a masked key's values reach an output");
  });
}

}  // namespace

std::vector<Law> invariance_laws() {
  return {{"repeat", "two equal calls, with another shape between them, give the same bits",
           check_repeat},
          {"layout_independence",
           "layout and strides change an output within its bounds; no bit of it where claimed",
           check_layout},
          {"head_independence", "changing one batch entry or head changes no other's bits",
           check_heads},
          {"masked_key_independence",
           "values of a key change no bit of the rows that do not see it", check_masked_keys}};
}

}  // namespace attest::proptest
