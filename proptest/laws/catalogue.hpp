#pragma once

#include <vector>

#include "proptest/laws/law.hpp"

namespace attest::proptest {

std::vector<Law> reference_laws();
std::vector<Law> level_laws();
std::vector<Law> field_laws();
std::vector<Law> probe_laws();
std::vector<Law> invariance_laws();
std::vector<Law> memory_laws();
std::vector<Law> algebra_laws();
std::vector<Law> sparsity_laws();
std::vector<Law> identity_laws();
std::vector<Law> sink_laws();
std::vector<Law> bias_laws();
std::vector<Law> mask_laws();
std::vector<Law> page_laws();
std::vector<Law> batch_laws();
std::vector<Law> nonfinite_laws();
std::vector<Law> shared_kv_laws();
std::vector<Law> loss_laws();

}  // namespace attest::proptest
