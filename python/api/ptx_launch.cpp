#include "python/api/ptx_launch.hpp"

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "gpu/ptx/execution/executor.hpp"

namespace attest::python {
namespace {

using nlohmann::json;

std::int64_t signed_size(std::size_t bytes, const std::string& words) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())) {
    throw InvalidProblem(words + " has " + std::to_string(bytes) + " bytes");
  }
  return static_cast<std::int64_t>(bytes);
}

simt::GlobalMemory memory_of(const attest_ptx_shape& shape) {
  if (shape.buffer_count > 0 && shape.buffers == nullptr) {
    throw InvalidProblem("buffers is NULL");
  }
  simt::GlobalMemory memory;
  for (std::size_t k = 0; k < shape.buffer_count; ++k) {
    const attest_ptx_buffer& buffer = shape.buffers[k];
    const std::string words = "buffer " + std::to_string(k);
    if (buffer.name == nullptr) throw InvalidProblem(words + " has no name");
    if (buffer.data == nullptr && buffer.bytes > 0) throw InvalidProblem(words + " is NULL");
    memory.add(buffer.name, static_cast<std::byte*>(buffer.data), signed_size(buffer.bytes, words));
  }
  return memory;
}

ptx::Parameters parameters_of(const attest_ptx& loaded, const attest_ptx_shape& shape) {
  if (shape.parameter_count > 0 && shape.parameters == nullptr) {
    throw InvalidProblem("parameters is NULL");
  }
  ptx::Parameters parameters(loaded.program);
  for (std::size_t k = 0; k < shape.parameter_count; ++k) {
    const attest_ptx_value& value = shape.parameters[k];
    if (value.data == nullptr) {
      throw InvalidProblem("parameter " + std::to_string(k) + " is NULL");
    }
    parameters.add_bytes(value.data, value.bytes);
  }
  return parameters;
}

json report_of(const simt::LaunchReport& report, std::size_t buffers) {
  json moved = json::array(), findings = json::array();
  for (std::size_t k = 0; k < buffers; ++k) {  // the module's own variables come after them
    moved.push_back({{"read_bytes", report.traffic[k].read_bytes},
                     {"written_bytes", report.traffic[k].written_bytes}});
  }
  for (const simt::Diagnosis& each : report.diagnoses) {
    findings.push_back({{"fault", simt::name(each.fault)},
                        {"text", each.text},
                        {"file", each.where.file},
                        {"line", each.where.line},
                        {"block", {each.block.x, each.block.y, each.block.z}}});
  }
  return {{"blocks_given_up", report.blocks_given_up},
          {"shared_bytes", report.shared_bytes},
          {"buffers", moved},
          {"findings", findings}};
}

simt::Swizzle swizzle_of(std::uint32_t bytes) {
  switch (bytes) {
    case 0:
      return simt::Swizzle::none;
    case 32:
      return simt::Swizzle::bytes_32;
    case 64:
      return simt::Swizzle::bytes_64;
    case 128:
      return simt::Swizzle::bytes_128;
    default:
      throw InvalidProblem("tensor map: a swizzle of " + std::to_string(bytes) +
                           " bytes; it is 0, 32, 64 or 128");
  }
}

// Too much for any tensor, too, stays too much.
template <class T>
T narrowed(std::uint64_t value) {
  return static_cast<T>(std::min<std::uint64_t>(value, std::numeric_limits<T>::max()));
}

}  // namespace

ptx::TensorMapBytes tensor_map(const attest_ptx_tensor& tensor) {
  if (tensor.struct_size < sizeof tensor) {
    throw InvalidProblem("struct_size of the tensor is " + std::to_string(tensor.struct_size) +
                         ", not sizeof(attest_ptx_tensor)");
  }
  const std::uint32_t bytes = tensor.element_bytes;
  if (bytes != 1 && bytes != 2 && bytes != 4) {
    throw InvalidProblem("tensor map: elements of " + std::to_string(tensor.element_bytes) +
                         " bytes are not carried out; they have 1, 2 or 4");
  }
  simt::TensorShape shape;
  shape.element = bytes == 1   ? simt::Element::byte
                  : bytes == 2 ? simt::Element::f16
                               : simt::Element::f32;
  shape.rank = narrowed<int>(tensor.dimensions);
  shape.swizzle = swizzle_of(tensor.swizzle_bytes);
  for (std::size_t k = 0; k < std::min<std::size_t>(tensor.dimensions, 5); ++k) {
    shape.extents[k] = narrowed<std::int64_t>(tensor.extents[k]);
    shape.box[k] = narrowed<int>(tensor.box[k]);
    if (k > 0) shape.stride_bytes[k - 1] = narrowed<std::int64_t>(tensor.stride_bytes[k - 1]);
  }
  return ptx::encode_tensor_map(tensor.data, shape);
}

PtxLaunch launch(const attest_ptx& loaded, const attest_ptx_shape& shape) {
  if (shape.struct_size < sizeof shape) {
    throw InvalidProblem("struct_size of the launch is " + std::to_string(shape.struct_size) +
                         ", not sizeof(attest_ptx_shape)");
  }
  simt::Emulation emulation;
  emulation.shared_checks = simt::SharedChecks::on;
  emulation.threads = omp_get_max_threads();
  const auto index = [](const std::uint32_t(&extents)[3]) {
    return simt::Index3{extents[0], extents[1], extents[2]};
  };
  const simt::LaunchReport report =
      ptx::execute(loaded.program,
                   {index(shape.grid), index(shape.block),
                    signed_size(shape.dynamic_shared_bytes, "dynamic shared memory")},
                   emulation, memory_of(shape), parameters_of(loaded, shape));
  return {
      report.clean() ? ATTEST_PASSED : ATTEST_REFUSED,
      report_of(report, shape.buffer_count).dump(2, ' ', false, json::error_handler_t::replace)};
}

}  // namespace attest::python
