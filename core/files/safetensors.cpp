#include "core/files/safetensors.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/files/strict_json.hpp"

namespace attest {
namespace {

using nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // what the format allows

struct DtypeBytes {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array<DtypeBytes, 13> kDtypes{{{"BOOL", 1},
                                              {"U8", 1},
                                              {"I8", 1},
                                              {"U16", 2},
                                              {"I16", 2},
                                              {"F16", 2},
                                              {"BF16", 2},
                                              {"U32", 4},
                                              {"I32", 4},
                                              {"F32", 4},
                                              {"U64", 8},
                                              {"I64", 8},
                                              {"F64", 8}}};

class Refusal {
 public:
  explicit Refusal(const std::string& path) : path_(path) {}
  [[noreturn]] void operator()(const std::string& why) const {
    throw InvalidProblem("file '" + path_ + "': " + why);
  }

 private:
  const std::string& path_;
};

// Where one tensor lies, as the header says.
struct Entry {
  std::string name;
  StoredTensor tensor;
  std::uint64_t begin = 0, end = 0;
};

json parse_header(std::string_view text, const Refusal& refuse) {
  if (text.empty() || text.front() != '{') refuse("its header does not begin with '{'");
  return parse_strict_json(text, [&](const std::string& why) { refuse("its header " + why); });
}

std::uint64_t whole_number(const json& value, const std::string& what, const Refusal& refuse) {
  if (!value.is_number_unsigned()) refuse(what + " is not a whole number");
  return value.get<std::uint64_t>();
}

std::uint64_t parse_dtype(const json& value, const std::string& of, const Refusal& refuse) {
  if (!value.is_string()) refuse(of + ": its dtype is not a word");
  const auto& word = value.get_ref<const std::string&>();
  const auto* const dtype = std::find_if(kDtypes.begin(), kDtypes.end(),
                                         [&](const auto& one) { return one.name == word; });
  if (dtype != kDtypes.end()) return dtype->bytes;
  std::string known;
  for (const DtypeBytes& one : kDtypes) known += " " + std::string(one.name);
  refuse(of + ": dtype '" + word + "' is not known here (" + known.substr(1) + ")");
}

void check_fields(const json& value, const std::string& of, const Refusal& refuse) {
  if (!value.is_object()) refuse(of + " is not described by an object");
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!value.contains(key)) refuse(of + " has no '" + key + "'");
  }
  for (const auto& [key, ignored] : value.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      refuse(of + " has an unknown field '" + key + "'");
    }
  }
}

Entry parse_entry(const std::string& name, const json& value, const Refusal& refuse) {
  const std::string of = "tensor '" + name + "'";
  check_fields(value, of, refuse);
  Entry entry;
  entry.name = name;
  std::uint64_t bytes = parse_dtype(value.at("dtype"), of, refuse);
  entry.tensor.dtype = value.at("dtype").get<std::string>();
  const json &shape = value.at("shape"), &offsets = value.at("data_offsets");
  if (!shape.is_array()) refuse(of + ": its shape is not a list of sizes");
  for (const json& one : shape) {
    const std::uint64_t extent = whole_number(one, of + ": a size", refuse);
    if (extent > 0 && bytes > std::numeric_limits<std::int64_t>::max() / extent) {
      refuse(of + ": its shape has more than 2^63 bytes");
    }
    bytes *= extent;
    entry.tensor.shape.push_back(static_cast<std::int64_t>(extent));
  }
  if (!offsets.is_array() || offsets.size() != 2) {
    refuse(of + ": its data_offsets are not a begin and an end");
  }
  entry.begin = whole_number(offsets[0], of + ": an offset", refuse);
  entry.end = whole_number(offsets[1], of + ": an offset", refuse);
  if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
    refuse(of + ": its offsets hold " +
           (entry.end < entry.begin ? "a negative number of"
                                    : std::to_string(entry.end - entry.begin)) +
           " bytes, its shape and dtype need " + std::to_string(bytes));
  }
  return entry;
}

// Tensors fill the data from its first byte to its last.
void place(std::vector<Entry>& entries, std::string_view data, const Refusal& refuse) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t filled = 0;
  for (Entry& entry : entries) {
    if (entry.begin != filled) {
      refuse("tensor '" + entry.name + "' begins at byte " + std::to_string(entry.begin) +
             ", the one before it ends at " + std::to_string(filled) +
             (entry.begin < filled ? ": they overlap" : ": a gap"));
    }
    if (entry.end > data.size()) {
      refuse("tensor '" + entry.name + "' ends at byte " + std::to_string(entry.end) + " of " +
             std::to_string(data.size()) + "; the file is cut off");
    }
    filled = entry.end;
    entry.tensor.bytes = data.substr(static_cast<std::size_t>(entry.begin),
                                     static_cast<std::size_t>(entry.end - entry.begin));
  }
  if (filled != data.size()) {
    refuse(std::to_string(data.size() - filled) + " bytes follow the last tensor");
  }
}

}  // namespace

std::string write_safetensors(const StoredTensors& file) {
  json header = json::object();
  if (!file.metadata.empty()) header["__metadata__"] = file.metadata;
  std::uint64_t begin = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const std::uint64_t end = begin + tensor.bytes.size();
    header[name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  std::string bytes;
  for (std::size_t k = 0; k < kLengthBytes; ++k) {
    bytes += static_cast<char>((text.size() >> (8 * k)) & 0xffu);
  }
  bytes += text;
  for (const auto& [name, tensor] : file.tensors) bytes += tensor.bytes;
  return bytes;
}

StoredTensors parse_stored_tensors(std::string_view bytes, const std::string& path) {
  const Refusal refuse(path);
  if (bytes.size() < kLengthBytes) {
    refuse("has " + std::to_string(bytes.size()) + " bytes; a safetensors file has at least 8");
  }
  std::uint64_t length = 0;
  for (std::size_t k = 0; k < kLengthBytes; ++k) {
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[k])) << (8 * k);
  }
  if (length > kMostHeaderBytes || length > bytes.size() - kLengthBytes) {
    refuse("its header should have " + std::to_string(length) + " bytes, but " +
           std::to_string(bytes.size() - kLengthBytes) +
           " follow; is it a safetensors file, and whole?");
  }
  const json header =
      parse_header(bytes.substr(kLengthBytes, static_cast<std::size_t>(length)), refuse);
  StoredTensors file;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") {
      entries.push_back(parse_entry(name, value, refuse));
      continue;
    }
    if (!value.is_object()) refuse("its metadata are not an object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) refuse("its metadata '" + key + "' is not a text");
      file.metadata[key] = text.get<std::string>();
    }
  }
  place(entries, bytes.substr(kLengthBytes + static_cast<std::size_t>(length)), refuse);
  for (Entry& entry : entries) file.tensors.emplace(entry.name, std::move(entry.tensor));
  return file;
}

}  // namespace attest
