#pragma once

#include "io/machine/metered_machine.hpp"

namespace attest::io {

/// Keeps no elements; slow memory needs no data.
class DryBackend {
 public:
  static constexpr Data kData = Data::counted_only;

  explicit DryBackend(FastMemory) {}
  void undefined(const Held&) {}
  void load(const Held&, const SlowMatrix&) {}
  void store(const Held&, const MutableSlowMatrix&) {}
  void release(const Held&) {}
  void begin_stream(Held&, const SlowMatrix&) {}
  void end_stream(const Held&) {}
  void begin_stream_out(Held&, const MutableSlowMatrix&) {}
  void end_stream_out(const Held&, const MutableSlowMatrix&) {}
  MutableSlowMatrix workspace(const char* name, std::int64_t rows, std::int64_t columns) {
    return {name, rows, columns, DType::f32, nullptr, columns};
  }
};

/// Counts what CountingMachine counts, without data: a run of equal tiles costs as much as one.
/// [io/machine/dry_machine_test]
using DryMachine = MeteredMachine<DryBackend>;

static_assert(Machine<DryMachine>);

}  // namespace attest::io
