#include "core/features/bias.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/tensor.hpp"

namespace attest {
namespace {

constexpr std::string_view kLetters = "bhqk";
constexpr double kHidden = -std::numeric_limits<double>::infinity();

// Uniform on [0, 1).
double unit_of(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw InvalidProblem("problem: bias=" + text + " " + why +
                       "; write for example bias=bhqk_drawn_7, or bias=k_f32_holes_7");
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
  const std::uint64_t row = mix(mix(mix(mix(seed, kStream), at(0, b)), at(1, h)), at(2, i)),
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
  for (std::int64_t b = 0; b < values.extents[0]; ++b) {
    for (std::int64_t h = 0; h < values.extents[1]; ++h) {
      for (std::int64_t i = 0; i < values.extents[2]; ++i) {
        for (std::int64_t j = 0; j < values.extents[3]; ++j) {
          values.values.push_back((*given)(b, h, i, j));
        }
      }
    }
  }
  first.given = std::make_shared<const GivenBias>(std::move(values));
  return first;
}

std::string Bias::to_string() const {
  std::string text;
  for (std::size_t axis = 0; axis < kLetters.size(); ++axis) {
    if (axes[axis]) text += kLetters[axis];
  }
  if (text.empty()) text = "1";
  if (single) text += "_f32";
  if (kind == Kind::given) return text + "_given";
  return text + (kind == Kind::holes ? "_holes_" : "_drawn_") + std::to_string(seed);
}

Bias Bias::parse(const std::string& text) {
  Bias bias;
  if (text == "none") return bias;
  std::string_view rest = text;
  const auto word = [&rest] {
    const std::string_view first = rest.substr(0, rest.find('_'));
    rest.remove_prefix(std::min(first.size() + 1, rest.size()));
    return first;
  };
  const std::string_view letters = word();
  std::size_t axis = 0;
  for (const char letter : letters == "1" ? std::string_view() : letters) {
    axis = kLetters.find(letter, axis);
    if (axis == std::string_view::npos) {
      refuse(text, "begins with '" + std::string(letters) +
                       "'; it must begin with the axes that it depends on, letters of bhqk (batch, "
                       "head, query, key) in this order, or 1 for none of them");
    }
    bias.axes[axis++] = true;
  }
  std::string_view values = word();
  if (letters.empty()) refuse(text, "names no axes");
  if (values == "f32") {
    bias.single = true;
    values = word();
  }
  if (values != "drawn" && values != "holes") {
    refuse(text,
           "has '" + std::string(values) + "' where its values must be named, drawn or holes");
  }
  bias.kind = values == "drawn" ? Kind::drawn : Kind::holes;
  const char *const begin = rest.data(), *const last = rest.data() + rest.size();
  const auto [end, error] = std::from_chars(begin, last, bias.seed);
  if (rest.empty() || error != std::errc() || end != last) {
    refuse(text, "needs a seed below 2^64 at its end");
  }
  return bias;
}

}  // namespace attest
