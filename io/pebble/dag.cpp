#include "io/pebble/dag.hpp"

#include <utility>

#include "core/error.hpp"

namespace attest::io {

std::string VertexName::to_string() const {
  std::string text = symbol + '[';
  for (std::size_t position = 0; position < indices.size(); ++position) {
    if (position > 0) text += ',';
    text += std::to_string(indices[position]);
  }
  return text + ']';
}

Vertex Dag::add(VertexName name, std::vector<Vertex> operands) {
  const Vertex vertex = size();
  for (const Vertex operand : operands) {
    if (operand < 0 || operand >= vertex) {
      throw InternalError("vertex " + name.to_string() + ": an operand is not there yet");
    }
  }
  if (!by_name_.emplace(name.to_string(), vertex).second) {
    throw InternalError("vertex " + name.to_string() + " is added twice");
  }
  operands_.push_back(std::move(operands));
  names_.push_back(std::move(name));
  return vertex;
}

Vertex Dag::input(const std::string& symbol, std::vector<std::int32_t> indices) {
  return add({symbol, std::move(indices)}, {});
}

Vertex Dag::formed(const std::string& symbol, std::vector<std::int32_t> indices,
                   std::vector<Vertex> operands) {
  VertexName name{symbol, std::move(indices)};
  if (operands.empty()) throw InternalError("vertex " + name.to_string() + " has no operand");
  return add(std::move(name), std::move(operands));
}

void Dag::output(Vertex vertex) { outputs_.push_back(vertex); }

Vertex Dag::find(const std::string& symbol, std::vector<std::int32_t> indices) const {
  const VertexName name{symbol, std::move(indices)};
  const auto found = by_name_.find(name.to_string());
  if (found == by_name_.end()) {
    throw InvalidProblem("no word " + name.to_string() + " in this computation of " +
                         std::to_string(size()) + " words");
  }
  return found->second;
}

}  // namespace attest::io
