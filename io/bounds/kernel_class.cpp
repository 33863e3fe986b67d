#include "io/bounds/kernel_class.hpp"

#include "core/error.hpp"

namespace attest::io {
namespace {

Condition condition(const char* name, const char* text, std::string got) {
  Condition result{name, text, Condition::State::met, std::move(got)};
  if (!result.got.empty()) result.state = Condition::State::failed;
  return result;
}

std::string fault(FastMemoryUse use) {
  switch (use) {
    case FastMemoryUse::empty_and_complete:
      return "";
    case FastMemoryUse::preloaded:
      return "fast memory holds inputs at the start";
    case FastMemoryUse::uncounted_words:
      return "arithmetic touches words that fast_words does not count";
  }
  throw InternalError("FastMemoryUse out of range");
}

std::string fault(Products products) {
  switch (products) {
    case Products::standard:
      return "";
    case Products::scores_given:
      return "the weights are an input, no score is formed";
    case Products::shortcut:
      return "products take a shortcut";
  }
  throw InternalError("Products out of range");
}

std::string fault(Storage storage) {
  switch (storage) {
    case Storage::disjoint:
      return "";
    case Storage::key_is_value:
      return "K and V share storage";
    case Storage::query_is_key:
      return "Q and K share storage";
    case Storage::unknown:
      return "operands share storage in an undeclared way";
  }
  throw InternalError("Storage out of range");
}

}  // namespace

KernelClass plain_class(const Problem& problem) {
  KernelClass kernel;
  if (problem.scale() == 0) kernel.products = Products::shortcut;
  return kernel;
}

std::vector<Condition> class_conditions(const KernelClass& kernel) {
  if (kernel.num_blocks < 1) {
    throw InvalidProblem("num_blocks is " + std::to_string(kernel.num_blocks) +
                         "; a kernel has at least 1 block");
  }
  return {
      condition("K1", "fast memory is empty at the start and counts every word arithmetic touches",
                fault(kernel.fast_memory)),
      condition("K2", "every score, every dP and every output is a sum of its own products",
                fault(kernel.products)),
      condition("K3", "Q, K, V and dO do not share storage", fault(kernel.storage)),
      condition("K4", "only rows with at least two visible keys are counted", ""),
      condition("K5", "segments are whole numbers of transfers, rounded outward", ""),
      condition("K6",
                kernel.fast_memories() == 1
                    ? "one fast memory, or blocks that could run one after another"
                    : "blocks that communicate: each begins with empty fast memory",
                kernel.blocks == Blocks::shared_transfers
                    ? "a word read once for several blocks is counted once"
                    : ""),
  };
}

}  // namespace attest::io
