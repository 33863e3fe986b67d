#include "core/features/drawn_row.hpp"

#include "core/rng.hpp"

namespace attest {

std::uint64_t drawn_row(std::uint64_t seed, std::uint64_t stream,
                        const std::array<std::uint64_t, 3>& row) {
  struct Last {
    bool known = false;
    std::uint64_t seed = 0, stream = 0, number = 0;
    std::array<std::uint64_t, 3> row{};
  };
  thread_local Last last;
  if (!last.known || last.row != row || last.seed != seed || last.stream != stream) {
    std::uint64_t number = mix(seed, stream);
    for (const std::uint64_t index : row) number = mix(number, index);
    last = {true, seed, stream, number, row};
  }
  return last.number;
}

}  // namespace attest
