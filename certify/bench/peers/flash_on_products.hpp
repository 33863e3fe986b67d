#pragma once

#include "core/abi/attest_kernel.h"

namespace attest::certify {

/// Operands of C(m, n) = A(m, k) op(B) + C, column after column; without `adds` C is written. op(B)
/// is B(k, n), or the transpose of B(n, k).
struct PeerProduct {
  bool transposes, adds;
  int m, n, k;
  const float* A;
  int lda;
  const float* B;
  int ldb;
  float* C;
  int ldc;
};

/// A library's product of matrices under the name of its peer; returns false where it has none for
/// such operands. It runs on the thread that calls it.
struct PeerLibrary {
  const char *name, *summary;
  bool (*multiply)(const PeerProduct&);
};

/// Returns the flash schedule of cpu/flash2, tiles of 192 queries against 96 keys, over a library's
/// product: a block of Q is packed once, queries are the rows of every product, K and V are read
/// where they lie. Forward, f32, causal masks, innermost stride 1; else ATTEST_UNSUPPORTED. OpenMP
/// over blocks. `library` must live as long as the kernel.
/// [certify/bench/peers/flash_on_products_test]
attest_kernel flash_on(PeerLibrary& library);

}  // namespace attest::certify
