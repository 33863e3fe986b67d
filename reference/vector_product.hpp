#pragma once

#include "reference/group.hpp"

/// Products of matrices for the error bounds, compiled for the processor's own vector width: Eigen
/// here is limited to the baseline one, and the bounds are mostly products (decision 0005). The
/// truth itself stays with Eigen.
namespace attest::reference {

/// C += A B. Shapes: A (rows, depth), B (depth, columns), C (rows, columns); blocks of wider
/// matrices too.
/// Ensures: each sum in ascending order, the same bits on every processor.
/// [reference/vector_product_test]
void add_product(const Eigen::Ref<const Matrix>& A, const Eigen::Ref<const Matrix>& B,
                 Eigen::Ref<Matrix> C);

/// C += A^T B. Shapes: A (depth, rows), B (depth, columns).
/// [reference/vector_product_test]
void add_transposed_product(const Eigen::Ref<const Matrix>& A, const Eigen::Ref<const Matrix>& B,
                            Eigen::Ref<Matrix> C);

/// A B and A^T B; large ones on all threads.  [reference/vector_product_test]
Matrix product(const Eigen::Ref<const Matrix>& A, const Eigen::Ref<const Matrix>& B);
Matrix transposed_product(const Eigen::Ref<const Matrix>& A, const Eigen::Ref<const Matrix>& B);

}  // namespace attest::reference
