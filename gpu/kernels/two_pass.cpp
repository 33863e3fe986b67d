#include "gpu/kernels/two_pass.hpp"

#include "gpu/kernels/two_pass.cuh"

namespace attest::gpu {

template <int kResident>
bool two_pass_fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return widest_head(shape) <= kMostBackwardColumns &&
         two_pass_plan<kResident>(shape).fits(emulation);
}

template <int kResident>
std::string two_pass_schedule(const AttentionShape& shape) {
  const std::string resident = std::to_string(kResident),
                    passing = std::to_string(passing_rows<kResident>(shape));
  return "two_pass:bq=" + resident + ",bk=" + passing + ",cq=" + passing + ",ck=" + resident;
}

template <int kResident>
simt::LaunchReport two_pass_emulated(const EmulatedBackward& call,
                                     const simt::Emulation& emulation) {
  EmulatedLaunches launches(emulation, call.memory);
  two_pass_launches<kResident>(call.arguments, launches);
  return launches.report();
}

template <int kResident>
LaunchPlan two_pass_plan(const AttentionShape& shape) {
  LaunchPlan plan;
  two_pass_launches<kResident>(planned_backward(shape), plan);
  return plan;
}

template bool two_pass_fits<8>(const AttentionShape&, const simt::Emulation&);
template std::string two_pass_schedule<8>(const AttentionShape&);
template simt::LaunchReport two_pass_emulated<8>(const EmulatedBackward&, const simt::Emulation&);
template LaunchPlan two_pass_plan<8>(const AttentionShape&);
template bool two_pass_fits<16>(const AttentionShape&, const simt::Emulation&);
template std::string two_pass_schedule<16>(const AttentionShape&);
template simt::LaunchReport two_pass_emulated<16>(const EmulatedBackward&, const simt::Emulation&);
template LaunchPlan two_pass_plan<16>(const AttentionShape&);
template bool two_pass_fits<32>(const AttentionShape&, const simt::Emulation&);
template std::string two_pass_schedule<32>(const AttentionShape&);
template simt::LaunchReport two_pass_emulated<32>(const EmulatedBackward&, const simt::Emulation&);
template LaunchPlan two_pass_plan<32>(const AttentionShape&);

}  // namespace attest::gpu
