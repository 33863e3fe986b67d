#pragma once

#include <cstdint>
#include <string>

#include "core/problem.hpp"
#include "core/sparse_operands/sparse_operands.hpp"

namespace attest::certify {

/// Sparse Q, K and V as `--inputs` names them.
struct SparseInputs {
  enum class Source : std::uint8_t { drawn, file };

  std::string spelling;  // "csr:density=0.05,seed=1", or the path
  Source source;
  SparseOperands operands;  // where drawn: a structure, every value 1
};

/// Reads a text that ends in .safetensors as a file
/// (core/sparse_operands/sparse_operands_file.hpp), and draws from any other
/// (sparse/inputs/random_inputs.hpp). Throws InvalidProblem as they do.
/// [certify/sparse_inputs/sparse_inputs_check_test "inputs by spelling"]
SparseInputs parse_sparse_inputs(const std::string& text, const Problem& problem);

}  // namespace attest::certify
