#include "proptest/laws/trials/field_changes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <vector>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "proptest/values/draws.hpp"
#include "proptest/values/score_draws.hpp"

namespace attest::proptest {
namespace {

constexpr std::uint64_t kStream = 0x6669656c64u;

// Makes the change; false where the problem has no such field to change.
using Change = bool (*)(Problem&, Rng&);

bool change_scale(Problem& p, Rng& rng) {
  const double factor = static_cast<double>(rng.between(40, 80)) / 100;
  if (p.scale() == 0) {
    p.softmax_scale.reset();
  } else {
    p.softmax_scale = p.scale() * factor;
  }
  return true;
}

bool change_window(Problem& p, Rng& rng) {
  Pattern& mask = p.mask;
  if (mask.offset) {  // both ends move together
    const auto moved = [](bool bounded, std::int64_t width, std::int64_t by) {
      return bounded ? width + by : Pattern::kUnbounded;
    };
    const std::int64_t by = rng.between(1, 3);
    mask.set_window(moved(mask.left_bounded(), mask.window_left, by),
                    moved(mask.right_bounded(), mask.window_right, -by));
  } else if (!mask.banded()) {
    mask.window_right = 0;
    mask.align = chance(rng, 50) ? CausalAlign::top_left : CausalAlign::bottom_right;
  } else if (mask.window_left > 0) {
    mask.window_left /= 2;
  } else if (mask.window_left == 0) {
    mask.window_left = 2;
  } else if (mask.window_right > 0) {
    mask.window_right /= 2;
  } else {
    mask.window_left = std::max<std::int64_t>(p.seqlen_k / 3, 0);
  }
  return true;
}

bool change_alignment(Problem& p, Rng& /*rng*/) {
  if (!p.mask.banded()) return false;
  const bool top_left = p.mask.align == CausalAlign::top_left;
  p.mask.align = top_left ? CausalAlign::bottom_right : CausalAlign::top_left;
  return true;
}

bool change_key_lengths(Problem& p, Rng& rng) {
  if (p.mask.packed() || p.seqlen_k < 2) return false;
  std::vector<std::int32_t>& lengths = p.mask.key_lengths;
  lengths.resize(static_cast<std::size_t>(p.batch), static_cast<std::int32_t>(p.seqlen_k));
  for (std::int32_t& length : lengths) {
    const auto other = static_cast<std::int32_t>(rng.between(1, p.seqlen_k - 1));
    length = other == length ? other + 1 : other;
  }
  return true;
}

// Lengths in the opposite order: the totals and the longest stay.
bool change_packed_lengths(Problem& p, Rng& /*rng*/) {
  if (!p.mask.packed()) return false;
  for (std::vector<std::int32_t>* sums : {&p.mask.cu_seqlens_q, &p.mask.cu_seqlens_k}) {
    const std::int32_t total = sums->back();
    std::reverse(sums->begin(), sums->end());
    for (std::int32_t& sum : *sums) sum = total - sum;
  }
  return true;
}

// A spelling that ends with a number, with the next one; else "".
std::string next_spelling(const std::string& spelling) {
  const std::size_t last = spelling.rfind('_');
  if (last == std::string::npos) return "";
  std::int64_t number = 0;
  const char *begin = spelling.data() + last + 1, *end = spelling.data() + spelling.size();
  const auto read = std::from_chars(begin, end, number);
  if (read.ec != std::errc() || read.ptr != end) return "";
  return spelling.substr(0, last + 1) + std::to_string(number + 1);
}

bool change_bits(Problem& p, Rng& rng) {
  const std::string drawn = "random_70_" + std::to_string(rng.between(0, 1000));
  const std::string spelling = p.mask.boolean ? next_spelling(p.mask.boolean->spelling) : drawn;
  if (spelling.empty()) return false;
  try {
    p.mask.boolean = Pattern::parse(spelling, p.seqlen_q, p.seqlen_k).boolean;
  } catch (const InvalidProblem&) {  // the number is not free: a path, a size
    return false;
  }
  return p.mask.boolean != nullptr;
}

bool change_strides(Problem& p, Rng& rng) {
  constexpr std::array<Strides, 3> kChoices{Strides::padded, Strides::transposed,
                                            Strides::interleaved};
  if (!p.mask.packed() && chance(rng, 50)) {
    p.layout = p.layout == Layout::bshd ? Layout::bhsd : Layout::bshd;
  }
  p.strides = p.strides == Strides::packed ? pick(rng, kChoices) : Strides::packed;
  return true;
}

bool ask_for_lse(Problem& /*p*/, Rng& /*rng*/) { return true; }

struct Field {
  const char* name;
  Change change;
  bool in_values = true;  // the exact results are others
};

const std::vector<Field>& all_fields() {
  static const std::vector<Field> fields = [] {
    std::vector<Field> all{{"scale", change_scale}};
    // Appended behind all others, so that a seed changes the field that it changed before.
    constexpr std::uint32_t kLast = ATTEST_HEAD_MASK | ATTEST_QUERY_LENGTHS;
    std::vector<Field> last;
    for (const ScoreDraw& draw : score_draws()) {
      const bool in_values = draw.claim != ATTEST_PAGED_KV;
      ((draw.claim & kLast) != 0 ? last : all).push_back({draw.field, draw.change, in_values});
    }
    all.insert(all.end(), {{"window", change_window},
                           {"alignment", change_alignment},
                           {"key lengths", change_key_lengths},
                           {"packed lengths", change_packed_lengths},
                           {"bits of the mask", change_bits},
                           {"strides", change_strides, false},
                           {"LSE", ask_for_lse, false}});
    all.insert(all.end(), last.begin(), last.end());
    return all;
  }();
  return fields;
}

}  // namespace

std::optional<FieldChange> field_change(const attest_description& description, const Case& c) {
  std::vector<std::size_t> order(all_fields().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rank = [&](std::size_t k) { return mix(mix(c.seed, kStream), k); };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  for (const std::size_t k : order) {
    const Field& field = all_fields()[k];
    const bool lse = field.change == ask_for_lse;
    if (lse && (description.features & ATTEST_LSE) == 0) continue;
    Problem changed = c.problem;
    Rng rng(c.seed, mix(kStream, k));
    if (!field.change(changed, rng)) continue;
    if (!lse && changed.to_string() == c.problem.to_string()) continue;
    if (!unclaimed(description, changed, Direction::forward).empty()) continue;
    return FieldChange{field.name, changed, field.in_values,
                       lse ? LseRequest::never : LseRequest::where_claimed};
  }
  return std::nullopt;
}

}  // namespace attest::proptest
