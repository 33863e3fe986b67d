#include "core/tensor.hpp"

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

TEST_CASE("views read and write every dtype through any strides", "[tensor]") {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    Tensor storage("storage", dtype, {{"element", 24, 0}});
    const TensorView transposed("T", storage.view().data(), dtype,
                                {{"row", 3, 1}, {"column", 4, 6}});
    transposed.set(-1.5, 2, 3);
    CHECK(storage(2 + 3 * 6) == -1.5);
    CHECK(transposed(2, 3) == -1.5);
    CHECK(transposed.span_elements() == 21);
    CHECK(transposed.size() == 12);
    CHECK(transposed.permuted({1, 0})(3, 2) == -1.5);
  }
}

TEST_CASE("stride 0 repeats one element", "[tensor]") {
  float value = 3;
  const TensorView view("K", &value, DType::f32, {{"num_heads_kv", 5, 0}, {"head_dim", 1, 1}});
  CHECK(view(4, 0) == 3);
  CHECK(view.span_elements() == 1);
}

TEST_CASE("offsets beyond 2^31 elements do not wrap", "[tensor]") {
  // The view is never read: only the span is computed.
  float value = 0;
  const TensorView view("Q", &value, DType::f32,
                        {{"batch", 3, std::int64_t{1} << 33}, {"head_dim", 2, 1}});
  CHECK(view.span_elements() == (std::int64_t{1} << 34) + 2);
}

TEST_CASE("checked access names the axis", "[tensor]") {
  const Tensor tensor("LSE", DType::f64, {{"batch", 2, 0}, {"num_heads_q", 3, 0}});
  CHECK(tensor.view().at(1, 2) == 0);
  CHECK_THROWS_WITH(tensor.view().at(1, 3), "LSE: index 3 on axis num_heads_q is outside 0 .. 2");
  CHECK_THROWS_AS(tensor.view().at(-1, 0), InternalError);
  CHECK_THROWS_AS(tensor.view().at(0, 0, 1), InternalError);
}

TEST_CASE("bad axes are refused", "[tensor]") {
  float value = 0;
  CHECK_THROWS_WITH(TensorView("Q", &value, DType::f32, {{"batch", -1, 1}}),
                    Catch::Contains("Q: axis batch has extent -1"));
  CHECK_THROWS_AS(TensorView("Q", &value, DType::f32, {{"batch", 1, -1}}), InvalidProblem);
  CHECK_THROWS_AS(TensorView("Q", nullptr, DType::f32, {{"batch", 1, 1}}), InvalidProblem);
  CHECK_NOTHROW(TensorView("Q", nullptr, DType::f32, {{"batch", 0, 1}}));
  CHECK_THROWS_AS(TensorView("Q", &value, DType::f32, std::vector<Axis>(5, {"axis", 1, 1})),
                  InvalidProblem);
}

TEST_CASE("16-bit stores round a double once", "[tensor]") {
  // 1 + 2^-8 is a tie between two bf16 values; 2^-40 more decides upwards. Rounding to float first
  // would lose it and fall back to the even value 1.
  CHECK(round_to(DType::bf16, 1 + 0x1p-8 + 0x1p-40) == 1 + 0x1p-7);
  CHECK(round_to(DType::bf16, 1 + 0x1p-8) == 1);
  CHECK(round_to(DType::bf16, -(1 + 0x1p-8 + 0x1p-40)) == -(1 + 0x1p-7));
  CHECK(round_to(DType::f16, 1 + 0x1p-11 + 0x1p-40) == 1 + 0x1p-10);
  CHECK(round_to(DType::f16, 1 + 0x1p-11) == 1);
  CHECK(round_to(DType::f16, 0x1p-25 + 0x1p-60) == 0x1p-24);
  CHECK(round_to(DType::f32, 0.1) == static_cast<double>(0.1f));
  CHECK(round_to(DType::f64, 0.1) == 0.1);
  CHECK(std::isnan(round_to(DType::bf16, std::nan(""))));
  CHECK(round_to(DType::f16, 1e300) == std::numeric_limits<double>::infinity());
  CHECK(round_to(DType::bf16, -1e300) == -std::numeric_limits<double>::infinity());
}

TEST_CASE("copies own their memory", "[tensor]") {
  Tensor first("O", DType::f32, {{"row", 2, 0}});
  first.set(1, 0);
  Tensor second = first;
  second.set(2, 0);
  CHECK(first(0) == 1);
  CHECK(second(0) == 2);
  const Tensor empty;
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): copying is under test
  const Tensor copy = empty;
  CHECK(copy.view().rank() == 0);
  Tensor none("K", DType::f32, {{"seqlen_k", 0, 0}, {"head_dim", 4, 0}});
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): copying is under test
  const Tensor none_copy = none;
  CHECK(none_copy.view().size() == 0);
}

TEST_CASE("the ABI form of a view comes back equal", "[tensor]") {
  Tensor storage("storage", DType::bf16, {{"element", 64, 0}});
  const TensorView view("V", storage.view().data(), DType::bf16,
                        {{"batch", 2, 30}, {"seqlen_k", 3, 7}, {"head_dim_v", 2, 3}});
  const AbiTensor form(view);
  const TensorView back = view_of(*form.get(), "V", {"batch", "seqlen_k", "head_dim_v"});
  CHECK(back.data() == view.data());
  CHECK(back.dtype() == DType::bf16);
  CHECK(back.stride(1) == 7);
  CHECK(back.extent(2) == 2);
  CHECK_THROWS_WITH(view_of(*form.get(), "V", {"batch"}), Catch::Contains("3 axes, but 1"));
  attest_tensor unknown = *form.get();
  unknown.dtype.bits = 8;
  CHECK_THROWS_AS(view_of(unknown, "V", {"a", "b", "c"}), InvalidProblem);
  attest_tensor shifted = *form.get();
  shifted.byte_offset = 6;
  CHECK(view_of(shifted, "V", {"a", "b", "c"}).data() == static_cast<std::byte*>(view.data()) + 6);
}

TEST_CASE("raw bits tell zeros apart", "[tensor]") {
  Tensor tensor("O", DType::f32, {{"row", 2, 0}});
  tensor.set(-0.0, 1);
  CHECK(tensor.view().bits(0) == 0);
  CHECK(tensor.view().bits(1) == 0x80000000u);
}

}  // namespace
}  // namespace attest
