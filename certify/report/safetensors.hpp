#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.hpp"

/// Files of floating-point tensors in the safetensors format (core/files/safetensors.hpp).
namespace attest::certify {

struct TensorFile {
  std::map<std::string, std::string> metadata;
  std::map<std::string, Tensor> tensors;  // packed, by name
};

/// The file's bytes: names in alphabetical order, the header padded with blanks to whole 8 bytes.
/// [certify/report/safetensors_test "round trip"]
std::string safetensors(const TensorFile& file);

/// Parses the bytes. `path` is for messages. Throws InvalidProblem for everything the format does
/// not allow (parse_stored_tensors), a dtype that is not F64, F32, BF16 or F16, and a shape of more
/// than four axes. Axes are called "axis".
/// Cost: twice the file in memory.
/// [certify/report/safetensors_test "bad files are refused"]
TensorFile parse_safetensors(std::string_view bytes, const std::string& path);

/// Reads a file. Throws InvalidProblem when it cannot be read or is no regular file.
/// [certify/report/safetensors_test "bad files are refused"]
TensorFile read_safetensors(const std::string& path);

}  // namespace attest::certify
