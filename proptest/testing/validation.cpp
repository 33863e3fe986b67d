#include "proptest/testing/validation.hpp"

namespace attest::proptest {

void measure_all(std::vector<Cell>& cells) {
  std::printf("%-16s %-4s %-4s %9s %9s %9s %9s %9s\n", "values", "type", "of", "elements", "err/Bd",
              "err/Bp", "med Bp/e", "rms/sigma");
#pragma omp parallel for schedule(dynamic)
  for (Cell& cell : cells) {
    cell.measure();
#pragma omp critical
    cell.print();
  }
}

}  // namespace attest::proptest
