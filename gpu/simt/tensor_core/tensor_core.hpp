#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gpu/simt/diagnosis.hpp"

/// Host functions behind the words of tensor_core.cuh. Each throws InternalError outside of a lane.
namespace attest::simt {

/// The 16-bit types of a product's factors.
enum class Half : std::uint8_t { bf16, f16 };

/// Rows of 8 x 8 matrices of 16-bit elements from shared memory: the k-th eight lanes name those of
/// matrix k. Lane 4 i + j takes elements (i, 2 j) and (i, 2 j + 1) of each, the transposed way
/// (2 j, i) and (2 j + 1, i), the first in the low half.
void load_matrices(std::uint32_t* fragments, const void* row, std::uint32_t matrices,
                   bool transposed, std::string_view operation, SourceLine where);

/// d = a b + c of a warp, 16 x 16 by 16 x 8, from fragments as tensor_core.cuh has them.
void multiply_matrices(float* d, const std::uint32_t* a, const std::uint32_t* b, const float* c,
                       Half type, SourceLine where);

/// Two values rounded to the nearest, `low` in the low half.
std::uint32_t pack_halves(float high, float low, Half type);

}  // namespace attest::simt
