#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// A small certificate: one kernel certified, one with findings.
namespace attest::certify {

inline const char* const kSampleReproduce =
    "attest check --kernel './<b>.so:x' --problem 'sq=1' --law reference_forward --seed 1";

inline nlohmann::json sample_law(int passed, int vacuous, int failed) {
  return {{"passed", passed},
          {"vacuous", vacuous},
          {"unsupported", 2},
          {"improbable_once", 0},
          {"failed", failed}};
}

inline nlohmann::json sample_sizes(int rows) {
  return {{"seqlen_q", rows}, {"seqlen_k", 90}, {"head_dim", 64},
          {"batch", 3},       {"heads", 2},     {"tokens", 0}};
}

inline nlohmann::json sample_kernel(const std::string& name, const std::string& verdict) {
  std::vector<int> histogram(16, 0);
  histogram[1] = 30;
  histogram[4] = 12;
  return {{"kernel", name},
          {"description",
           {{"summary", "a kernel & more"},
            {"device", "cpu"},
            {"directions", {"forward"}},
            {"dtypes", {"f32", "bf16"}},
            {"features", {"gqa", "window"}},
            {"numerics",
             {{"accumulation", "nearest"},
              {"exp_ulps", {{"f32", 2.0}, {"bf16", 2.0}}},
              {"p_roundoff", {{"f32", 0.0}, {"bf16", 0.00390625}}}}},
            {"conventions", {{"empty_row", "zero_neg_inf"}, {"lse_base", "e"}}},
            {"schedule", "flash2:bq=2,bk=2"}}},
          {"ran", "emulated on the <host>"},
          {"verdict", verdict},
          {"law", nullptr},
          {"incomplete", nlohmann::json::array()},
          {"cases", 60},
          {"planned_cases", 60},
          {"checks", {{"passed", 42}, {"vacuous", 3}}},
          {"laws",
           {{"reference_forward", sample_law(42, 3, 0)}, {"one_hot_probe", sample_law(0, 4, 0)}}},
          {"worst",
           {{"O", {{"error_over_bound", 0.42}, {"problem", "sq=3"}, {"histogram", histogram}}}}},
          {"coverage",
           {{"exercised", {{"f32", 42}, {"gqa", 20}}},
            {"matrix", {{"f32", {{"any", 42}, {"gqa", 20}}}}},
            {"not_exercised", {"window"}},
            {"not_claimed", {{"softcap", 4}}},
            {"sizes", {{"causal", {{"whole", sample_sizes(40)}, {"sampled", sample_sizes(2211)}}}}},
            {"pairs", {{"claimed", 7}, {"met", 6}, {"not_met", {"mask=window dtype=f32"}}}},
            {"refused", nlohmann::json::array()}}},
          {"io",
           {{"schedule", "flash2:bq=2,bk=2"},
            {"fast_memory_bytes", nullptr},
            {"table",
             {{{"problem", "sq=64,d=8"},
               {"direction", "forward"},
               {"counted", {{"moved", {{"words", 3000}, {"bytes", 12000}}}}},
               {"class",
                {{"conditions",
                  {{{"name", "K4"}, {"text", "rows <2"}, {"met", false}, {"found", "<1"}}}},
                 {"evaluates_once", true},
                 {"moves_whole_rows", false},
                 {"reads_saved_outputs", false}}},
               {"lower", {{"name", "theorem_a"}, {"words", 2000}, {"bytes", 8000}}},
               {"ratio", 1.5}},
              {{"problem", "sq=2,d=8"},
               {"direction", "forward"},
               {"counted", {{"moved", {{"words", 30}, {"bytes", 120}}}}},
               {"lower", nullptr},
               {"ratio", nullptr}}}},
            {"cases", 12},
            {"cases_with_equal_bits", 12},
            {"not_counted", nlohmann::json::array()},
            {"violations", nlohmann::json::array()}}},
          {"findings", nlohmann::json::array()}};
}

inline nlohmann::json sample_finding() {
  return {
      {"law", "reference_forward"},
      {"verdict", "violated"},
      {"message", "O[batch=0] is <nan>, \"exact\" 1\x1b[31m"},
      {"found", {{"problem", "v1;sq=8"}, {"values", "normal"}, {"seed", 1}, {"threads", 1}}},
      {"shrunk", {{"problem", "v1;sq=1"}, {"values", "normal"}, {"seed", 1}, {"threads", 1}}},
      {"signatures",
       {{{"name", "top_left_causal"}, {"equals", "the result with top-left causal alignment"}}}},
      {"bound_term", "O: accumulation"},
      {"errors",
       {{"output", "O"},
        {"batch", 0},
        {"head", 1},
        {"row_axis", "seqlen_q"},
        {"column_axis", "head_dim_v"},
        {"rows", 4},
        {"columns", 2},
        {"row_step", 1},
        {"column_step", 1},
        {"error_over_bound", {0.0, 0.5, 2.0, 100.0, 1e5, 1e9, nullptr, 0.0}}}},
      {"file", "failures/x.safetensors"},
      {"reproduce", kSampleReproduce}};
}

inline nlohmann::json sample_certificate() {
  nlohmann::json broken = sample_kernel("./<b>.so:x", "violated");
  broken["findings"].push_back(sample_finding());
  broken["laws"]["reference_forward"]["failed"] = 1;
  nlohmann::json partial = sample_kernel("cpu/partial", "incomplete");
  partial["incomplete"] = {"claimed, never exercised: window"};
  return {
      {"schema", "attest-certificate-1"},
      {"stream_version", 1},
      {"abi_version", 1},
      {"build", {{"version", "0.1.0"}, {"compiler", "12"}, {"type", "Release"}, {"flags", "-O3"}}},
      {"host",
       {{"system", "Linux"},
        {"machine", "x86_64"},
        {"processor", "P"},
        {"extensions", {"avx2"}},
        {"threads", 2}}},
      {"tier", "smoke"},
      {"seed", 1},
      {"exit_code", 1},
      {"kernels", {sample_kernel("cpu/good", "certified"), broken, partial}},
      {"timings", {{"seconds", {{"cpu/good", 1.25}}}}}};
}

}  // namespace attest::certify
