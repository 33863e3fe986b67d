#pragma once

/// Words of the dense schedules per visible pair, leading terms only, d_k = d_v = d, as functions
/// of theta = M/d^2 (a = 1/sqrt(theta)). Verified against traced simulations; upper bounds, so none
/// of them is a lower bound. Where a d-wide rank-1 product is tiled, the 2a of the ideal tile is
/// min over whole c of c + a^2/c, because c = ceil(d / tile columns) passes are made.
/// docs/theory/bounds/coefficients.md  [io/bounds/dense/coefficients_test "table"]
///
/// Every function requires theta > 0 (loss_large_direct theta > 2), else throws InvalidProblem.
namespace attest::io {

/// min over whole c >= 1 of c + a^2/c.
double rank1_coefficient(double theta);

double flash2_row_coefficient(double theta);       // 4a^2, best for theta >= 1
double hybrid_coefficient(double theta);           // (1 + a)^2, best for 1/4 <= theta <= 1
double rank1_tiled_coefficient(double theta);      // 4a + 1, best for theta <= 1/4
double flash_attention_coefficient(double theta);  // 12a^2, with the paper's own tiles
double square_tiled_coefficient(double theta);     // 8a + 1 for theta <= 4, 6a + 2 above

double two_pass_row_coefficient(double theta);        // 14a^2, best for theta >= 5/2
double key_stationary_coefficient(double theta);      // 16a^2
double key_stationary_ds_coefficient(double theta);   // 9a^2 + 2, best for 1 <= theta <= 5/2
double rolling_p_coefficient(double theta);           // 5a^2 + 5, best for 0.4 <= theta <= 4/3
double query_stationary_p_coefficient(double theta);  // 2a^2 + 6a + 3, best for 1/4 <= theta <= 0.4
double rank1_tiled_bwd_coefficient(double theta);     // 10a + 3, best for theta <= 1/4

double loss_large_coefficient(double theta);         // 10a^2
double loss_large_direct_coefficient(double theta);  // 4a^2 + 4/(theta - 2), less for theta > 6
double loss_small_coefficient(double theta);         // 8a

/// Words per pair of column_groups, M of flash2_row: 4 d_k d_v / M for d_v > d_k, (d_k + d_v)^2 / M
/// otherwise.
double column_groups_coefficient(double head_dim_qk, double head_dim_v, double fast_words);

/// The least of the forward schedules above (flash2_row, hybrid, rank1_tiled).
double best_forward_coefficient(double theta);

/// The least of the backward schedules above.
double best_backward_coefficient(double theta);

}  // namespace attest::io
