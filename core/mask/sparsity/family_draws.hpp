#pragma once

#include <cstdint>
#include <string>

#include "core/rng.hpp"

/// Spellings of patterns of rows x columns pairs as generated cases have them, a function for each
/// family.  [core/mask/sparsity/families_test "drawn"]
namespace attest::draws {

std::string block(Rng& rng, std::int64_t rows, std::int64_t columns);
std::string blockband(Rng& rng, std::int64_t rows, std::int64_t columns);
std::string butterfly(Rng& rng, std::int64_t rows, std::int64_t columns);
std::string documents(Rng& rng, std::int64_t rows, std::int64_t columns);
/// Draws whole rows or whole columns.
std::string lines(Rng& rng, std::int64_t rows, std::int64_t columns);
std::string dilated(Rng& rng, std::int64_t rows, std::int64_t columns);
std::string global(Rng& rng, std::int64_t rows, std::int64_t columns);
std::string nm(Rng& rng, std::int64_t rows, std::int64_t columns);
std::string pairs(Rng& rng, std::int64_t rows, std::int64_t columns);

}  // namespace attest::draws
