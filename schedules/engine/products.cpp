#include "schedules/engine/products.hpp"

#include <algorithm>

namespace attest::schedules {
namespace {

// Returns what both orders move.
io::Traffic moves(const ProductTask& task, std::int64_t rows, std::int64_t columns) {
  const io::Amount before = task.sums == Sums::continued ? amount(task.C_before) : io::Amount{};
  return {io::tiles(task.C.columns(), columns) * amount(task.A) +
              io::tiles(task.C.rows(), rows) * amount(task.B) + before,
          amount(task.C),
          {}};
}

}  // namespace

io::Amount amount(const io::SlowMatrix& matrix) {
  return io::Words(matrix.rows()) * matrix.columns() * word(matrix);
}

io::Traffic TiledProduct::cost(const ProductTask& task) const {
  if (task.C.rows() == 0 || task.C.columns() == 0) return {};
  const io::Words i = std::min(rows, task.C.rows()), j = std::min(columns, task.C.columns());
  io::Traffic traffic = moves(task, rows, columns);
  traffic.peak =
      HeadShape::real(i * j) + operands({word(task.A), word(task.B)}, i, j, task.inner());
  return traffic;
}

io::Amount TiledProduct::operands(const ProductWords& words, io::Words i, io::Words j,
                                  io::Words l) const {
  const io::Words panel = std::min(io::Words(depth), l);
  return i * panel * words.a + panel * j * words.b;
}

io::Traffic Rank1Product::cost(const ProductTask& task) const {
  if (task.C.rows() == 0 || task.C.columns() == 0) return {};
  const io::Words i = std::min(rows, task.C.rows()), j = std::min(columns, task.C.columns());
  io::Traffic traffic = moves(task, rows, columns);
  traffic.peak =
      HeadShape::real(i * j) + operands({word(task.A), word(task.B)}, i, j, task.inner());
  return traffic;
}

io::Amount Rank1Product::operands(const ProductWords& words, io::Words i, io::Words, io::Words l) {
  return l > 0 ? i * words.a + words.b : io::Amount{};
}

}  // namespace attest::schedules
