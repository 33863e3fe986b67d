#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/testing/catch.hpp"
#include "schedules/dense/flash2.hpp"
#include "schedules/engine/family.hpp"

/// Schedules that take words from slow memory, or put them there, without a load or store: counted
/// too low. And how a process ends.
namespace attest::schedules::testing {

/// Where a matrix lies, taken out of its handle behind the back of the types.
inline float* stolen_address(const io::SlowMatrix& matrix) {
  float* data = nullptr;
  std::memcpy(&data, reinterpret_cast<const std::byte*>(&matrix) + sizeof(const char*),
              sizeof data);
  return data;
}

/// Copies a row of slow memory into a tile.
struct TakeRow {
  const float* row;
  void operator()(io::TileView tile) const { std::copy_n(row, tile.columns, tile.row(0)); }
};

/// Copies a row of a tile to slow memory.
struct PutRow {
  float* row;
  void operator()(io::TileView tile) const { std::copy_n(tile.row(0), tile.columns, row); }
};

template <class R, class Tile>
void trace(R& recorder, const TakeRow&, const Tile& tile) {
  trace(recorder, Fill{0}, tile);
}
template <class R, class Tile>
void trace(R& recorder, const PutRow&, const Tile& tile) {
  trace(recorder, Fill{0}, tile);
}

/// O = V for one query and one key, V not loaded.
struct BypassingLoad {
  using Head = ForwardHead;
  static constexpr const char* kName = "bypassing_load";
  static std::vector<Parameter<BypassingLoad>> parameters() { return {}; }

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    auto O = machine.scratch(1, head.V.columns(), "O");
    machine.compute(TakeRow{stolen_address(head.V)}, O);
    machine.store(O, head.O);
  }
  io::Traffic cost(const ForwardHead& head) const { return Flash2{1, 1}.cost(head); }
};

/// The same, V loaded and O not stored.
struct BypassingStore {
  using Head = ForwardHead;
  static constexpr const char* kName = "bypassing_store";
  static std::vector<Parameter<BypassingStore>> parameters() { return {}; }

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    auto V = machine.scratch(1, head.V.columns(), "V");
    machine.load_into(V, head.V);
    machine.compute(PutRow{stolen_address(head.O)}, V);
  }
  io::Traffic cost(const ForwardHead& head) const { return Flash2{1, 1}.cost(head); }
};

/// How a process ends that does this.
template <class Body>
int status_of(const Body& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    std::signal(SIGBUS, SIG_DFL);
    body();
    _exit(0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

inline bool died(int status) { return WIFSIGNALED(status) || WEXITSTATUS(status) != 0; }

}  // namespace attest::schedules::testing
