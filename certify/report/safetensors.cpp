#include "certify/report/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "core/files/safetensors.hpp"

namespace attest::certify {
namespace {

std::string known_dtypes() {
  std::string known;
  for (const DTypeFacts& one : kDTypes) {
    known += (known.empty() ? "" : ", ") + std::string(one.safetensors);
  }
  return known;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw InvalidProblem("file '" + path + "': " + why);
}

Tensor tensor_of(const std::string& name, const StoredTensor& stored, const std::string& path) {
  const auto* const dtype =
      std::find_if(kDTypes.begin(), kDTypes.end(),
                   [&](const DTypeFacts& one) { return one.safetensors == stored.dtype; });
  if (dtype == kDTypes.end()) {
    refuse(path, "tensor '" + name + "': dtype '" + stored.dtype + "' is not known here (" +
                     known_dtypes() + ")");
  }
  if (stored.shape.size() > TensorView::kMaxRank) {
    refuse(path, "tensor '" + name + "': its shape is not a list of at most four sizes");
  }
  std::vector<Axis> axes;
  for (const std::int64_t extent : stored.shape) axes.push_back({"axis", extent, 0});
  Tensor tensor("tensor", dtype->dtype, axes);
  if (!stored.bytes.empty()) {
    std::memcpy(tensor.view().data(), stored.bytes.data(), stored.bytes.size());
  }
  return tensor;
}

}  // namespace

std::string safetensors(const TensorFile& file) {
  StoredTensors stored;
  stored.metadata = file.metadata;
  for (const auto& [name, tensor] : file.tensors) {
    const TensorView& view = tensor.view();
    const DTypeFacts& dtype = facts(view.dtype());
    std::vector<std::int64_t> shape;
    for (std::size_t axis = 0; axis < view.rank(); ++axis) shape.push_back(view.extent(axis));
    const std::string_view bytes(static_cast<const char*>(view.data()),
                                 static_cast<std::size_t>(view.size()) * size_bytes(dtype.dtype));
    stored.tensors.emplace(name, StoredTensor{std::string(dtype.safetensors), shape, bytes});
  }
  return write_safetensors(stored);
}

TensorFile parse_safetensors(std::string_view bytes, const std::string& path) {
  StoredTensors stored = parse_stored_tensors(bytes, path);
  TensorFile file;
  file.metadata = std::move(stored.metadata);
  for (const auto& [name, tensor] : stored.tensors) {
    file.tensors.emplace(name, tensor_of(name, tensor, path));
  }
  return file;
}

TensorFile read_safetensors(const std::string& path) {
  constexpr const char* kAdvice = "cannot be read; pass the name of a safetensors file";
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) refuse(path, kAdvice);
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (!file) refuse(path, kAdvice);
  return parse_safetensors(bytes.str(), path);
}

}  // namespace attest::certify
