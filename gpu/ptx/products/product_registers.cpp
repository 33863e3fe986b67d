#include "gpu/ptx/products/product_registers.hpp"

#include <algorithm>
#include <set>

#include "gpu/ptx/execution/block_run.hpp"

namespace attest::ptx {
namespace {

template <Warpgroups::Touch kTouch>
void watched(Warp& warp, const Instruction& in) {
  warp.block().warpgroups().touch(warp, in, kTouch);
  in.watched(warp, in);
}

}  // namespace

void watch_product_registers(Program& program, const Function& function) {
  std::set<std::uint32_t> taken;
  for (const Instruction& in : program.code) {
    taken.insert(in.slots.begin(), in.slots.begin() + in.product_registers);
  }
  const auto uses = [&](const Instruction& in) {
    const auto is_taken = [&](std::uint32_t slot) { return taken.count(slot) != 0; };
    return std::any_of(in.slots.begin(), in.slots.end(), is_taken) ||
           std::any_of(in.addresses.begin(), in.addresses.end(),
                       [&](const Address& each) { return is_taken(each.slot); });
  };
  for (std::size_t k = 0; k < function.statements.size() && !taken.empty(); ++k) {
    Instruction& in = program.code[k];
    if (in.product_registers > 0 || !uses(in)) continue;
    in.watched = in.execute;
    in.execute = function.statements[k].opcode.starts_with("mov.")
                     ? watched<Warpgroups::Touch::move>
                     : watched<Warpgroups::Touch::use>;
  }
}

}  // namespace attest::ptx
