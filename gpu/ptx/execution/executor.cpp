#include "gpu/ptx/execution/executor.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "gpu/ptx/execution/block_run.hpp"

namespace attest::ptx {

void Parameters::add_bytes(const void* value, std::size_t bytes) {
  const std::string kernel = "kernel '" + program_.name + "': ";
  if (count_ >= program_.parameters.size()) {
    throw InvalidProblem(kernel + "takes " + std::to_string(program_.parameters.size()) +
                         " parameters, not more");
  }
  const Program::Parameter& parameter = program_.parameters[count_++];
  if (parameter.bytes != bytes) {
    throw InvalidProblem(kernel + "parameter '" + parameter.name + "' has " +
                         std::to_string(parameter.bytes) + " bytes, not " + std::to_string(bytes));
  }
  std::memcpy(bytes_.data() + parameter.offset, value, bytes);
}

std::span<const std::byte> Parameters::bytes() const {
  if (count_ != program_.parameters.size()) {
    throw InvalidProblem("kernel '" + program_.name + "': takes " +
                         std::to_string(program_.parameters.size()) + " parameters, got " +
                         std::to_string(count_));
  }
  return bytes_;
}

namespace {

void require_fit(const Program& program, const simt::LaunchShape& shape,
                 const simt::Emulation& emulation) {
  const std::string kernel = "kernel '" + program.name + "': ";
  const std::vector<std::uint64_t>& required = program.required_threads;
  const std::uint64_t got[] = {shape.block.x, shape.block.y, shape.block.z};
  for (std::size_t k = 0; k < 3 && !required.empty(); ++k) {
    const std::uint64_t needed = k < required.size() ? required[k] : 1;
    if (got[k] != needed) {
      throw InvalidProblem(kernel + "axis " + std::to_string(k) + " of the block has " +
                           std::to_string(got[k]) + " threads, .reqntid says " +
                           std::to_string(needed));
    }
  }
  const auto bytes = static_cast<std::int64_t>(program.shared_bytes(
      static_cast<std::size_t>(std::max<std::int64_t>(shape.dynamic_shared_bytes, 0))));
  if (bytes > emulation.shared_bytes_limit) {
    throw InvalidProblem(kernel + "needs " + std::to_string(bytes) +
                         " bytes of shared memory; a block may have " +
                         std::to_string(emulation.shared_bytes_limit));
  }
}

simt::GlobalMemory with_residents(simt::GlobalMemory global, const Program& program) {
  for (const Program::Resident& each : program.residents) {
    const auto bytes = static_cast<std::int64_t>(each.bytes);
    if (each.is_constant) {
      global.add(each.name, static_cast<const std::byte*>(each.data), bytes);
    } else {
      global.add(each.name, each.data, bytes);
    }
  }
  return global;
}

}  // namespace

simt::LaunchReport execute(const Program& program, const simt::LaunchShape& shape,
                           const simt::Emulation& emulation, const simt::GlobalMemory& buffers,
                           const Parameters& parameters, const Choices& choices) {
  require_fit(program, shape, emulation);
  const simt::GlobalMemory global = with_residents(buffers, program);
  const Launch launch{program, shape, global, parameters.bytes(), choices};
  return simt::run_blocks(
      shape, emulation, global,
      [&](simt::Index3 index, const simt::Emulation& wanted, simt::GlobalRaces* races,
          simt::LaunchReport& report) {
        static thread_local BlockRun block;  // keeps its memory
        block.run(launch, index, wanted, races, report);
      },
      simt::LateReads::judged);
}

}  // namespace attest::ptx
