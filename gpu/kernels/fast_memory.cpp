#include "gpu/kernels/fast_memory.hpp"

#include <string>

#include "core/error.hpp"

namespace attest::gpu {
namespace {

struct Declared {
  std::string_view kernel;
  int columns;
  ThreadMemory memory;
};

// nvcc 13.0 for sm_80, sm_90 and sm_90a.
constexpr Declared kDeclared[] = {
    {"flash2_forward", 1, {224, 0}},      {"flash2_forward", 2, {232, 0}},
    {"flash2_forward", 4, {256, 0}},      {"flash2_forward", 8, {256, 0}},
    {"flash2_forward", 18, {168, 640}},   {"two_pass_keys", 1, {112, 0}},
    {"two_pass_keys", 2, {128, 0}},       {"two_pass_keys", 4, {168, 0}},
    {"two_pass_keys", 8, {248, 0}},       {"two_pass_keys", 18, {80, 1152}},
    {"two_pass_queries", 1, {200, 0}},    {"two_pass_queries", 2, {168, 32}},
    {"two_pass_queries", 4, {256, 0}},    {"two_pass_queries", 8, {256, 0}},
    {"two_pass_queries", 18, {216, 576}},
};

}  // namespace

int columns_for(std::int64_t head_dim) {
  for (const int columns : {1, 2, 4, 8, 18}) {
    if (head_dim <= std::int64_t{32} * columns) return columns;
  }
  throw InvalidProblem("head dimension " + std::to_string(head_dim) + ": no kernel is made for it");
}

ThreadMemory declared_thread_memory(std::string_view kernel, int columns) {
  for (const Declared& one : kDeclared) {
    if (one.kernel == kernel && one.columns == columns) return one.memory;
  }
  throw InvalidProblem(std::string(kernel) + "<" + std::to_string(columns) +
                       ">: no registers are declared; add a line to gpu/kernels/fast_memory.cpp");
}

}  // namespace attest::gpu
