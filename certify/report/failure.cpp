#include "certify/report/failure.hpp"

#include <algorithm>
#include <charconv>
#include <functional>

#include "certify/worker/process/isolated_kernel.hpp"
#include "core/error.hpp"
#include "core/numerics.hpp"
#include "core/rng.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::certify {
namespace {

using proptest::Case;
using proptest::InputValues;
using proptest::KernelRun;
using proptest::LawResult;
using proptest::LossValues;

constexpr const char* kFormat = "failure-1";

std::string stream_prefix() { return "v" + std::to_string(kStreamVersion) + ";"; }

DType scalar_dtype(const Problem& problem) {
  return problem.dtype == DType::f64 ? DType::f64 : DType::f32;
}

// One input: its name, its tensor, the axes and the dtype that a file must have.
struct InputTensor {
  std::string_view name;  // a literal
  Tensor* tensor;
  std::vector<Axis> axes;
  DType dtype;
};

std::vector<Axis> matrix(std::int64_t rows, std::int64_t columns) {
  return {{"rows", rows, 0}, {"columns", columns, 0}};
}

std::vector<InputTensor> inputs_of(const Problem& p, InputValues& in) {
  return {{"Q", &in.Q, p.q_axes(), p.dtype},
          {"K", &in.K, p.k_axes(), p.dtype},
          {"V", &in.V, p.v_axes(), p.dtype},
          {"dO", &in.dO, p.o_axes(), p.dtype},
          {"dLSE", &in.dLSE, p.lse_axes(), scalar_dtype(p)}};
}

std::vector<InputTensor> inputs_of(const Problem& p, LossValues& in) {
  const std::int64_t n = p.seqlen_q, d = p.head_dim_qk;
  return {{"A1", &in.A1, matrix(n, d), p.dtype}, {"A2", &in.A2, matrix(n, d), p.dtype},
          {"A3", &in.A3, matrix(n, d), p.dtype}, {"E", &in.E, matrix(n, d), p.dtype},
          {"X", &in.X, matrix(d, d), p.dtype},   {"Y", &in.Y, matrix(d, d), p.dtype}};
}

std::vector<InputTensor> inputs_of(const Problem& problem, Inputs& inputs) {
  return inputs.loss ? inputs_of(problem, *inputs.loss) : inputs_of(problem, *inputs.attention);
}

Tensor copy_as(const InputTensor& input, const Tensor& tensor, DType dtype) {
  Tensor copy(input.name, dtype, input.axes);
  const TensorView &from = tensor.view(), &to = copy.view();
  const auto extent = [&](std::size_t axis) { return axis < to.rank() ? to.extent(axis) : 1; };
  for (std::int64_t i = 0; i < extent(0); ++i) {
    for (std::int64_t j = 0; j < extent(1); ++j) {
      for (std::int64_t k = 0; k < extent(2); ++k) {
        for (std::int64_t l = 0; l < extent(3); ++l) copy.set(from(i, j, k, l), i, j, k, l);
      }
    }
  }
  return copy;
}

// An output with what it should be.
void add_output(TensorFile& file, const std::string& name, const Tensor& got, const Tensor& exact,
                const reference::ErrorBound& bound) {
  if (got.view().rank() == exact.view().rank()) file.tensors.emplace(name, got);
  file.tensors.emplace("exact." + name, exact);
  file.tensors.emplace("bound." + name, bound.probabilistic);
  file.tensors.emplace("proved_bound." + name, bound.deterministic);
}

Direction direction_for(const attest_kernel& kernel, const Problem& problem) {
  return proptest::furthest(kernel, problem);
}

void add_attention(TensorFile& file, const attest_kernel& kernel, const Case& c,
                   const InputValues& values) {
  const Direction direction = direction_for(kernel, c.problem);
  const auto shared = proptest::truth_of(kernel, c.problem, values, direction, c);
  const proptest::Truth& truth = *shared;
  const KernelRun run = proptest::run(kernel, c.problem, values, direction, c);
  add_output(file, "O", run.O, truth.forward().O, truth.forward_bounds().O);
  if ((kernel.description.features & ATTEST_LSE) != 0) {
    add_output(file, "LSE", run.LSE, truth.forward().LSE, truth.forward_bounds().LSE);
  }
  if (direction == Direction::forward || !run.completed()) return;
  const reference::BackwardBounds& bounds = truth.backward_bounds(run);
  add_output(file, "dQ", run.dQ, truth.backward().dQ, bounds.dQ);
  add_output(file, "dK", run.dK, truth.backward().dK, bounds.dK);
  add_output(file, "dV", run.dV, truth.backward().dV, bounds.dV);
}

proptest::LossTruth loss_truth_of(const attest_kernel& kernel, const Problem& problem,
                                  const LossValues& values) {
  const std::string uncovered =
      reference::uncovered_by_loss_bounds(resolve(kernel.description.numerics, problem.dtype));
  if (!uncovered.empty()) proptest::stop(Verdict::unsupported, uncovered);
  return {kernel.description, problem, values};
}

void add_loss(TensorFile& file, const attest_kernel& kernel, const Case& c,
              const LossValues& values) {
  const proptest::LossTruth truth = loss_truth_of(kernel, c.problem, values);
  const proptest::LossRun run = proptest::run_loss(kernel, c.problem, values, c);
  add_output(file, "dX", run.dX, truth.exact().dX, truth.bounds().dX);
  if (!proptest::writes_dy(kernel.description)) return;
  add_output(file, "dY", run.dY, truth.exact().dY, truth.bounds().dY);
}

LawResult check_loss(const attest_kernel& kernel, const Case& c, const LossValues& values) {
  return proptest::guarded([&] {
    proptest::require_claimed(kernel, c.problem, Direction::loss_gradient);
    const proptest::LossTruth truth = loss_truth_of(kernel, c.problem, values);
    const proptest::LossRun run = proptest::run_loss(kernel, c.problem, values, c);
    proptest::require_success(run.status, run.misconduct, run.words, c.problem);
    return proptest::judged(truth.judge(run));
  });
}

LawResult check_attention(const attest_kernel& kernel, const Case& c, const InputValues& values) {
  return proptest::guarded([&] {
    const proptest::Solved solved(kernel, c.problem, values, direction_for(kernel, c.problem), c);
    return proptest::judged(solved.truth.judge(solved.run));
  });
}

// The output that refuses, empty when it is none.
std::string refusing_output(const LawResult& result) {
  for (const proptest::Comparison& comparison : result.comparisons) {
    if (comparison.verdict == result.verdict) return comparison.output;
  }
  return "";
}

}  // namespace

Inputs generated_inputs(const attest_kernel& kernel, const Case& c) {
  if ((kernel.description.directions & ATTEST_LOSS_GRADIENT) != 0) {
    return {std::nullopt, proptest::make_loss_values(c.problem, c.values, c.seed)};
  }
  return {proptest::make_values(c.problem, c.values, c.seed), std::nullopt};
}

bool same_inputs(const Case& c, const Inputs& a, const Inputs& b) {
  Inputs first = a, second = b;
  const auto left = inputs_of(c.problem, first), right = inputs_of(c.problem, second);
  if (left.size() != right.size()) return false;
  for (std::size_t k = 0; k < left.size(); ++k) {
    const double *x = left[k].tensor->doubles(), *y = right[k].tensor->doubles();
    if (!std::equal(x, x + left[k].tensor->view().size(), y)) return false;
  }
  return true;
}

proptest::Law law_on(const Inputs& inputs) {
  proptest::Law law;
  law.name = "given_inputs";
  law.statement = "every output lies within its bounds of the exact result on the inputs given";
  law.check = [&inputs](const attest_kernel& kernel, const Case& c) {
    return inputs.loss ? check_loss(kernel, c, *inputs.loss)
                       : check_attention(kernel, c, *inputs.attention);
  };
  return law;
}

std::optional<Inputs> reduce_values(const attest_kernel& kernel, const Case& c,
                                    const Inputs& inputs, int budget) {
  Inputs smallest = inputs;
  const auto check = [&](const Inputs& candidate) {
    --budget;
    return worker::check(law_on(candidate), kernel, c);
  };
  const LawResult first = check(smallest);
  if (first.verdict != Verdict::violated) return std::nullopt;
  const std::string output = refusing_output(first);
  // Sets elements begin .. end-1 of one tensor; kept when it still fails in the same way.
  const auto tries = [&](std::size_t which, std::int64_t begin, std::int64_t end, double value) {
    Inputs candidate = smallest;
    double* elements = inputs_of(c.problem, candidate)[which].tensor->doubles();
    bool changes = false;
    for (std::int64_t e = begin; e < end; ++e) {
      changes = changes || elements[e] != value;
      elements[e] = value;
    }
    if (!changes) return true;
    if (budget <= 0) return false;
    const LawResult result = check(candidate);
    if (result.verdict != first.verdict || refusing_output(result) != output) return false;
    smallest = std::move(candidate);
    return true;
  };
  const std::function<void(std::size_t, std::int64_t, std::int64_t)> clear =
      [&](std::size_t which, std::int64_t begin, std::int64_t end) {
        if (begin >= end || budget <= 0 || tries(which, begin, end, 0)) return;
        if (end - begin == 1) {
          tries(which, begin, end, 1);
          return;
        }
        const std::int64_t middle = begin + (end - begin) / 2;
        clear(which, begin, middle);
        clear(which, middle, end);
      };
  const std::size_t count = inputs_of(c.problem, smallest).size();
  for (std::size_t which = count; which-- > 0;) {
    clear(which, 0, inputs_of(c.problem, smallest)[which].tensor->view().size());
  }
  return smallest;
}

TensorFile inputs_file(const Case& c, const Inputs& inputs, const FailureNote& note) {
  TensorFile file;
  file.metadata = {{"attest", kFormat},
                   {"problem", stream_prefix() + c.problem.to_string()},
                   {"values", std::string(proptest::name(c.values))},
                   {"seed", std::to_string(c.seed)},
                   {"threads", std::to_string(c.threads)},
                   {"checks", std::to_string(note.checks)},
                   {"kernel", note.kernel},
                   {"law", note.law},
                   {"message", note.message}};
  Inputs copy = inputs;
  for (const InputTensor& input : inputs_of(c.problem, copy)) {
    file.tensors.emplace(std::string(input.name), copy_as(input, *input.tensor, input.dtype));
  }
  return file;
}

TensorFile failure_file(const attest_kernel& kernel, const Case& c, const Inputs& inputs,
                        const FailureNote& note) {
  TensorFile file = inputs_file(c, inputs, note);
  // The cause that stops a comparison (no bounds for the contract, a kernel that fails) is in the
  // message.
  proptest::guarded([&] {
    if (inputs.loss) {
      add_loss(file, kernel, c, *inputs.loss);
    } else {
      add_attention(file, kernel, c, *inputs.attention);
    }
    return LawResult{};
  });
  return file;
}

Failure parse_failure(const TensorFile& file, const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw InvalidProblem("file '" + path + "': " + why);
  };
  const auto text = [&](const char* key) {
    const auto known = file.metadata.find(key);
    if (known == file.metadata.end()) {
      refuse(std::string("its metadata have no '") + key +
             "'; is it a failure that `attest certify --failures` saved?");
    }
    return known->second;
  };
  const auto number = [&](const char* key, std::uint64_t most) {
    const std::string word = text(key);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value > most) {
      refuse(std::string("its ") + key + " is '" + word + "', not a whole number up to " +
             std::to_string(most));
    }
    return value;
  };
  constexpr std::uint64_t kMostThreads = 1024, kMostChecks = 1000000;
  if (text("attest") != kFormat) {
    refuse("it is a '" + text("attest") + "', this version reads '" + kFormat + "'");
  }
  Failure failure;
  std::string problem = text("problem");
  if (problem.rfind(stream_prefix(), 0) != 0) {
    refuse("its problem '" + problem + "' does not begin with '" + stream_prefix() + "'");
  }
  try {
    failure.of.problem = Problem::parse(problem.substr(stream_prefix().size()));
    failure.of.values = proptest::parse_values(text("values"));
  } catch (const InvalidProblem& error) {
    refuse(error.what());
  }
  failure.of.seed = number("seed", ~std::uint64_t{0});
  failure.of.threads = static_cast<std::int32_t>(number("threads", kMostThreads));
  failure.note = {text("kernel"), text("law"), text("message"),
                  static_cast<int>(number("checks", kMostChecks))};
  if (file.tensors.count("A1") > 0) {
    failure.inputs.loss.emplace();
  } else {
    failure.inputs.attention.emplace();
  }
  for (const InputTensor& input : inputs_of(failure.of.problem, failure.inputs)) {
    const auto known = file.tensors.find(std::string(input.name));
    if (known == file.tensors.end()) refuse("has no tensor '" + std::string(input.name) + "'");
    const TensorView& view = known->second.view();
    if (view.dtype() != input.dtype) {
      refuse("tensor '" + std::string(input.name) + "' has dtype " +
             std::string(name(view.dtype())) + ", the problem needs " +
             std::string(name(input.dtype)));
    }
    std::string wanted, got;
    for (const Axis& axis : input.axes) wanted += " " + std::to_string(axis.extent);
    for (std::size_t a = 0; a < view.rank(); ++a) got += " " + std::to_string(view.extent(a));
    if (got != wanted) {
      refuse("tensor '" + std::string(input.name) + "' has shape" + got + ", the problem needs" +
             wanted);
    }
    *input.tensor = copy_as(input, known->second, DType::f64);
  }
  return failure;
}

}  // namespace attest::certify
