#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// Files of tensors: an 8-byte little-endian length, a JSON header of so many bytes, the elements.
/// The format is described at https://github.com/huggingface/safetensors.
namespace attest {

/// One tensor of a file: what its header says, and its elements, little-endian, last axis fastest.
struct StoredTensor {
  std::string dtype;  // the format's word, like "F32" or "I64"
  std::vector<std::int64_t> shape;
  std::string_view bytes;
};

struct StoredTensors {
  std::map<std::string, std::string> metadata;
  std::map<std::string, StoredTensor> tensors;  // by name
};

/// The file's bytes: names in alphabetical order, the header padded with blanks to whole 8 bytes.
/// [core/files/safetensors_test "round trip"]
std::string write_safetensors(const StoredTensors& file);

/// Parses the bytes, into which the tensors then point. `path` is for messages. Throws
/// InvalidProblem for everything the format does not allow: a length beyond the file or above
/// 100 MB, a header that is no JSON object or names a key twice, an unknown dtype, offsets that do
/// not fit shape and dtype, overlap, leave gaps or reach beyond the end, bytes after the last
/// tensor.  [core/files/safetensors_test, certify/report/safetensors_test "bad files are refused"]
StoredTensors parse_stored_tensors(std::string_view bytes, const std::string& path);

}  // namespace attest
