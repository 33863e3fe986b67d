#include "core/mask/sparsity/pattern_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/files/regular_file.hpp"
#include "core/files/safetensors.hpp"
#include "core/files/strict_json.hpp"
#include "core/mask/mask_part.hpp"
#include "core/text/shortened.hpp"

namespace attest {
namespace {

using nlohmann::json;
using Lists = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

static_assert(std::endian::native == std::endian::little, "safetensors hold little-endian bytes");

constexpr std::array<std::string_view, 6> kNames{"shape", "row_offsets", "columns",
                                                 "block", "group",       "offsets"};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw InvalidProblem("pattern file '" + path + "': " + why);
}

bool ends_in(std::string_view path, std::string_view end) {
  return path.size() >= end.size() && path.substr(path.size() - end.size()) == end;
}

void check_name(const std::string& path, const std::string& name) {
  if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
    refuse(
        path,
        "has a list '" + shortened(name) +
            "'; the lists are shape, row_offsets, columns and block, or shape, group and offsets");
  }
}

Lists json_lists(const std::string& path, const std::string& text) {
  const json object = parse_strict_json(text, [&](const std::string& why) { refuse(path, why); });
  if (!object.is_object()) refuse(path, "is no JSON object of lists");
  Lists lists;
  for (const auto& [name, list] : object.items()) {
    check_name(path, name);
    if (!list.is_array()) refuse(path, "'" + name + "' is not a list");
    auto& values = lists[name];
    values.reserve(list.size());
    for (const json& value : list) {
      if (!value.is_number_integer() ||
          (value.is_number_unsigned() && value.get<std::uint64_t>() >> 63 != 0)) {
        refuse(path, name + "[" + std::to_string(values.size()) + "] is " +
                         shortened(value.dump()) + "; indices are integers of 64 bits, below 2^63");
      }
      values.push_back(value.get<std::int64_t>());
    }
  }
  return lists;
}

template <class Integer>
std::vector<std::int64_t> widened(std::string_view bytes) {
  std::vector<Integer> values(bytes.size() / sizeof(Integer));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return {values.begin(), values.end()};
}

StoredTensors stored_tensors(const std::string& path, const std::string& bytes) {
  try {
    return parse_stored_tensors(bytes, path);
  } catch (const InvalidProblem& malformed) {  // "file 'PATH': ..."
    throw InvalidProblem(std::string("pattern ") + malformed.what());
  }
}

Lists safetensors_lists(const std::string& path, const std::string& bytes) {
  Lists lists;
  for (const auto& [name, tensor] : stored_tensors(path, bytes).tensors) {
    check_name(path, name);
    if (tensor.shape.size() != 1) {
      refuse(path, "tensor '" + name + "' has " + std::to_string(tensor.shape.size()) +
                       " axes; it needs one");
    }
    if (tensor.dtype != "I64" && tensor.dtype != "I32") {
      refuse(path, "tensor '" + name + "' has dtype " + tensor.dtype + "; it needs I32 or I64");
    }
    lists[name] = tensor.dtype == "I64" ? widened<std::int64_t>(tensor.bytes)
                                        : widened<std::int32_t>(tensor.bytes);
  }
  return lists;
}

const std::vector<std::int64_t>& list(const std::string& path, const Lists& lists,
                                      const char* name) {
  const auto found = lists.find(name);
  if (found == lists.end()) refuse(path, "has no list '" + std::string(name) + "'");
  return found->second;
}

std::string spelled(const PatternShape& shape) {
  return std::to_string(shape.rows) + "x" + std::to_string(shape.columns);
}

PatternShape pair(const std::string& path, const Lists& lists, const char* name) {
  const auto& values = list(path, lists, name);
  if (values.size() != 2) {
    refuse(path, "'" + std::string(name) + "' has " + std::to_string(values.size()) +
                     " numbers; it needs two");
  }
  return {values[0], values[1]};
}

// The list in smaller integers; `most` says in words what the largest is.
template <class Integer>
std::vector<Integer> narrowed(const std::string& path, const Lists& lists, const char* name,
                              const char* most) {
  std::vector<Integer> narrow;
  const auto& values = list(path, lists, name);
  narrow.reserve(values.size());
  for (const std::int64_t value : values) {
    narrow.push_back(static_cast<Integer>(value));
    if (narrow.back() != value) {
      refuse(path, std::string(name) + "[" + std::to_string(narrow.size() - 1) + "] is " +
                       std::to_string(value) + ", " + most);
    }
  }
  return narrow;
}

SparsityPattern::Form form_of(const std::string& path, const Lists& lists) {
  const bool group_given = lists.contains("group");
  if (group_given || lists.contains("offsets")) {
    for (const char* name : {"row_offsets", "columns", "block"}) {
      if (!lists.contains(name)) continue;
      refuse(path, std::string("has a list '") + (group_given ? "group" : "offsets") +
                       "' of N:M patterns and a list '" + name + "' of others; leave one out");
    }
    const PatternShape group = pair(path, lists, "group");
    return NmForm{group.rows, group.columns,
                  narrowed<std::uint8_t>(path, lists, "offsets", "beyond 0 .. 255")};
  }
  CsrForm csr{list(path, lists, "row_offsets"),
              narrowed<std::int32_t>(path, lists, "columns", "beyond 2^31 - 1")};
  if (!lists.contains("block")) return csr;
  const PatternShape block = pair(path, lists, "block");
  return BlockForm{block.rows, block.columns, std::move(csr)};
}

Lists lists_of(const SparsityPattern& pattern) {
  if (const auto* nm = std::get_if<NmForm>(&pattern.form()); nm != nullptr) {
    return {{"shape", {pattern.rows(), pattern.columns()}},
            {"group", {nm->kept, nm->group}},
            {"offsets", {nm->offsets.begin(), nm->offsets.end()}}};
  }
  const auto* blocks = std::get_if<BlockForm>(&pattern.form());
  const CsrForm csr = blocks != nullptr ? blocks->occupied : pattern.to_csr();
  Lists lists{{"shape", {pattern.rows(), pattern.columns()}},
              {"row_offsets", csr.row_offsets},
              {"columns", {csr.columns.begin(), csr.columns.end()}}};
  if (blocks != nullptr) lists["block"] = {blocks->block_q, blocks->block_k};
  return lists;
}

}  // namespace

SparsityPattern read_pattern_file(const std::string& path, std::optional<PatternShape> wanted) {
  if (path.empty()) refuse_part("pattern_", "needs the path of a .json or .safetensors file");
  const bool is_json = ends_in(path, ".json");
  if (!is_json && !ends_in(path, ".safetensors")) {
    refuse(path, "its name must end in .json or .safetensors");
  }
  const std::string bytes =
      read_regular_file("mask", path, "a .json or .safetensors file of a pattern");
  const Lists lists = is_json ? json_lists(path, bytes) : safetensors_lists(path, bytes);
  const PatternShape shape = pair(path, lists, "shape");
  if (wanted && shape != *wanted) {
    refuse(path, "is " + spelled(shape) + ", but seqlen_q x seqlen_k is " + spelled(*wanted) +
                     "; pass the sizes of the file or another file");
  }
  return {shape.rows, shape.columns, form_of(path, lists), "pattern_" + path};
}

// Without a JSON object of them, which would take several times the memory of the lists.
std::string pattern_json(const SparsityPattern& pattern) {
  std::string text;
  for (const auto& [name, values] : lists_of(pattern)) {
    text += (text.empty() ? "{\"" : ",\"") + name + "\":[";
    for (std::size_t n = 0; n < values.size(); ++n) {
      if (n > 0) text += ',';
      text += std::to_string(values[n]);
    }
    text += ']';
  }
  return text + "}";
}

std::string pattern_safetensors(const SparsityPattern& pattern) {
  const Lists lists = lists_of(pattern);
  StoredTensors file;
  for (const auto& [name, values] : lists) {
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()),
                                 values.size() * sizeof(std::int64_t));
    file.tensors.emplace(name,
                         StoredTensor{"I64", {static_cast<std::int64_t>(values.size())}, bytes});
  }
  return write_safetensors(file);
}

}  // namespace attest
