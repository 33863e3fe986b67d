#include "core/contract/conventions.hpp"

#include <limits>

namespace attest {

EmptyRowValues values_of(EmptyRow convention) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  switch (convention) {
    case EmptyRow::zero_neg_inf:
      return {0, -kInfinity};
    case EmptyRow::zero_pos_inf:
      return {0, kInfinity};
    case EmptyRow::nan:
      return {kNan, kNan};
    case EmptyRow::zero_zero:
      break;
  }
  return {0, 0};
}

std::string_view name(EmptyRow convention) {
  switch (convention) {
    case EmptyRow::zero_neg_inf:
      return "zero_neg_inf";
    case EmptyRow::zero_pos_inf:
      return "zero_pos_inf";
    case EmptyRow::nan:
      return "nan";
    case EmptyRow::zero_zero:
      break;
  }
  return "zero_zero";
}

std::string_view name(LseBase base) { return base == LseBase::e ? "e" : "two"; }

std::string_view name(PastLength rows) {
  return rows == PastLength::empty_row ? "empty_row" : "not_written";
}

std::string_view name(Layout layout) {
  switch (layout) {
    case Layout::bshd:
      return "bshd";
    case Layout::bhsd:
      return "bhsd";
    case Layout::thd:
      break;
  }
  return "thd";
}

std::string_view name(Strides strides) {
  switch (strides) {
    case Strides::packed:
      return "packed";
    case Strides::padded:
      return "padded";
    case Strides::transposed:
      return "transposed";
    case Strides::interleaved:
      return "interleaved";
    case Strides::broadcast:
      return "broadcast";
    case Strides::huge:
      return "huge";
    case Strides::mixed:
      break;
  }
  return "mixed";
}

}  // namespace attest
