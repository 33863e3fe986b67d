#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace attest::io {

/// A vertex of a computation: its place in the order it was added in.
using Vertex = std::int32_t;

/// Name of what a vertex holds: a symbol of docs/theory/pebble-game.md and its indices, `s[0,2,1]`.
struct VertexName {
  std::string symbol;
  std::vector<std::int32_t> indices;

  std::string to_string() const;
  friend bool operator==(const VertexName&, const VertexName&) = default;
};

/// A computation as a directed acyclic graph: one vertex for every word that a standard algorithm
/// forms, each with the words it is formed from. It knows nothing of the order of a schedule.
class Dag {
 public:
  /// A word that slow memory holds at the start.
  Vertex input(const std::string& symbol, std::vector<std::int32_t> indices);

  /// A word formed from others in one operation.
  ///
  /// Requires: at least one operand, all added before, no name twice. Else throws InternalError.
  Vertex formed(const std::string& symbol, std::vector<std::int32_t> indices,
                std::vector<Vertex> operands);

  /// A word that slow memory must hold at the end.
  void output(Vertex vertex);

  std::int32_t size() const { return static_cast<std::int32_t>(operands_.size()); }
  const std::vector<Vertex>& operands(Vertex vertex) const { return operands_[index(vertex)]; }
  bool is_input(Vertex vertex) const { return operands_[index(vertex)].empty(); }
  const std::vector<Vertex>& outputs() const { return outputs_; }
  const VertexName& name(Vertex vertex) const { return names_[index(vertex)]; }

  /// Throws InvalidProblem when the computation has no such word.  [io/pebble/dag_test "names"]
  Vertex find(const std::string& symbol, std::vector<std::int32_t> indices) const;

 private:
  static std::size_t index(Vertex vertex) { return static_cast<std::size_t>(vertex); }
  Vertex add(VertexName name, std::vector<Vertex> operands);

  std::vector<std::vector<Vertex>> operands_;
  std::vector<VertexName> names_;
  std::vector<Vertex> outputs_;
  std::unordered_map<std::string, Vertex> by_name_;
};

}  // namespace attest::io
