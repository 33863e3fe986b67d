#include "proptest/signatures/exchanged.hpp"

#include <array>
#include <cstddef>
#include <utility>

namespace attest::proptest {
namespace {

// The tensor read with two of its axes exchanged, which have one extent.
Tensor exchanged(const Tensor& tensor, std::size_t a, std::size_t b) {
  Tensor result = tensor;
  const TensorView& view = result.view();
  std::array<std::int64_t, 4> at{};
  for (at[0] = 0; at[0] < view.extent(0); ++at[0]) {
    for (at[1] = 0; at[1] < view.extent(1); ++at[1]) {
      for (at[2] = 0; at[2] < view.extent(2); ++at[2]) {
        for (at[3] = 0; at[3] < view.extent(3); ++at[3]) {
          std::array<std::int64_t, 4> from = at;
          std::swap(from[a], from[b]);
          view.set(tensor(from[0], from[1], from[2], from[3]), at[0], at[1], at[2], at[3]);
        }
      }
    }
  }
  return result;
}

bool alike(const Tensor& tensor, std::size_t a, std::size_t b) {
  return tensor.view().extent(a) > 1 && tensor.view().extent(a) == tensor.view().extent(b);
}

}  // namespace

std::vector<ExchangedInputs> exchanged_inputs(const InputValues& values) {
  constexpr std::size_t kBatch = 0, kKeys = 1, kHeads = 2, kColumns = 3;
  std::vector<ExchangedInputs> list;
  const auto both = [&](const char* name, const char* words, std::size_t a, std::size_t b) {
    if (!alike(values.K, a, b)) return;
    list.push_back({name, words, values});
    list.back().values.K = exchanged(values.K, a, b);
    list.back().values.V = exchanged(values.V, a, b);
  };
  both("batch_head_exchanged", "where K and V are read with batch and head exchanged", kBatch,
       kHeads);
  both("head_key_exchanged", "where K and V are read with head and key exchanged", kHeads, kKeys);
  if (alike(values.K, kKeys, kColumns)) {
    list.push_back({"k_transposed", "where K is read with key and column exchanged", values});
    list.back().values.K = exchanged(values.K, kKeys, kColumns);
  }
  if (alike(values.V, kKeys, kColumns)) {
    list.push_back({"v_transposed", "where V is read with key and column exchanged", values});
    list.back().values.V = exchanged(values.V, kKeys, kColumns);
  }
  return list;
}

}  // namespace attest::proptest
