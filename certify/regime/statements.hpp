#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "certify/regime/regime.hpp"

namespace attest::certify {

/// A size of fast memory that a statement speaks of, or should have.
struct Place {
  std::string name;
  std::int64_t fast_bytes;
};

/// What is said of a device's regime, in our words, and the sizes to hold it against.
struct Statement {
  std::string source;
  std::string text;
  CacheRegime claimed;
  std::vector<Place> places;
  std::vector<std::int64_t> head_dims;  // d_k = d_v
};

/// What papers and their discussion say of M and d^2 on real devices.
const std::vector<Statement>& statements();

/// A statement at one size, head dimension and width.
struct Figure {
  std::string place, word;
  std::int64_t head_dim = 0;
  CacheSize size;
  enum class Holds : std::uint8_t { yes, no } holds = Holds::yes;
};

/// All of a statement's figures.  [certify/regime/regime_test "statements"]
std::vector<Figure> figures(const Statement& statement);

}  // namespace attest::certify
