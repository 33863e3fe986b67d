// Attention, forward, as a library for `attest certify`: one pass over the keys with a running
// maximum and sum, in float32 and float64 from one template.
//   c++ -O2 -shared -fPIC -I <directory of attest_kernel.h> online_softmax.cpp -o libonline.so
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "attest_kernel.h"

namespace {

// A tensor's elements by index, whatever its strides.
template <typename T>
class View {
 public:
  explicit View(const attest_tensor* tensor)
      : first_(reinterpret_cast<T*>(static_cast<char*>(tensor->data) + tensor->byte_offset)),
        strides_(tensor->strides) {}
  T& operator()(std::int64_t a, std::int64_t b, std::int64_t c) const {
    return first_[a * strides_[0] + b * strides_[1] + c * strides_[2]];
  }
  T& operator()(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) const {
    return (&(*this)(a, b, c))[d * strides_[3]];
  }

 private:
  T* first_;
  const std::int64_t* strides_;
};

template <typename T>
void attend(const attest_forward_args& args) {
  const attest_problem& p = *args.problem;
  const View<T> Q(args.Q), K(args.K), V(args.V), O(args.O);
  const T scale = static_cast<T>(p.softmax_scale);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.num_heads_q; ++h) {
      for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
        T m = -std::numeric_limits<T>::infinity(), l = 0;
        for (std::int64_t c = 0; c < p.head_dim_v; ++c) O(b, i, h, c) = 0;
        for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
          T s = 0;
          for (std::int64_t c = 0; c < p.head_dim_qk; ++c) s += Q(b, i, h, c) * K(b, j, h, c);
          s *= scale;
          const T m_new = std::max(m, s);
          const T rescale = std::exp(m - m_new), weight = std::exp(s - m_new);
          l = l * rescale + weight;
          for (std::int64_t c = 0; c < p.head_dim_v; ++c) {
            O(b, i, h, c) = O(b, i, h, c) * rescale + weight * V(b, j, h, c);
          }
          m = m_new;
        }
        for (std::int64_t c = 0; c < p.head_dim_v; ++c) O(b, i, h, c) /= l;
        if (args.LSE != nullptr) View<T>(args.LSE)(b, h, i) = m + std::log(l);
      }
    }
  }
}

attest_status forward(const void*, const attest_forward_args* args) {
  if (args->problem->dtype == ATTEST_F32) {
    attend<float>(*args);
  } else {
    attend<double>(*args);
  }
  return ATTEST_OK;
}

attest_kernel make_kernel() {
  attest_kernel kernel{};
  kernel.struct_size = sizeof kernel;
  kernel.abi_version = ATTEST_ABI_VERSION;
  attest_description& d = kernel.description;
  d.struct_size = sizeof d;
  d.name = "example/online_softmax";
  d.summary = "one pass over the keys";
  d.device = ATTEST_CPU;
  d.directions = ATTEST_FORWARD;
  d.dtypes = 1u << ATTEST_F32 | 1u << ATTEST_F64;
  d.features =
      ATTEST_HEAD_DIM_V | ATTEST_ANY_SCALE | ATTEST_ANY_STRIDES | ATTEST_LSE | ATTEST_CROSS_LENGTHS;
  d.numerics.struct_size = sizeof d.numerics;
  kernel.forward = forward;
  return kernel;
}

}  // namespace

const attest_kernel* attest_get_kernel(std::uint32_t index) {
  static const attest_kernel kernel = make_kernel();
  return index == 0 ? &kernel : nullptr;
}
