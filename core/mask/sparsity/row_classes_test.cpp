#include "core/mask/sparsity/row_classes.hpp"

#include "core/testing/catch.hpp"

namespace attest {
namespace {

TEST_CASE("rows that are equal", "[core]") {
  const BooleanMatrix matrix{4, 3, {1, 0, 1, 0, 0, 0, 1, 0, 1, 1, 1, 1}};
  CHECK(row_classes(matrix) == std::vector<std::vector<std::int64_t>>{{0, 2}, {1}, {3}});
  CHECK(row_classes(matrix.transposed()) == std::vector<std::vector<std::int64_t>>{{0, 2}, {1}});
  CHECK(matrix.transposed().transposed().entries == matrix.entries);
  CHECK(row_classes({}).empty());
}

}  // namespace
}  // namespace attest
