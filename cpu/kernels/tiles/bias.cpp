#include "cpu/kernels/tiles/bias.hpp"

#include <limits>

#include "core/dtype/element.hpp"

namespace attest::cpu {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// Calls visit(element's conversions, its first element) with the type of the tensor.
template <typename Visit>
void with_elements(const attest_tensor& tensor, const Visit& visit) {
  DType dtype = DType::f32;
  for (const DTypeFacts& row : kDTypes) {
    if (row.bits == tensor.dtype.bits && row.dlpack_code == tensor.dtype.code) dtype = row.dtype;
  }
  visit_element(dtype, [&](auto element) {
    using Stored = typename decltype(element)::Stored;
    visit(element, reinterpret_cast<Stored*>(static_cast<char*>(tensor.data) + tensor.byte_offset));
  });
}

}  // namespace

void add_bias(const attest_tensor& bias, std::int64_t b, const ScoreBlock& block, float* S) {
  const std::int64_t* const strides = bias.strides;
  with_elements(bias, [&](auto element, const auto* first) {
    const auto* const head = first + b * strides[0] + block.head * strides[1];
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const auto* const row = head + (block.first + r) * strides[2] + block.key * strides[3];
      float* const scores = S + r * block.keys;
      for (std::int64_t j = 0; j < block.keys; ++j) {
        const auto more = static_cast<float>(element.load(row[j * strides[3]]));
        scores[j] = more == kHidden ? kHidden : scores[j] + more;  // NaN of a hidden key too
      }
    }
  });
}

bool hides(const attest_tensor& bias, std::int64_t b, std::int64_t head, std::int64_t query,
           std::int64_t key) {
  const std::int64_t* const strides = bias.strides;
  bool hidden = false;
  with_elements(bias, [&](auto element, const auto* first) {
    const double value = element.load(
        first[b * strides[0] + head * strides[1] + query * strides[2] + key * strides[3]]);
    hidden = value == -std::numeric_limits<double>::infinity();
  });
  return hidden;
}

void store_bias(const attest_tensor& dBias, const BiasBlock& block, const float* sums) {
  const std::int64_t* const strides = dBias.strides;
  with_elements(dBias, [&](auto element, auto* first) {
    auto* const head = first + block.batch * strides[0] + block.head * strides[1];
    for (std::int64_t r = 0; r < block.rows; ++r) {
      auto* const row = head + (block.first + r) * strides[2] + block.key * strides[3];
      for (std::int64_t j = 0; j < block.keys; ++j) {
        row[j * strides[3]] = element.store(sums[r * block.keys + j]);
      }
    }
  });
}

}  // namespace attest::cpu
