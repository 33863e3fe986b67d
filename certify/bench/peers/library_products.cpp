#include "certify/bench/peers/library_products.hpp"

#ifdef ATTEST_HAS_OPENBLAS
#include <cblas.h>
#endif
#ifdef ATTEST_HAS_ONEDNN
#include <dnnl.h>
#endif
#ifdef ATTEST_HAS_LIBXSMM
#include <libxsmm.h>
#endif

namespace attest::certify {
namespace {

#ifdef ATTEST_HAS_OPENBLAS
bool multiply_openblas(const PeerProduct& p) {
  openblas_set_num_threads(1);
  cblas_sgemm(CblasColMajor, CblasNoTrans, p.transposes ? CblasTrans : CblasNoTrans, p.m, p.n, p.k,
              1, p.A, p.lda, p.B, p.ldb, p.adds ? 1.0f : 0.0f, p.C, p.ldc);
  return true;
}
#endif

#ifdef ATTEST_HAS_ONEDNN
// Its matrices lie row after row, so that C is transposed, and the operands change places.
bool multiply_onednn(const PeerProduct& p) {
  return dnnl_sgemm(p.transposes ? 'T' : 'N', 'N', p.n, p.m, p.k, 1, p.B, p.ldb, p.A, p.lda,
                    p.adds ? 1.0f : 0.0f, p.C, p.ldc) == dnnl_success;
}
#endif

#ifdef ATTEST_HAS_LIBXSMM
bool multiply_libxsmm(const PeerProduct& p) {
  const float alpha = 1, beta = p.adds ? 1.0f : 0.0f;
  const int flags = p.transposes ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  const libxsmm_smmfunction kernel =
      libxsmm_smmdispatch(p.m, p.n, p.k, &p.lda, &p.ldb, &p.ldc, &alpha, &beta, &flags, nullptr);
  if (kernel == nullptr) return false;
  kernel(p.A, p.B, p.C);
  return true;
}
#endif

}  // namespace

std::vector<PeerLibrary>& peer_libraries() {
  static std::vector<PeerLibrary> all{
#ifdef ATTEST_HAS_OPENBLAS
      {"openblas/flash", "the flash schedule on OpenBLAS's products", multiply_openblas},
#endif
#ifdef ATTEST_HAS_ONEDNN
      {"onednn/flash", "the flash schedule on oneDNN's products", multiply_onednn},
#endif
#ifdef ATTEST_HAS_LIBXSMM
      {"libxsmm/flash", "the flash schedule on libxsmm's products", multiply_libxsmm},
#endif
  };
  return all;
}

}  // namespace attest::certify
