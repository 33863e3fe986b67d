// Backward I/O against fast memory.
#include "certify/reproduce/claims/io_against_fast_memory.hpp"

namespace attest::certify {

Experiment backward_io_experiment() {
  return io_against_fast_memory(
      {.name = "backward_io",
       .title = "backward I/O against fast memory",
       .direction = Direction::backward,
       .large =
           {"FlashAttention's backward moves words in proportion to N^2 d^2 / M, d^2 <= M <= N d",
            "Dao et al. 2022, Theorem 5"},
       .small = {"square tiles move words in proportion to N^2 d / sqrt(M) for M < d^2",
                 "our tiles, after those of Saha and Ye 2024; order of Li et al. 2024, Theorem "
                 "1.1"},
       .bound = {"no schedule moves fewer words than the lower bound, whatever M",
                 "our Theorem C (docs/theory), of the order of Li et al. 2024, Theorem 1.1"},
       .bound_note = "",
       .meeting_source = "Li et al. 2024, Theorem 1.1",
       .rivals = {{"tiles by the papers' rules, whatever they need",
                   {"square_tiled_bwd"},
                   {"flash1_bwd"},
                   Tiles::papers},
                  {"the papers' orders, best tiles", {"square_tiled_bwd"}, {"flash1_bwd"}},
                  {"the best known",
                   {"rank1_tiled_bwd", "query_stationary_p", "rolling_p"},
                   {"two_pass_row"}}}},
      2);
}

}  // namespace attest::certify
