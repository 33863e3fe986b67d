#include "reference/vector_product.hpp"

#include "core/rng.hpp"
#include "core/testing/catch.hpp"

using attest::Rng;
using namespace attest::reference;

namespace {

Matrix random_integers(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed) {
  Rng rng(seed);
  Matrix matrix(rows, columns);
  for (Eigen::Index k = 0; k < matrix.size(); ++k) {
    matrix.data()[k] = static_cast<double>(rng.between(-8, 8));
  }
  return matrix;
}

TEST_CASE("products of integers are exact in every shape", "[reference]") {
  for (const Eigen::Index rows : {1, 3, 4, 9, 70}) {
    for (const Eigen::Index columns : {1, 7, 8, 21}) {
      for (const Eigen::Index depth : {1, 5, 256, 300}) {
        const Matrix A = random_integers(rows, depth, 1), B = random_integers(depth, columns, 2);
        const Matrix exact = A * B;
        CAPTURE(rows, columns, depth);
        CHECK(product(A, B) == exact);
        CHECK(transposed_product(Matrix(A.transpose()), B) == exact);
        Matrix C = Matrix::Constant(rows, columns, 1);
        add_product(A, B, C);
        CHECK(C == (exact.array() + 1).matrix());
        add_transposed_product(Matrix(A.transpose()), B, C);
        CHECK(C == (2 * exact.array() + 1).matrix());
      }
    }
  }
}

TEST_CASE("products of blocks of wider matrices touch nothing else", "[reference]") {
  const Matrix A = random_integers(5, 12, 1), B = random_integers(10, 19, 2);
  Matrix C = Matrix::Zero(9, 30), exact = C;
  add_product(A.middleCols(2, 4), B.block(4, 3, 4, 11), C.block(1, 5, 5, 11));
  exact.block(1, 5, 5, 11) = A.middleCols(2, 4) * B.block(4, 3, 4, 11);
  CHECK(C == exact);
  add_transposed_product(A.middleCols(2, 4), B.block(4, 3, 5, 11), C.block(2, 17, 4, 11));
  exact.block(2, 17, 4, 11) = A.middleCols(2, 4).transpose() * B.block(4, 3, 5, 11);
  CHECK(C == exact);
}

}  // namespace
