#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Query lengths: how many queries of each batch entry exist.
namespace attest {

/// Lengths, from 0 to the rows of the entry, and their spelling: `drawn_7` from seed 7, or one for
/// each batch entry, `5_0_9`. A drawn length depends on the seed, its entry and its rows alone.
struct QueryLengths {
  enum class Kind : std::uint8_t { none, drawn, given };

  Kind kind = Kind::none;
  std::uint64_t seed = 0;
  std::vector<std::int32_t> given;  // one for each batch entry

  bool operator==(const QueryLengths&) const = default;

  /// Queries of batch entry b that exist, of `rows`.
  std::int64_t operator()(std::int64_t b, std::int64_t rows) const;

  /// The spelling, and back. Throws InvalidProblem for a text that is none.
  /// [core/features/query_lengths_test "spelled"]
  std::string to_string() const;
  static QueryLengths parse(const std::string& text);
};

}  // namespace attest
