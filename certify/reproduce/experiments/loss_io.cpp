// I/O of the attention loss gradient against fast memory.
#include "certify/reproduce/claims/io_against_fast_memory.hpp"

namespace attest::certify {

Experiment loss_io_experiment() {
  return io_against_fast_memory(
      {.name = "loss_io",
       .title = "I/O of the attention loss gradient against fast memory",
       .direction = Direction::loss_gradient,
       .large = {"the large-cache algorithm moves words in proportion to n^2 d^2 / M",
                 "Li et al. 2024, Theorem 1.1"},
       .small = {"the small-cache algorithm moves words in proportion to n^2 d / sqrt(M)",
                 "Li et al. 2024, Theorem 1.1 and Algorithm 6"},
       .bound = {"no schedule moves fewer words than what is proved of its kind here",
                 "docs/theory, for M < d^2 of the order of Li et al. 2024, Theorem 1.1"},
       .bound_note =
           "; of the order of n^2 d^2 / M none is proved here: there it is inputs and output only",
       .meeting_source = "Li et al. 2024, Theorem 1.1",
       .rivals = {{"the paper's orders, best tiles", {"loss_small"}, {"loss_large"}},
                  {"the best known", {"loss_small"}, {"loss_large_direct"}}}},
      3);
}

}  // namespace attest::certify
