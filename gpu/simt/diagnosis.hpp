#pragma once

#include <cstdint>
#include <cstring>
#include <string>

/// Diagnoses: what the emulation finds wrong with a kernel.
namespace attest::simt {

/// A place in a source file; as a default argument, that of the call.
struct SourceLine {
  const char* file = "";
  int line = 0;

  static constexpr SourceLine here(const char* file = __builtin_FILE(),
                                   int line = __builtin_LINE()) {
    return {file, line};
  }
  /// "flash2.cuh:17", without folders.
  std::string to_string() const;

  friend bool operator==(const SourceLine& a, const SourceLine& b) {
    return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
  }
};

/// Three coordinates as CUDA has them.
struct Index3 {
  unsigned x = 0, y = 0, z = 0;

  friend bool operator==(const Index3&, const Index3&) = default;
};

enum class Fault : std::uint8_t {
  deadlock,       // no lane can go on
  divergence,     // lanes of one collective or barrier came from different calls
  exited_lane,    // a collective needs a lane that has returned or never was
  outside_mask,   // a lane is not in its own mask, or reads from a lane that is not
  shuffle_width,  // no power of two from 1 to 32
  shared_budget,  // more shared memory than the block may have
  misaligned,     // a wide access that is not a multiple of its size
  out_of_bounds,  // beyond shared memory, or beyond a tensor
  uninitialised,  // shared memory is read before anything was written
  race,           // two lanes, one writes, nothing orders them
  async_pending,  // read or written while an asynchronous instruction is under way there
  mbarrier,       // not initialised, not yet seen initialised, more arrivals than it counts
  transactions,   // an mbarrier expects other bytes than arrive
  missing_fence,  // an asynchronous instruction may not see what came before it
  uncounted,      // global memory accessed past the traffic policy
  exception,      // the kernel's code threw
};

/// "deadlock", "divergence", ...
const char* name(Fault fault);

/// Fault found in an access, before it is known where the access stands.
struct Finding {
  Fault fault = Fault::deadlock;
  std::string text;
};

struct Diagnosis {
  Fault fault = Fault::deadlock;
  std::string text;  // what happened, in one line
  SourceLine where;
  Index3 block;

  /// "race: … (flash2.cuh:17, block 0,1,0)".
  std::string to_string() const;
};

}  // namespace attest::simt
