#include "sparse/inputs/random_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "io/schedule/schedule.hpp"

namespace attest::sparse {
namespace {

constexpr char kExample[] = "write csr:density=0.05,seed=1, or a path that ends in .safetensors";

template <class Number>
Number number_of(const std::string& key, const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw InvalidProblem("inputs: " + key + ": '" + text + "' is not a number; " + kExample);
  }
  return value;
}

CsrMatrix random_rows(Rng& rng, std::int64_t rows, std::int64_t columns, double density) {
  const std::int64_t entries =
      std::clamp<std::int64_t>(std::llround(density * static_cast<double>(columns)), 1, columns);
  CsrMatrix matrix;
  matrix.rows = rows;
  matrix.columns = columns;
  std::vector<std::int32_t> drawn(static_cast<std::size_t>(columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    std::iota(drawn.begin(), drawn.end(), 0);
    for (std::int64_t e = 0; e < entries; ++e) {
      std::swap(drawn[static_cast<std::size_t>(e)],
                drawn[static_cast<std::size_t>(rng.between(e, columns - 1))]);
    }
    std::sort(drawn.begin(), drawn.begin() + entries);
    matrix.column_indices.insert(matrix.column_indices.end(), drawn.begin(),
                                 drawn.begin() + entries);
    matrix.row_offsets.push_back(static_cast<std::int64_t>(matrix.column_indices.size()));
  }
  matrix.values.assign(matrix.column_indices.size(), 1.0f);
  return matrix;
}

}  // namespace

RandomInputs RandomInputs::parse(std::string_view text) {
  constexpr std::string_view kNothing = "csr:";
  if (text == kNothing)
    throw InvalidProblem(std::string("inputs: csr: has no density; ") + kExample);
  const io::ScheduleSpec spec = io::ScheduleSpec::parse(text, "inputs");
  if (spec.name != "csr") {
    throw InvalidProblem("inputs: '" + spec.name + "' is unknown; " + kExample);
  }
  RandomInputs inputs;
  bool has_density = false;
  for (const auto& [key, value] : spec.parameters) {
    if (key == "density") {
      inputs.density = number_of<double>(key, value);
      has_density = true;
    } else if (key == "seed") {
      inputs.seed = number_of<std::uint64_t>(key, value);
    } else {
      throw InvalidProblem("inputs: '" + key + "' is unknown; " + kExample);
    }
  }
  if (!has_density || !(inputs.density > 0) || inputs.density > 1) {
    throw InvalidProblem(std::string("inputs: density must be above 0 and at most 1; ") + kExample);
  }
  return inputs;
}

std::string RandomInputs::to_string() const {
  return fmt::format("csr:density={},seed={}", density, seed);
}

SparseOperands RandomInputs::operands_for(const Problem& problem) const {
  require_sparse_problem(problem);
  Rng rng(seed);
  SparseOperands operands;
  operands.Q = random_rows(rng, problem.seqlen_q, problem.head_dim_qk, density);
  operands.K = random_rows(rng, problem.seqlen_k, problem.head_dim_qk, density);
  operands.V = random_rows(rng, problem.seqlen_k, problem.head_dim_v, density);
  operands.softmax_scale = problem.scale();
  return operands;
}

}  // namespace attest::sparse
