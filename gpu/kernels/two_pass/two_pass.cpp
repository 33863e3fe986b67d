#include "gpu/kernels/two_pass/two_pass.hpp"

#include "gpu/kernels/two_pass/two_pass.cuh"

namespace attest::gpu {
namespace {

template <int kResident, Registers kRegisters>
LaunchPlan plan(const AttentionShape& shape) {
  LaunchPlan plan;
  two_pass_launches<kResident, kRegisters>(planned_backward(shape), plan);
  return plan;
}

template <int kResident, Registers kRegisters>
bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return widest_head(shape) <= kMostBackwardColumns &&
         plan<kResident, kRegisters>(shape).fits(emulation);
}

template <int kResident, Registers kRegisters>
simt::LaunchReport launch(const EmulatedBackward& call, const simt::Emulation& emulation) {
  EmulatedLaunches launches(emulation, call.memory);
  two_pass_launches<kResident, kRegisters>(call.arguments, launches);
  return launches.report();
}

template <int kResident, Registers kRegisters>
simt::LaunchReport run(EmulatedBackward& call, const simt::Emulation& emulation) {
  return launch<kResident, kRegisters>(call, emulation);
}

}  // namespace

template <int kResident>
std::string two_pass_schedule(const AttentionShape& shape) {
  const std::string resident = std::to_string(kResident),
                    passing = std::to_string(passing_rows<kResident>(shape));
  return "two_pass:bq=" + resident + ",bk=" + passing + ",cq=" + passing + ",ck=" + resident;
}

template <int kResident, Registers kRegisters>
EmulatedDirection<EmulatedBackward> two_pass_direction() {
  return {fits<kResident, kRegisters>, delta_words, run<kResident, kRegisters>,
          plan<kResident, kRegisters>};
}

bool two_pass_fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return fits<32, Registers::as_compiled>(shape, emulation);
}

simt::LaunchReport two_pass_emulated(const EmulatedBackward& call,
                                     const simt::Emulation& emulation) {
  return launch<32, Registers::as_compiled>(call, emulation);
}

template std::string two_pass_schedule<4>(const AttentionShape&);
template std::string two_pass_schedule<8>(const AttentionShape&);
template std::string two_pass_schedule<16>(const AttentionShape&);
template std::string two_pass_schedule<32>(const AttentionShape&);
template std::string two_pass_schedule<64>(const AttentionShape&);
template EmulatedDirection<EmulatedBackward> two_pass_direction<32, Registers::as_compiled>();
template EmulatedDirection<EmulatedBackward> two_pass_direction<4, Registers::held>();
template EmulatedDirection<EmulatedBackward> two_pass_direction<8, Registers::held>();
template EmulatedDirection<EmulatedBackward> two_pass_direction<16, Registers::held>();
template EmulatedDirection<EmulatedBackward> two_pass_direction<32, Registers::held>();
template EmulatedDirection<EmulatedBackward> two_pass_direction<64, Registers::held>();

}  // namespace attest::gpu
