#include "proptest/judge/past_lengths.hpp"

#include <cstdint>

#include "core/numerics.hpp"
#include "proptest/judge/buffer.hpp"

namespace attest::proptest {
namespace {

// Visits the indices of each element that lies in such a row, and the row's number in its entry.
template <class Visit>
void for_each_past(const Problem& problem, const TensorView& output, const Visit& visit) {
  const bool columns = output.rank() == 4;  // else LSE: (batch, heads, rows)
  const std::int64_t heads = output.extent(columns ? 2 : 1);
  for (const Sequence& sequence : problem.sequences()) {
    const std::int64_t b = sequence.tensor_batch;
    for (std::int64_t i = sequence.queries(); i < sequence.q_length; ++i) {
      const std::int64_t row = sequence.q_begin + i;
      for (std::int64_t h = 0; h < heads; ++h) {
        if (!columns) visit(sequence, i, b, h, row, 0);
        for (std::int64_t c = 0; columns && c < output.extent(3); ++c) {
          visit(sequence, i, b, row, h, c);
        }
      }
    }
  }
}

}  // namespace

std::string written_past_lengths(const Problem& problem, const Tensor& output) {
  const TensorView& view = output.view();
  const std::uint64_t unwritten = unwritten_bits(view.dtype());
  std::string found;
  for_each_past(problem, view, [&](const Sequence& sequence, std::int64_t i, auto... at) {
    if (!found.empty() || view.bits(at...) == unwritten) return;
    found = "wrote query " + std::to_string(i) + " of batch entry " +
            std::to_string(sequence.number) + " of " + std::string(view.name()) +
            ", which lies past its length of " + std::to_string(sequence.queries()) +
            ", and claims to write no such row";
  });
  return found;
}

namespace {

void fill(const Problem& problem, double value, Tensor& output) {
  if (output.view().rank() < 3) return;  // not asked for
  for_each_past(problem, output.view(),
                [&](const Sequence& /*sequence*/, std::int64_t /*i*/, auto... at) {
                  output.set(value, at...);
                });
}

}  // namespace

bool may_leave_rows(const attest_description& description, const Problem& problem) {
  return conventions_of(description).past_length == PastLength::not_written &&
         problem.query_lengths.kind != QueryLengths::Kind::none;
}

void take_unwritten_as_empty(const attest_description& description, const Problem& problem,
                             KernelRun& run) {
  if (!may_leave_rows(description, problem)) return;
  const EmptyRowValues empty = values_of(conventions_of(description).empty_row);
  fill(problem, empty.O, run.O);
  fill(problem, empty.LSE, run.LSE);
  fill(problem, 0, run.dQ);
}

}  // namespace attest::proptest
