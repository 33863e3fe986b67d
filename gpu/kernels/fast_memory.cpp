#include "gpu/kernels/fast_memory.hpp"

#include <string>

#include "core/error.hpp"

namespace attest::gpu {
namespace {

struct Declared {
  std::string_view kernel;
  ThreadMemory memory;
};

// nvcc 13.0 for sm_80, sm_90 and sm_90a.
constexpr Declared kDeclared[] = {
    {"flash2_forward<1, float>", {128, 0}},
    {"flash2_forward<2, float>", {128, 8}},
    {"flash2_forward<4, float>", {184, 0}},
    {"flash2_forward<8, float>", {208, 0}},
    {"flash2_forward<18, float>", {248, 0}},
    {"two_pass_keys<BackwardTile<1, 1, 32>>", {168, 0}},
    {"two_pass_keys<BackwardTile<1, 2, 32>>", {216, 0}},
    {"two_pass_keys<BackwardTile<1, 4, 32>>", {256, 0}},
    {"two_pass_keys<BackwardTile<2, 4, 32>>", {256, 0}},
    {"two_pass_keys<BackwardTile<2, 9, 16>>", {256, 0}},
    {"two_pass_queries<BackwardTile<1, 1, 32>>", {256, 0}},
    {"two_pass_queries<BackwardTile<1, 2, 32>>", {256, 0}},
    {"two_pass_queries<BackwardTile<1, 4, 32>>", {256, 0}},
    {"two_pass_queries<BackwardTile<2, 4, 32>>", {216, 0}},
    {"two_pass_queries<BackwardTile<2, 9, 16>>", {256, 0}},
};

}  // namespace

ThreadMemory declared_thread_memory(std::string_view kernel) {
  for (const Declared& one : kDeclared) {
    if (one.kernel == kernel) return one.memory;
  }
  throw InvalidProblem(std::string(kernel) +
                       ": no registers are declared; add a line to gpu/kernels/fast_memory.cpp");
}

}  // namespace attest::gpu
