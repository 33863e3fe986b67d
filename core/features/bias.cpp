#include "core/features/bias.hpp"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/features/axes_text.hpp"
#include "core/features/drawn_row.hpp"
#include "core/rng.hpp"
#include "core/tensor.hpp"

namespace attest {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

// Uniform on [0, 1).
double unit_of(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

constexpr const char* kExample = "; write for example bias=bhqk_drawn_7, or bias=k_f32_holes_7";

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw InvalidProblem("problem: bias=" + text + " " + why + kExample);
}

// Tells whether the key is hidden, alone or with all keys of the row.
bool is_hole(std::uint64_t row, std::uint64_t entry, bool of_rows, bool of_keys) {
  constexpr std::uint64_t kRowStream = 0x726f77u, kKeyStream = 0x6b6579u;
  constexpr double kRows = 0.125, kKeys = 0.25;
  if (of_rows && unit_of(mix(row, kRowStream)) < kRows) return true;
  return of_keys && unit_of(mix(entry, kKeyStream)) < kKeys;
}

}  // namespace

double Bias::operator()(DType held, std::int64_t b, std::int64_t h, std::int64_t i,
                        std::int64_t j) const {
  const auto at = [this](std::size_t axis, std::int64_t index) {
    return static_cast<std::uint64_t>(axes[axis] ? index : 0);
  };
  if (kind == Kind::none) return 0;
  if (kind == Kind::given) {
    const auto place = [&](std::size_t axis, std::int64_t index) {
      return static_cast<std::int64_t>(at(axis, index));
    };
    return (*given)(place(0, b), place(1, h), place(2, i), place(3, j));
  }
  constexpr std::uint64_t kStream = 0x62696173u, kFar = 16;
  const std::uint64_t row = drawn_row(seed, kStream, {at(0, b), at(1, h), at(2, i)}),
                      entry = mix(row, at(3, j));
  const bool of_rows = axes[0] || axes[1] || axes[2];
  if (kind == Kind::holes && is_hole(row, entry, of_rows, axes[3])) return kHidden;
  const double usual = 8 * unit_of(entry) - 4;
  const std::uint64_t far = mix(entry, kStream) % kFar;
  const double value = far == 0 ? usual + 12 : far == 1 ? usual - 12 : usual;
  return round_to(held, value);
}

Bias Bias::first_of(std::size_t axis) const {
  Bias first = *this;
  first.axes[axis] = false;
  if (kind != Kind::given || !axes[axis]) return first;
  GivenBias values{given->extents, {}};
  std::int64_t& extent = values.extents[axis];
  extent = std::min<std::int64_t>(extent, 1);
  for_each_index(values.extents, [&](auto b, auto h, auto i, auto j) {
    values.values.push_back((*given)(b, h, i, j));
  });
  first.given = std::make_shared<const GivenBias>(std::move(values));
  return first;
}

std::string Bias::to_string() const {
  std::string text = axes_text(axes);
  if (single) text += "_f32";
  if (kind == Kind::given) return text + "_given";
  return text + (kind == Kind::holes ? "_holes_" : "_drawn_") + std::to_string(seed);
}

Bias Bias::parse(const std::string& text) {
  Bias bias;
  if (text == "none") return bias;
  std::string_view rest = text;
  bias.axes = parse_axes(take_word(rest), "problem: bias=" + text, kExample);
  std::string_view values = take_word(rest);
  if (values == "f32") {
    bias.single = true;
    values = take_word(rest);
  }
  if (values != "drawn" && values != "holes") {
    refuse(text,
           "has '" + std::string(values) + "' where its values must be named, drawn or holes");
  }
  bias.kind = values == "drawn" ? Kind::drawn : Kind::holes;
  if (!read_number(rest, bias.seed)) refuse(text, "needs a seed below 2^64 at its end");
  return bias;
}

}  // namespace attest
