#include "gpu/kernels/flash2_tensor_core.hpp"

#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "core/testing/catch.hpp"
#include "gpu/kernels/flash2_tensor_core.cuh"
#include "gpu/testing/broken_tensor_core.hpp"
#include "gpu/testing/call.hpp"

/// Cases in which every step of a kernel on tensor cores is exact or one rounding that the test can
/// repeat: results are compared bit by bit.
namespace attest::gpu {
namespace {

using testing::Call;
using testing::TensorCoreBug;
using Run = std::function<simt::LaunchReport(EmulatedForward&)>;

/// How many elements of O are not the expected ones rounded to the tensors' type.
template <class Expected>
int wrong(Call& call, const Run& run, const Expected& expected) {
  EmulatedForward forward(call.forward_arguments());
  run(forward);
  testing::Values wanted("wanted", call.problem.dtype, call.problem.o_axes(),
                         attest::Strides::packed);
  wanted.fill_rows(expected);
  const std::vector<std::uint32_t> is = call.O.bits(), should = wanted.bits();
  int count = 0;
  for (std::size_t k = 0; k < is.size(); ++k) count += is[k] != should[k] ? 1 : 0;
  return count;
}

/// Each query has one key whose score is 128 above all others: the others' weights are zero.
int wrong_where_one_key_counts(const std::string& dtype, const Run& run) {
  Call call("sq=70,sk=75,d=8,dv=24,scale=1,dtype=" + dtype);
  const auto chosen = [](std::int64_t query) { return query * 31 % 75; };
  const auto code = [](std::int64_t key, std::int64_t bit) {
    return bit == 7 ? 0 : (key >> bit & 1) != 0 ? 1 : -1;
  };
  const auto value = [](std::int64_t key, std::int64_t column) {
    return (key * 7 + column * 13) % 251;
  };
  call.Q.fill_rows([&](auto i, auto bit) { return 64 * code(chosen(i), bit); });
  call.K.fill_rows(code);
  call.V.fill_rows(value);
  return wrong(call, run, [&](auto i, auto column) { return value(chosen(i), column); });
}

/// All keys count the same, and so many are one; what does not exist would count as zero.
int wrong_where_all_keys_count(const std::string& dtype, const Run& run) {
  Call call("sq=70,sk=75,d=8,mask=causal_br,scale=0,dtype=" + dtype);
  call.V.fill_rows([](auto, auto) { return 1; });
  return wrong(call, run, [](auto, auto) { return 1; });
}

/// Scores x and -x, values 0 and 1: O is the second weight, cast, by the sum of both, not cast.
int wrong_where_two_keys_count(const std::string& dtype, const Run& run) {
  Call call("sq=70,sk=2,d=1,scale=1,dtype=" + dtype);
  const auto x = [](auto i) { return static_cast<float>(i) / 16; };
  call.Q.fill_rows([&](auto i, auto) { return x(i); });
  call.K.fill_rows([](auto j, auto) { return j == 0 ? 1 : -1; });
  call.V.fill_rows([](auto j, auto) { return j; });
  return wrong(call, run, [&](auto i, auto) {
    const float weight = std::exp(-x(i) - x(i));
    const float cast =
        dtype == "bf16" ? to_float(rounded<Bf16>(weight)) : to_float(rounded<F16>(weight));
    return cast * (1 / (1 + weight));
  });
}

Run emulated(const EmulatedKernel& kernel) {
  return [&](EmulatedForward& call) { return kernel.directions().forward.run(call, {}); };
}

Run with(TensorCoreBug bug) {
  return [bug](EmulatedForward& call) { return flash2_tensor_core_with(bug, call, {}); };
}

/// Of 32 banks of a word each, those that eight rows of 16 bytes meet.
std::size_t banks(int stride) {
  std::set<int> met;
  for (int word = 0; word < 8 * 4; ++word) met.insert((word / 4 * stride + word % 4) % 32);
  return met.size();
}

TEST_CASE("eight rows meet all banks", "[gpu][tensor_core]") {
  for (int columns = 1; columns <= WidestTensorTile::kMostColumns; ++columns) {
    INFO(columns);
    CHECK(banks(pair_stride(columns)) == 32);
    CHECK(pair_stride(columns) % 4 == 0);  // rows begin at a multiple of 16 bytes
    CHECK(2 * pair_stride(columns) >= columns);
    CHECK(banks(padded_columns(columns) / 2) < 32);  // without the space between rows
  }
}

TEST_CASE("each element of a fragment meets its own", "[gpu][tensor_core]") {
  CHECK(wrong_where_one_key_counts("bf16", emulated(flash2_tensor_core_kernel())) == 0);
  CHECK(wrong_where_one_key_counts("f16", emulated(flash2_tensor_core_f16_kernel())) == 0);
  CHECK(wrong_where_one_key_counts("f16", with(TensorCoreBug::none)) == 0);
  CHECK(wrong_where_one_key_counts("f16", with(TensorCoreBug::swaps_fragment)) > 0);
  CHECK(wrong_where_one_key_counts("f16", with(TensorCoreBug::waits_for_too_few)) > 0);
}

TEST_CASE("keys that do not exist do not count", "[gpu][tensor_core]") {
  CHECK(wrong_where_all_keys_count("bf16", emulated(flash2_tensor_core_kernel())) == 0);
  CHECK(wrong_where_all_keys_count("f16", emulated(flash2_tensor_core_f16_kernel())) == 0);
  CHECK(wrong_where_all_keys_count("f16", with(TensorCoreBug::none)) == 0);
  CHECK(wrong_where_all_keys_count("f16", with(TensorCoreBug::sees_past_the_end)) > 0);
}

TEST_CASE("two keys: P is cast once, after its row sum", "[gpu][tensor_core]") {
  CHECK(wrong_where_two_keys_count("bf16", emulated(flash2_tensor_core_kernel())) == 0);
  CHECK(wrong_where_two_keys_count("f16", emulated(flash2_tensor_core_f16_kernel())) == 0);
  CHECK(wrong_where_two_keys_count("f16", with(TensorCoreBug::none)) == 0);
  CHECK(wrong_where_two_keys_count("f16", with(TensorCoreBug::casts_twice)) > 0);
}

}  // namespace
}  // namespace attest::gpu
