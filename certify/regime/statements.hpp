#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "certify/regime/regime.hpp"

namespace attest::certify {

/// A size of fast memory that a statement speaks of, or should have.
struct Place {
  std::string device;  // of fixtures/devices.json, or empty
  std::string name;
  std::int64_t fast_bytes;
};

/// Statement about M/d^2 on a device, in our words, and the sizes to hold it against.
struct Statement {
  /// Says whether the statement is of all figures of a place, or that there is one.
  enum class Of : std::uint8_t { every, some };

  std::string source;
  std::string text;
  double at_least = 0, below = 0;  // the ratios for which it holds: at_least <= M/d^2 < below
  Of of = Of::every;
  std::vector<Place> places;
  std::vector<std::pair<std::int64_t, std::int64_t>> head_dims;  // d_k, d_v
};

/// Lists what papers and their discussion say of M and d^2 on real devices.
const std::vector<Statement>& statements();

/// A statement at one size, head dimension and width.
struct Figure {
  std::string device, place, word;
  std::int64_t head_dim_qk = 0, head_dim_v = 0;
  CacheSize size;
  enum class Holds : std::uint8_t { yes, no } holds = Holds::yes;
};

/// All of a statement's figures.  [certify/regime/regime_test "statements"]
std::vector<Figure> figures(const Statement& statement);

}  // namespace attest::certify
