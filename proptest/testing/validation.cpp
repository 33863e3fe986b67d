#include "proptest/testing/validation.hpp"

namespace attest::proptest {
namespace {

void measure_each(std::vector<Cell>& cells, const char* title, void (Cell::*measure)()) {
  std::printf("table: %s\n", title);  // ci/theory-tables reads it
  std::printf("%-16s %-4s %-4s %9s %9s %9s %9s %9s\n", "values", "type", "of", "elements", "err/Bd",
              "err/Bp", "med Bp/e", "rms/sigma");
#pragma omp parallel for schedule(dynamic)
  for (Cell& cell : cells) {
    (cell.*measure)();
#pragma omp critical
    cell.print();
  }
}

}  // namespace

void measure_all(std::vector<Cell>& cells, const char* title) {
  measure_each(cells, title, &Cell::measure);
}

void measure_rows_of_all(std::vector<Cell>& cells) {
  measure_each(cells, "rows of LSE", &Cell::measure_rows);
}

void measure_features_of_all(std::vector<Cell>& cells) {
  measure_each(cells, "sinks and biases", &Cell::measure_features);
}

}  // namespace attest::proptest
