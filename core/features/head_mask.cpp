#include "core/features/head_mask.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/features/axes_text.hpp"
#include "core/features/drawn_row.hpp"
#include "core/rng.hpp"

namespace attest {
namespace {

constexpr std::int64_t kWhole = 100;

constexpr const char* kExample = "; write for example head_mask=bhqk_60_7, or head_mask=bk_60_7";

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw InvalidProblem("problem: head_mask=" + text + " " + why + kExample);
}

}  // namespace

bool HeadMask::operator()(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
  if (kind == Kind::none) return true;
  const std::array<std::int64_t, 4> at{axes[0] ? b : 0, axes[1] ? h : 0, axes[2] ? i : 0,
                                       axes[3] ? j : 0};
  if (kind == Kind::given) {
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < at.size(); ++axis) {
      place = place * given->extents[axis] + at[axis];
    }
    return given->visible[static_cast<std::size_t>(place)] != 0;
  }
  constexpr std::uint64_t kStream = 0x686d61736bu;
  const auto index = [&at](std::size_t axis) { return static_cast<std::uint64_t>(at[axis]); };
  const std::uint64_t row = drawn_row(seed, kStream, {index(0), index(1), index(2)});
  return static_cast<std::int64_t>(mix(row, index(3)) % kWhole) < percent;
}

HeadMask HeadMask::first_of(std::size_t axis) const {
  HeadMask first = *this;
  first.axes[axis] = false;
  if (kind != Kind::given || !axes[axis]) return first;
  GivenHeadMask values{given->extents, {}};
  std::int64_t& extent = values.extents[axis];
  extent = std::min<std::int64_t>(extent, 1);
  for_each_index(values.extents, [&](auto b, auto h, auto i, auto j) {
    values.visible.push_back((*this)(b, h, i, j) ? 1 : 0);
  });
  first.given = std::make_shared<const GivenHeadMask>(std::move(values));
  return first;
}

std::string HeadMask::to_string() const {
  const std::string text = axes_text(axes);
  if (kind == Kind::given) return text + "_given";
  return text + "_" + std::to_string(percent) + "_" + std::to_string(seed);
}

HeadMask HeadMask::parse(const std::string& text) {
  HeadMask mask;
  if (text == "none") return mask;
  std::string_view rest = text;
  mask.axes = parse_axes(take_word(rest), "problem: head_mask=" + text, kExample);
  const std::string_view percent = take_word(rest);
  if (!read_number(percent, mask.percent) || mask.percent < 0 || mask.percent > kWhole) {
    refuse(text, "has '" + std::string(percent) +
                     "' where the percent of visible entries must stand, from 0 to 100");
  }
  if (!read_number(rest, mask.seed)) refuse(text, "needs a seed below 2^64 at its end");
  mask.kind = Kind::drawn;
  return mask;
}

}  // namespace attest
