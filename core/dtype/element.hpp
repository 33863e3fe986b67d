#pragma once

#include <cstdint>

#include "core/dtype/dtype.hpp"

/// From a dtype to the type that memory holds: the one list of both.
namespace attest {

/// How an element is stored, and its conversions from float and back.
template <DType>
struct Element;

template <>
struct Element<DType::f64> {
  using Stored = double;
  static float load(double x) { return static_cast<float>(x); }
  static double store(float x) { return x; }
};

template <>
struct Element<DType::f32> {
  using Stored = float;
  static float load(float x) { return x; }
  static float store(float x) { return x; }
};

template <>
struct Element<DType::bf16> {
  using Stored = std::uint16_t;
  static float load(std::uint16_t x) { return float_from_bf16(x); }
  static std::uint16_t store(float x) { return bf16_from_float(x); }
};

template <>
struct Element<DType::f16> {
  using Stored = std::uint16_t;
  static float load(std::uint16_t x) { return float_from_f16(x); }
  static std::uint16_t store(float x) { return f16_from_float(x); }
};

/// Calls visit with the Element of a dtype.
template <class Visit>
decltype(auto) visit_element(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::f64:
      return visit(Element<DType::f64>{});
    case DType::f32:
      return visit(Element<DType::f32>{});
    case DType::bf16:
      return visit(Element<DType::bf16>{});
    case DType::f16:
      break;
  }
  return visit(Element<DType::f16>{});
}

}  // namespace attest
