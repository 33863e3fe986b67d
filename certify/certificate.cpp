#include "certify/certificate.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "certify/audit/seal.hpp"
#include "certify/campaign/host.hpp"
#include "certify/campaign/where_run.hpp"
#include "certify/count/count.hpp"
#include "certify/plan/coverage.hpp"
#include "certify/report/html/sampled.hpp"
#include "certify/worker/conduct/fault.hpp"
#include "core/contract/contract_text.hpp"
#include "core/error.hpp"
#include "core/numerics.hpp"
#include "core/rng.hpp"
#include "proptest/judge/limits.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

// Returns a value that depends on the type of the tensors, for each claimed type.
template <class Member>
json by_dtype(const attest_description& d, const Member& member) {
  json values = json::object();
  for (const DTypeFacts& row : kDTypes) {
    if ((d.dtypes >> row.code & 1U) != 0) {
      values[std::string(row.name)] = member(resolve(d.numerics, row.dtype));
    }
  }
  return values;
}

json numerics_json(const attest_description& d) {
  const attest_numerics& declared = d.numerics;
  const Numerics n = resolve(declared, DType::f32);
  const char* accumulation = n.accumulation == Accumulation::nearest      ? "nearest"
                             : n.accumulation == Accumulation::truncating ? "truncating"
                                                                          : "fused_blocks";
  return {{"accumulation", accumulation},
          {"accumulator_roundoff",
           by_dtype(d, [](const Numerics& of) { return of.accumulator_roundoff; })},
          {"summation_depth", n.summation_depth},
          {"input_roundoff", n.input_roundoff},
          {"operand_roundoff", n.operand_roundoff},
          {"scaled_q_roundoff", n.scaled_q_roundoff},
          {"flushes_subnormals", n.flushed_below > 0},
          {"p_roundoff", by_dtype(d, [](const Numerics& of) { return of.p_roundoff; })},
          {"p_normalized_before_cast", n.normalize == CastOrder::before},
          {"row_sum_after_cast", n.row_sum == CastOrder::after},
          {"exp_ulps", by_dtype(d, [](const Numerics& of) { return of.exp_ulps; })},
          {"exp_zero_is_one", n.exp_zero_is_one},
          {"lse_splits", n.lse_splits},
          {"lse_split_keys", n.lse_split_keys},
          {"gqa_partial_roundoff",
           by_dtype(d, [](const Numerics& of) { return of.gqa_partial_roundoff; })},
          {"gqa_sum_roundoff", by_dtype(d, [](const Numerics& of) { return of.gqa_sum_roundoff; })},
          {"dq_roundoff", by_dtype(d, [](const Numerics& of) { return of.dq_roundoff; })},
          {"dkv_roundoff", by_dtype(d, [](const Numerics& of) { return of.dkv_roundoff; })},
          {"dp_roundoff", by_dtype(d, [](const Numerics& of) { return of.dp_roundoff; })},
          {"score_roundoff", by_dtype(d, [](const Numerics& of) { return of.score_roundoff; })},
          {"delta_from_p", n.delta == DeltaSource::pairs},
          {"deterministic", declared.nondeterministic == 0}};
}

json extents_json(const attest_extents& extents) {
  return {{"least", extents.least}, {"most", extents.most}, {"multiple", extents.multiple}};
}

// As they were declared: 0 is any.
json limits_json(const attest_description& d) {
  if (d.limits == nullptr) return nullptr;
  const attest_limits& limits = *d.limits;
  return {
      {"only", words_of(limits.only, only_words())}, {"softmax_scale", limits.softmax_scale},
      {"seqlen_q", extents_json(limits.seqlen_q)},   {"seqlen_k", extents_json(limits.seqlen_k)},
      {"head_dim", extents_json(limits.head_dim)},   {"head_dims", proptest::listed_head_dims(d)},
      {"most_heads_q", limits.most_heads_q},         {"most_batch", limits.most_batch}};
}

// JSON has no infinity: null.
json grid_json(const std::optional<ErrorGrid>& grid) {
  if (!grid) return nullptr;
  json cells = json::array();
  for (const double ratio : grid->cells) {
    cells.push_back(std::isfinite(ratio) ? json(ratio) : json(nullptr));
  }
  return {{"output", grid->output},
          {"batch", grid->batch},
          {"head", grid->head},
          {"row_axis", grid->row_axis},
          {"column_axis", grid->column_axis},
          {"rows", grid->rows},
          {"columns", grid->columns},
          {"row_step", grid->row_step},
          {"column_step", grid->column_step},
          {"error_over_bound", cells}};
}

json signatures_json(const std::vector<proptest::Signature>& signatures) {
  json list = json::array();
  for (const proptest::Signature& one : signatures) {
    list.push_back({{"name", one.name}, {"equals", one.statement}});
  }
  return list;
}

}  // namespace

json suspicions_json(const std::vector<Suspicion>& suspicions) {
  json list = json::array();
  for (const Suspicion& one : suspicions) {
    list.push_back({{"name", one.name}, {"deed", one.statement}});
  }
  return list;
}

json finding_json(const std::string& kernel, const Finding& finding) {
  json after = json::array();
  for (const proptest::Case& earlier : finding.after) after.push_back(case_json(earlier));
  const auto kind = worker::kind_in_finding(finding.message);
  return {{"law", finding.law},
          {"also", finding.also},
          {"kind", kind ? json(worker::name(*kind)) : json(nullptr)},
          {"verdict", name(finding.verdict)},
          {"message", finding.message},
          {"found", case_json(finding.found)},
          {"shrunk", case_json(finding.shrunk)},
          {"checks", finding.checks},
          {"after", after},
          {"signatures", signatures_json(finding.evidence.signatures)},
          {"suspicions", suspicions_json(finding.evidence.suspicions)},
          {"bound_term", finding.evidence.bound_term},
          {"hints", finding.evidence.hints},
          {"errors", grid_json(finding.evidence.grid)},
          {"known", finding.known},
          {"undecided", finding.undecided},
          {"file", finding.file.empty() ? json(nullptr) : json(finding.file)},
          {"reproduce", reproduce_line(kernel, finding)}};
}

namespace {

json code_json(const std::optional<CodeCount>& code) {
  if (!code) return nullptr;
  const auto& lower = code->lower;
  return {{"read", code->words.reads},
          {"written", code->words.writes},
          {"moved", code->words.total()},
          {"fast_words", code->fast_words},
          {"lower", lower ? json{{"name", lower->name}, {"words", lower->words}} : json(nullptr)}};
}

json io_json(const std::optional<ScheduleAudit>& io) {
  if (!io) return nullptr;
  json table = json::array();
  for (const CountedProblem& counted : io->table) {
    json row = schedule_count_json(counted.count, counted.problem);
    row["of_code"] = code_json(counted.of_code);
    const auto ratio = counted.ratio();
    row["ratio"] = ratio ? json(*ratio) : json(nullptr);
    table.push_back(std::move(row));
  }
  return {{"schedule", io->schedule},
          {"fast_memory_bytes",
           io->fast_memory_bytes == 0 ? json(nullptr) : json(io->fast_memory_bytes)},
          {"table", table},
          {"cases", io->cases},
          {"cases_with_equal_bits", io->equal_bits},
          {"not_counted", io->not_counted},
          {"violations", io->violations}};
}

json kernel_json(const Registry& registry, const CampaignResult& result) {
  json laws = json::object(), worst = json::object(), findings = json::array();
  for (const auto& [law, count] : result.laws) {
    laws[law] = {{"passed", count.passed},
                 {"vacuous", count.vacuous},
                 {"unsupported", count.unsupported},
                 {"improbable_once", count.improbable},
                 {"failed", count.failed}};
  }
  for (const auto& [output, ratio] : result.worst) {
    worst[output] = {{"error_over_bound", ratio.ratio},
                     {"problem", ratio.problem},
                     {"histogram", ratio.histogram}};
  }
  for (const Finding& finding : result.findings) {
    findings.push_back(finding_json(result.kernel, finding));
  }
  json sizes = json::object();
  for (const auto& [mask, covered] : result.sizes) sizes[mask] = sizes_json(covered);
  json refused = json::array();
  for (const Refusal& one : result.refused) {
    refused.push_back({{"message", one.message}, {"checks", one.checks}, {"example", one.example}});
  }
  json needed = json::array();
  for (const NeededFile& one : result.needed) {
    needed.push_back({{"file", one.path}, {"sha256", one.sha256}});
  }
  const attest_kernel& kernel = registry.find(result.kernel);
  const attest_description& description = kernel.description;
  const Pairs unmet = unmet_pairs(result);
  return {{"kernel", result.kernel},
          {"description", description_json(description)},
          {"library_sha256", result.library.empty() ? json(nullptr) : json(result.library)},
          {"ran", where_run(description)},
          {"contract", contract_text(description.numerics)},
          {"verdict", outcome(result)},
          {"law", result.chosen_law ? json(*result.chosen_law) : json(nullptr)},
          {"mask", result.mask ? json(*result.mask) : json(nullptr)},
          {"mask_content", result.mask_content.empty() ? json(nullptr) : json(result.mask_content)},
          {"incomplete", result.gaps},
          {"not_judged", fails_as_known(result) ? result.gaps_beside : not_judged(result)},
          {"cases", result.cases},
          {"planned_cases", result.planned_cases},
          {"checks",
           {{"passed", result.passed()},
            {"vacuous", result.vacuous()},
            {"made", result.checks},
            {"planned", result.planned_checks}}},
          {"laws", laws},
          {"worst", worst},
          {"coverage",
           {{"exercised", result.exercised},
            {"matrix", result.matrix},
            {"not_exercised", unexercised(description, result)},
            {"not_claimed", result.not_claimed},
            {"sizes", sizes},
            {"sampled_positions", sampled_positions(result.sizes)},
            {"pairs",
             {{"claimed", result.claimed.size()},
              {"met", result.claimed.size() - unmet.size()},
              {"not_met", unmet}}},
            {"refused", refused}}},
          {"needed", needed},
          {"loaded_in_calls", result.loaded},
          {"io", io_json(result.io)},
          {"io_backward", io_json(result.io_backward)},
          {"findings", findings}};
}

// This machine, with the processors of the shards where they are not all its own.
json host_of(const Journal* journal) {
  json host = host_json();
  if (journal == nullptr) return host;
  const std::string own = host.at("processor");
  std::set<std::string> processors = journal->processors();
  if (!own.empty()) processors.insert(own);
  const bool others = std::any_of(processors.begin(), processors.end(),
                                  [&](const std::string& name) { return name != own; });
  if (others) host["processors"] = processors;
  return host;
}

}  // namespace

json description_json(const attest_description& d) {
  const Conventions conventions = conventions_of(d);
  return {{"summary", d.summary == nullptr ? "" : d.summary},
          {"device", d.device == ATTEST_CUDA ? "cuda" : "cpu"},
          {"directions", words_of(d.directions, {{ATTEST_FORWARD, "forward"},
                                                 {ATTEST_BACKWARD, "backward"},
                                                 {ATTEST_LOSS_GRADIENT, "loss_gradient"}})},
          {"dtypes", words_of(d.dtypes, dtype_words())},
          {"features", words_of(d.features, feature_words())},
          {"limits", limits_json(d)},
          {"may_change", words_of(d.may_change, may_change_words())},
          {"numerics", numerics_json(d)},
          {"conventions",
           {{"empty_row", name(conventions.empty_row)},
            {"lse_base", name(conventions.lse_base)},
            {"past_length", name(conventions.past_length)}}},
          {"schedule", d.schedule == nullptr ? json(nullptr) : json(d.schedule)},
          {"schedule_backward",
           d.schedule_backward == nullptr ? json(nullptr) : json(d.schedule_backward)}};
}

json case_json(const proptest::Case& c) {
  return {{"problem", "v1;" + c.problem.to_string()},
          {"values", proptest::name(c.values)},
          {"seed", c.seed},
          {"threads", c.threads}};
}

json certificate(const Registry& registry, const CampaignOptions& options,
                 const std::vector<CampaignResult>& results, const Journal* journal) {
  json kernels = json::array(), seconds = json::object(), records = nullptr;
  std::vector<const attest_kernel*> found;
  bool interrupted = false;
  for (const CampaignResult& result : results) {
    kernels.push_back(kernel_json(registry, result));
    seconds[result.kernel] = result.seconds;
    interrupted = interrupted || result.interrupted;
    found.push_back(&registry.find(result.kernel));
  }
  if (journal != nullptr && !options.shard.whole()) {
    records = {{"campaign", campaign_header(found, options)}, {"records", journal->records()}};
  }
  return {{"schema", "attest-certificate-1"},
          {"stream_version", kStreamVersion},
          {"abi_version", ATTEST_ABI_VERSION},
          {"build", build_json()},
          {"host", host_of(journal)},
          {"tier", proptest::name(options.tier)},
          {"seed", options.seed},
          {"data_seed", options.values_seed()},
          {"problems", options.problems},
          {"shard", options.shard.whole() ? json(nullptr) : json(to_string(options.shard))},
          {"journal", records},
          {"interrupted", interrupted},
          {"exit_code", exit_code(results)},
          {"kernels", kernels},
          {"timings", {{"date", certificate_date()}, {"seconds", seconds}}}};
}

}  // namespace attest::certify
