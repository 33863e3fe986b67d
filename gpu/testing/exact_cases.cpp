#include "gpu/testing/exact_cases.hpp"

#include <array>
#include <cmath>
#include <vector>

#include "gpu/kernels/kernels.hpp"
#include "gpu/kernels/tiles/sixteen_bit.cuh"
#include "gpu/testing/call.hpp"

namespace attest::gpu::testing {
namespace {

using attest::testing::spelled;

// value(row, column) for every head and batch entry; a tensor like LSE has one column.
template <class Value>
void fill_rows(const StoredTensor& tensor, const Value& value) {
  const TensorView& view = tensor.view();
  attest::testing::for_each_element(view, [&](auto... index) {
    const std::array<std::int64_t, 4> at{index...};
    view.set(static_cast<double>(view.rank() == 3 ? value(at[2], 0) : value(at[1], at[3])),
             index...);
  });
}

// How many elements of O are not the expected ones rounded to the tensors' type.
template <class Expected>
int wrong(const EmulatedKernel& of, Call& call, const RunForward& run, const Expected& expected) {
  EmulatedForward forward(call.forward_arguments(of.abi()));
  run(forward);
  StoredTensor wanted("wanted", call.problem.dtype, spelled(call.problem.o_axes()));
  fill_rows(wanted, expected);
  const std::vector<std::uint64_t> is = call.O.bits(), should = wanted.bits();
  int count = 0;
  for (std::size_t k = 0; k < is.size(); ++k) count += is[k] != should[k] ? 1 : 0;
  return count;
}

}  // namespace

int wrong_where_one_key_counts(const EmulatedKernel& of, const std::string& dtype,
                               const RunForward& run) {
  Call call("sq=70,sk=75,d=8,dv=24,scale=1,dtype=" + dtype);
  const auto chosen = [](std::int64_t query) { return query * 31 % 75; };
  const auto code = [](std::int64_t key, std::int64_t bit) {
    return bit == 7 ? 0 : (key >> bit & 1) != 0 ? 1 : -1;
  };
  const auto value = [](std::int64_t key, std::int64_t column) {
    return (key * 7 + column * 13) % 251;
  };
  fill_rows(call.Q, [&](auto i, auto bit) { return 64 * code(chosen(i), bit); });
  fill_rows(call.K, code);
  fill_rows(call.V, value);
  return wrong(of, call, run, [&](auto i, auto column) { return value(chosen(i), column); });
}

int wrong_where_all_keys_count(const EmulatedKernel& of, const std::string& dtype,
                               const RunForward& run) {
  Call call("sq=70,sk=75,d=8,mask=causal_br,scale=0,dtype=" + dtype);
  fill_rows(call.V, [](auto, auto) { return 1; });
  return wrong(of, call, run, [](auto, auto) { return 1; });
}

int wrong_where_two_keys_count(const EmulatedKernel& of, const std::string& dtype,
                               const RunForward& run) {
  Call call("sq=70,sk=2,d=1,scale=1,dtype=" + dtype);
  const auto x = [](auto i) { return static_cast<float>(i) / 16; };
  fill_rows(call.Q, [&](auto i, auto) { return x(i); });
  fill_rows(call.K, [](auto j, auto) { return j == 0 ? 1 : -1; });
  fill_rows(call.V, [](auto j, auto) { return j; });
  return wrong(of, call, run, [&](auto i, auto) {
    const float weight = std::exp(-x(i) - x(i));
    const float cast =
        dtype == "bf16" ? to_float(rounded<Bf16>(weight)) : to_float(rounded<F16>(weight));
    return cast * (1 / (1 + weight));
  });
}

int wrong_gradients(const EmulatedKernel& of, const std::string& dtype, std::int64_t queries,
                    const RunBackward& run) {
  const bool bf16 = dtype == "bf16";
  Call call("sq=" + std::to_string(queries) + ",sk=75,d=8,dv=24,scale=1,dtype=" + dtype);
  const auto chosen = [](std::int64_t query) { return query * 31 % 40; };
  const auto code = [](std::int64_t key, std::int64_t bit) {
    return bit == 7 ? 0 : (key >> bit & 1) != 0 ? 1 : -1;
  };
  const auto given = [](std::int64_t query, std::int64_t column) {
    return (query * 5 + column * 3) % 4;
  };
  // As many bits as the type has.
  const auto dLSE = [&](std::int64_t query, std::int64_t) {
    return static_cast<double>(1 + query % 2) * (bf16 ? 1 + 0x1p-6 : 1 + 0x1p-9);
  };
  fill_rows(call.Q, [&](auto i, auto bit) { return 64 * code(chosen(i), bit); });
  fill_rows(call.K, code);
  fill_rows(call.V, [](auto key, auto column) { return (key * 7 + column * 13) % 8; });
  fill_rows(call.dO, given);
  fill_rows(call.dLSE, dLSE);
  EmulatedForward forward(call.forward_arguments(flash2_tensor_core_kernel().abi()));
  flash2_tensor_core_kernel().directions().forward.run(forward, {});
  EmulatedBackward backward(call.backward_arguments(of.abi()));
  run(backward);

  const auto over_queries = [&](std::int64_t key, const auto& term) {
    double sum = 0;
    for (std::int64_t i = 0; i < queries; ++i) sum += chosen(i) == key ? term(i) : 0.0;
    return sum;
  };
  StoredTensor dQ("dQ", call.problem.dtype, spelled(call.problem.q_axes())),
      dK("dK", call.problem.dtype, spelled(call.problem.k_axes())),
      dV("dV", call.problem.dtype, spelled(call.problem.v_axes()));
  fill_rows(dQ, [&](auto i, auto bit) { return dLSE(i, 0) * code(chosen(i), bit); });
  fill_rows(dK, [&](auto key, auto bit) {
    return over_queries(key, [&](auto i) { return dLSE(i, 0) * 64 * code(key, bit); });
  });
  fill_rows(dV, [&](auto key, auto column) {
    return over_queries(key, [&](auto i) { return static_cast<double>(given(i, column)); });
  });
  const std::vector<std::uint64_t> is = bits_of({&call.dQ, &call.dK, &call.dV}),
                                   should = bits_of({&dQ, &dK, &dV});
  int count = 0;
  for (std::size_t k = 0; k < is.size(); ++k) count += is[k] != should[k] ? 1 : 0;
  return count;
}

}  // namespace attest::gpu::testing
