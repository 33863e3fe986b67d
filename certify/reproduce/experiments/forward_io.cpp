// Forward I/O against fast memory.
#include "certify/reproduce/claims/io_against_fast_memory.hpp"

namespace attest::certify {

Experiment forward_io_experiment() {
  return io_against_fast_memory(
      {.name = "forward_io",
       .title = "forward I/O against fast memory",
       .direction = Direction::forward,
       .large = {"FlashAttention moves words in proportion to N^2 d^2 / M for d^2 <= M <= N d",
                 "Dao et al. 2022, Theorem 2"},
       .small = {"square tiles move words in proportion to N^2 d / sqrt(M) for M < d^2",
                 "Saha and Ye 2024, Theorem 3.5"},
       .bound = {"no schedule moves fewer words than the lower bound, whatever M",
                 "our Theorems A and B (docs/theory), of the order of Saha and Ye 2024, Theorem "
                 "3.1"},
       .bound_note = "",
       .meeting_source = "Saha and Ye 2024, section 3, the crossover point",
       .rivals =
           {{"the papers' tiles, whatever they need", {"square_tiled"}, {"flash1"}, Tiles::papers},
            {"the papers' orders, best tiles", {"square_tiled"}, {"flash1"}},
            {"the best known", {"rank1_tiled", "hybrid"}, {"flash2_row"}}}},
      1);
}

}  // namespace attest::certify
