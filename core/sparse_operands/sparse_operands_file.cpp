#include "core/sparse_operands/sparse_operands_file.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "core/files/regular_file.hpp"
#include "core/files/safetensors.hpp"

namespace attest {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors hold little-endian bytes");

constexpr std::array<const char*, 3> kOperands{"Q", "K", "V"};
constexpr std::array<const char*, 4> kLists{"row_offsets", "columns", "values", "shape"};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw InvalidProblem("inputs: file '" + path + "': " + why);
}

// The tensors by name, none but those of a matrix.
class Lists {
 public:
  Lists(const std::string& path, const StoredTensors& file) : path_(path), tensors_(file.tensors) {
    std::set<std::string> names;
    for (const char* operand : kOperands) {
      for (const char* list : kLists) names.insert(std::string(operand) + "." + list);
    }
    for (const auto& [name, tensor] : tensors_) {
      if (names.count(name) > 0) continue;
      refuse(
          path_,
          "has a tensor '" + name +
              "'; of each of Q, K and V it holds row_offsets, columns and values, and shape if you "
              "like, as in Q.row_offsets");
    }
  }

  bool has(const std::string& name) const { return tensors_.count(name) > 0; }

  std::vector<std::int64_t> integers(const std::string& name) const {
    const StoredTensor& tensor = find(name);
    if (tensor.dtype == "I32") {
      const auto narrow = elements<std::int32_t>(tensor);
      return {narrow.begin(), narrow.end()};
    }
    if (tensor.dtype == "I64") return elements<std::int64_t>(tensor);
    refuse(path_, "tensor '" + name + "' has dtype " + tensor.dtype + "; it needs I32 or I64");
  }

  std::vector<std::int32_t> columns(const std::string& name) const {
    std::vector<std::int32_t> narrow;
    for (const std::int64_t value : integers(name)) {
      if (value < 0 || value > std::numeric_limits<std::int32_t>::max()) {
        refuse(path_, name + "[" + std::to_string(narrow.size()) + "] is " + std::to_string(value) +
                          "; columns count from 0 and stay below 2^31");
      }
      narrow.push_back(static_cast<std::int32_t>(value));
    }
    return narrow;
  }

  std::vector<float> floats(const std::string& name) const {
    const StoredTensor& tensor = find(name);
    if (tensor.dtype == "F32") return elements<float>(tensor);
    refuse(path_, "tensor '" + name + "' has dtype " + tensor.dtype + "; it needs F32");
  }

 private:
  const StoredTensor& find(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) refuse(path_, "has no tensor '" + name + "'");
    if (found->second.shape.size() != 1) {
      refuse(path_, "tensor '" + name + "' has " + std::to_string(found->second.shape.size()) +
                        " axes; it needs one");
    }
    return found->second;
  }

  template <class Element>
  static std::vector<Element> elements(const StoredTensor& tensor) {
    std::vector<Element> values(tensor.bytes.size() / sizeof(Element));
    if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }

  const std::string& path_;
  const std::map<std::string, StoredTensor>& tensors_;
};

// An extent of a problem, and how its string spells it.
struct Extent {
  const char* key;
  std::int64_t count;
};

void require_shape(const std::string& path, const std::string& name,
                   const std::vector<std::int64_t>& shape, Extent rows, Extent columns) {
  if (shape == std::vector{rows.count, columns.count}) return;
  std::string found;
  for (const std::int64_t extent : shape) {
    found += (found.empty() ? "" : ", ") + std::to_string(extent);
  }
  refuse(path, name + " is [" + found + "], but " + rows.key + " is " + std::to_string(rows.count) +
                   " and " + columns.key + " is " + std::to_string(columns.count) +
                   "; pass the sizes of the file or another file");
}

CsrMatrix matrix_of(const std::string& path, const Lists& lists, const std::string& operand,
                    Extent rows, Extent columns) {
  CsrMatrix matrix;
  matrix.rows = rows.count;
  matrix.columns = columns.count;
  matrix.row_offsets = lists.integers(operand + ".row_offsets");
  const auto found = static_cast<std::int64_t>(matrix.row_offsets.size()) - 1;
  if (found < 0) {
    refuse(path, operand + ".row_offsets is empty; it begins with 0 and has an entry for each row");
  }
  if (found != rows.count) {
    refuse(path, operand + ".row_offsets has " + std::to_string(found + 1) + " entries, of " +
                     std::to_string(found) + " rows, but " + rows.key + " is " +
                     std::to_string(rows.count) + "; pass the sizes of the file or another file");
  }
  if (const std::string shape = operand + ".shape"; lists.has(shape)) {
    require_shape(path, shape, lists.integers(shape), rows, columns);
  }
  matrix.column_indices = lists.columns(operand + ".columns");
  matrix.values = lists.floats(operand + ".values");
  matrix.validate("inputs: file '" + path + "': " + operand);
  return matrix;
}

}  // namespace

SparseOperands read_sparse_operands(const std::string& path, const Problem& problem) {
  require_sparse_problem(problem);
  const std::string text =
      read_regular_file("inputs", path, "a .safetensors file of sparse Q, K and V");
  const StoredTensors stored = parse_stored_tensors(text, path);
  const Lists lists(path, stored);
  const Extent queries{"sq", problem.seqlen_q}, keys{"sk", problem.seqlen_k};
  const Extent features{"d", problem.head_dim_qk}, values{"dv", problem.head_dim_v};
  SparseOperands operands{matrix_of(path, lists, "Q", queries, features),
                          matrix_of(path, lists, "K", keys, features),
                          matrix_of(path, lists, "V", keys, values), problem.scale()};
  operands.validate();
  return operands;
}

std::string sparse_operands_safetensors(const SparseOperands& operands) {
  StoredTensors file;
  const auto add = [&file](const std::string& name, const char* dtype, const auto& list) {
    const std::string_view bytes(reinterpret_cast<const char*>(list.data()),
                                 list.size() * sizeof(list[0]));
    file.tensors[name] = {dtype, {static_cast<std::int64_t>(list.size())}, bytes};
  };
  const std::array<const CsrMatrix*, 3> matrices{&operands.Q, &operands.K, &operands.V};
  std::array<std::array<std::int64_t, 2>, 3> shapes;
  for (std::size_t m = 0; m < matrices.size(); ++m) {
    shapes[m] = {matrices[m]->rows, matrices[m]->columns};
    const std::string operand = std::string(kOperands[m]) + ".";
    add(operand + "row_offsets", "I64", matrices[m]->row_offsets);
    add(operand + "columns", "I32", matrices[m]->column_indices);
    add(operand + "values", "F32", matrices[m]->values);
    add(operand + "shape", "I64", shapes[m]);
  }
  return write_safetensors(file);
}

}  // namespace attest
