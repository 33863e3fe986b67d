#include "certify/sparse_inputs/sparse_inputs.hpp"

#include "core/sparse_operands/sparse_operands_file.hpp"
#include "sparse/inputs/random_inputs.hpp"

namespace attest::certify {

SparseInputs parse_sparse_inputs(const std::string& text, const Problem& problem) {
  if (text.ends_with(".safetensors")) {
    return {text, SparseInputs::Source::file, read_sparse_operands(text, problem)};
  }
  const auto drawn = sparse::RandomInputs::parse(text);
  return {drawn.to_string(), SparseInputs::Source::drawn, drawn.operands_for(problem)};
}

}  // namespace attest::certify
