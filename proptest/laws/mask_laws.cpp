// Laws of masks per batch and head, query lengths and windows with both ends anywhere, which need
// no reference.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/rng.hpp"
#include "proptest/judge/limits.hpp"
#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/trial.hpp"
#include "proptest/values/kept_keys.hpp"

namespace attest::proptest {
namespace {

// The case's problem with a mask of heads; its own where it has one. Each row sees a key where the
// kernel claims nothing else.
Problem with_head_mask(const attest_kernel& kernel, const Case& c, const std::string& axes) {
  Problem p = c.problem;
  if (p.head_mask.kind == HeadMask::Kind::none) {
    p.head_mask = HeadMask::parse(axes + "_70_" + std::to_string(c.seed % 1000));
    keep_a_key_in_each_row(kernel.description, p);
  }
  return p;
}

// The mask with all axes written out.
HeadMask repeated(const Problem& p) {
  GivenHeadMask given{{p.batch, p.num_heads_q, p.seqlen_q, p.seqlen_k}, {}};
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.num_heads_q; ++h) {
      for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
        for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
          given.visible.push_back(p.head_mask(b, h, i, j) ? 1 : 0);
        }
      }
    }
  }
  HeadMask mask;
  mask.kind = HeadMask::Kind::given;
  mask.axes = {true, true, true, true};
  mask.given = std::make_shared<const GivenHeadMask>(std::move(given));
  return mask;
}

// A mask is held in memory for each pair.
void require_few_pairs(const Problem& p) {
  constexpr double kMostPairs = 0x1p22;
  const double pairs = static_cast<double>(p.batch) * static_cast<double>(p.num_heads_q) *
                       static_cast<double>(p.seqlen_q) * static_cast<double>(p.seqlen_k);
  if (pairs > kMostPairs) stop(Verdict::unsupported, "more pairs than are given a mask each");
}

// Judges two problems of the same results, with equal inputs.
LawResult judged_alike(const attest_kernel& kernel, const Case& c, const Problem& one,
                       const Problem& two) {
  require_claimed(kernel, one, Direction::forward);
  require_claimed(kernel, two, Direction::forward);
  const Direction direction = std::min(furthest(kernel, one), furthest(kernel, two));
  require_pairs(kernel, one, direction);
  const Solved first(kernel, one, make_values(one, c.values, c.seed), direction, c);
  const Solved other(kernel, two, first.values, direction, c);
  return judged_with_truth(first.truth.agreement(other.run, first.run), other);
}

LawResult check_repeated(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    Problem broadcast = with_head_mask(kernel, c, c.seed % 2 == 0 ? "bk" : "hqk");
    require_few_pairs(broadcast);
    Problem whole = broadcast;
    whole.head_mask = repeated(broadcast);
    return judged_alike(kernel, c, broadcast, whole);
  });
}

LawResult check_shared(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_unmasked(kernel);
    if ((kernel.description.features & ATTEST_BOOLEAN_MASK) == 0) {
      stop(Verdict::unsupported, "not claimed: boolean masks");
    }
    Problem boolean = c.problem;
    boolean.head_mask = HeadMask{};
    require_few_pairs(boolean);
    const std::string text = "random_70_" + std::to_string(c.seed % 1000);
    boolean.mask.boolean = Pattern::parse(text, boolean.seqlen_q, boolean.seqlen_k).boolean;
    Problem of_heads = boolean;
    of_heads.mask.boolean = nullptr;
    GivenHeadMask given{{1, 1, boolean.seqlen_q, boolean.seqlen_k}, boolean.mask.boolean->visible};
    of_heads.head_mask.kind = HeadMask::Kind::given;
    of_heads.head_mask.axes = {false, false, true, true};
    of_heads.head_mask.given = std::make_shared<const GivenHeadMask>(std::move(given));
    return judged_alike(kernel, c, boolean, of_heads);
  });
}

// Rows past a query length are rows of which a mask of heads shows no key, where nothing else
// depends on how many queries there are.
LawResult check_query_lengths(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    if ((kernel.description.features & ATTEST_HEAD_MASK) == 0) {
      stop(Verdict::unsupported, "not claimed: masks of heads");
    }
    Problem lengths = c.problem;
    lengths.head_mask = HeadMask{};
    lengths.sinks = Sinks::none;  // rows without a key have them, rows past a length do not
    lengths.mask.align = CausalAlign::top_left;
    fit_window(kernel.description, lengths);
    const bool aligned = lengths.mask.banded() || lengths.alibi != Alibi::none;
    if (aligned && lengths.mask.align != CausalAlign::top_left) {
      stop(Verdict::unsupported, "not claimed: alignment to the top left");
    }
    if (lengths.query_lengths.kind == QueryLengths::Kind::none) {
      lengths.query_lengths = QueryLengths::parse("drawn_" + std::to_string(c.seed % 1000));
    }
    require_few_pairs(lengths);
    Problem hidden = lengths;
    hidden.query_lengths = QueryLengths{};
    const std::vector<Sequence> sequences = lengths.sequences();
    GivenHeadMask given{{lengths.batch, 1, lengths.seqlen_q, 1}, {}};
    for (const Sequence& sequence : sequences) {
      for (std::int64_t i = 0; i < lengths.seqlen_q; ++i) {
        given.visible.push_back(i < sequence.queries() ? 1 : 0);
      }
    }
    hidden.head_mask.kind = HeadMask::Kind::given;
    hidden.head_mask.axes = {true, false, true, false};
    hidden.head_mask.given = std::make_shared<const GivenHeadMask>(std::move(given));
    return judged_alike(kernel, c, lengths, hidden);
  });
}

// A window with both ends anywhere as a boolean mask.
LawResult check_offset_window(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_unmasked(kernel);
    if ((kernel.description.features & ATTEST_BOOLEAN_MASK) == 0) {
      stop(Verdict::unsupported, "not claimed: boolean masks");
    }
    constexpr std::uint64_t kStream = 0x6f666673u;
    Rng rng(c.seed, kStream);
    Problem window = c.problem;
    if (window.mask.packed()) window.layout = Layout::bshd;
    window.mask = {};
    window.query_lengths = QueryLengths{};
    window.alibi = Alibi::none;
    const std::int64_t most = std::max<std::int64_t>(window.seqlen_k, 1),
                       near = -rng.between(1, std::min<std::int64_t>(most, 3)),
                       far = rng.between(-near, most + 1);
    const bool left = c.seed % 2 == 0, unbounded = c.seed % 3 == 0;
    window.mask.align = c.seed % 4 < 2 ? CausalAlign::top_left : CausalAlign::bottom_right;
    const std::int64_t other = unbounded ? Pattern::kUnbounded : far;
    window.mask.set_window(left ? near : other, left ? other : near);
    fit_window(kernel.description, window);
    require_few_pairs(window);
    Problem boolean = window;
    boolean.mask = {};
    auto mask = std::make_shared<BooleanMask>();
    mask->rows = window.seqlen_q;
    mask->columns = window.seqlen_k;
    mask->spelling = "random_100_0";
    const Sequence sequence = window.sequences().front();
    for (std::int64_t i = 0; i < mask->rows; ++i) {
      for (std::int64_t j = 0; j < mask->columns; ++j) {
        mask->visible.push_back(window.mask.visible(sequence, i, j) ? 1 : 0);
      }
    }
    boolean.mask.boolean = mask;
    return judged_alike(kernel, c, window, boolean);
  });
}

}  // namespace

std::vector<Law> mask_laws() {
  const auto of = [](std::uint32_t feature, MaskUse use, Law law) {
    law.features = feature;
    law.mask = use;
    return law;
  };
  return {of(ATTEST_HEAD_MASK, MaskUse::kept,
             {"head_mask_repeated",
              "a mask that heads or batch entries share equals the one that "
              "repeats it for each",
              check_repeated}),
          of(ATTEST_HEAD_MASK, MaskUse::replaced,
             {"head_mask_shared",
              "a mask that all heads and batch entries share equals the "
              "boolean mask",
              check_shared}),
          of(ATTEST_QUERY_LENGTHS, MaskUse::kept,
             {"query_lengths", "rows past a query length are as if a mask hid all keys from them",
              check_query_lengths}),
          of(ATTEST_OFFSET_WINDOW, MaskUse::replaced,
             {"offset_window",
              "a window with both ends anywhere equals the boolean mask of its "
              "pairs",
              check_offset_window})};
}

}  // namespace attest::proptest
