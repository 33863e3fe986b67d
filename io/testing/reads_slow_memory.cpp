// Compiled by CTest with ATTEST_READ = none, and with the ways a schedule could read slow memory
// without paying, each of which the compiler must refuse.
#include "io/machine/counting_machine.hpp"

namespace {

template <attest::io::Machine M>
float none(M& machine, const attest::io::SlowMatrix& K) {
  const auto tile = machine.load(K, "K");
  return static_cast<float>(tile.rows());
}

#define ATTEST_IS_none 1
#define ATTEST_IS_element 2
#define ATTEST_IS_address 3
#define ATTEST_IS_inherited 4
#define ATTEST_IS_tile 5
#define ATTEST_JOIN(a, b) a##b
#define ATTEST_WAY(name) ATTEST_JOIN(ATTEST_IS_, name)

#if ATTEST_WAY(ATTEST_READ) == 2
float element(attest::io::CountingMachine&, const attest::io::SlowMatrix& K) { return K(0, 0); }
#elif ATTEST_WAY(ATTEST_READ) == 3
float address(attest::io::CountingMachine&, const attest::io::SlowMatrix& K) {
  return *static_cast<const float*>(static_cast<const void*>(K.data_));
}
#elif ATTEST_WAY(ATTEST_READ) == 4
struct Thief : attest::io::SlowAccess {
  static float take(const attest::io::SlowMatrix& K) { return *packed_rows(K); }
};
float inherited(attest::io::CountingMachine&, const attest::io::SlowMatrix& K) {
  return Thief::take(K);
}
#elif ATTEST_WAY(ATTEST_READ) == 5
// Arithmetic outside of an operation: the elements of a tile are not the schedule's to see.
float tile(attest::io::CountingMachine& machine, const attest::io::SlowMatrix& K) {
  const auto loaded = machine.load(K, "K");
  return loaded.held_.piece.first + 0.0f;
}
#endif

}  // namespace

float read(attest::io::CountingMachine& machine, const attest::io::SlowMatrix& K) {
  return ATTEST_READ(machine, K);
}
