#include "certify/count/count.hpp"

#include <nlohmann/json.hpp>

#include "certify/campaign/host.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

json amount_json(io::Words words, io::Words bytes) {
  return {{"words", words.value()}, {"bytes", bytes.value()}};
}
json amount_json(io::Amount amount) { return amount_json(amount.words, amount.bytes); }

json traffic_json(const io::Traffic& traffic) {
  return {{"read", amount_json(traffic.reads)},
          {"written", amount_json(traffic.writes)},
          {"moved", amount_json(traffic.total_words(), traffic.total_bytes())},
          {"peak", amount_json(traffic.peak)}};
}

json limit_json(std::int64_t limit) {
  return limit == io::FastMemory::kUnlimited ? json(nullptr) : json(limit);
}

json class_json(const io::KernelClass& kernel) {
  json conditions = json::array();
  for (const io::Condition& condition : io::class_conditions(kernel)) {
    conditions.push_back({{"name", condition.name},
                          {"text", condition.text},
                          {"met", condition.state == io::Condition::State::met},
                          {"found", condition.got}});
  }
  return {{"conditions", conditions},
          {"evaluates_once", kernel.evaluation == io::Evaluation::once},
          {"moves_whole_rows", kernel.movement == io::RowMovement::whole_index},
          {"reads_saved_outputs", kernel.saved == io::SavedOutputs::read}};
}

json bound_json(const io::Bound& bound) {
  json object{{"name", bound.name},         {"tag", io::name(bound.tag)},
              {"label", bound.label()},     {"lower_bound", bound.is_lower_bound()},
              {"words", nullptr},           {"about_words", nullptr},
              {"why_not", bound.why_not()}, {"statement", bound.statement},
              {"page", bound.page}};
  if (!bound.applies()) return object;
  if (bound.form == io::Form::words) {
    object["words"] = bound.words;
  } else {
    object["about_words"] = bound.leading;
  }
  return object;
}

json lower_json(const std::optional<io::Bound>& bound, std::int64_t narrowest_bytes) {
  if (!bound) return nullptr;
  return {{"name", bound->name},
          {"words", bound->words},
          {"bytes", (io::Words(bound->words) * narrowest_bytes).value()}};
}

json candidates_json(const std::optional<io::BestSchedule>& best) {
  if (!best) return nullptr;
  json list = json::array();
  for (const io::Candidate& candidate : best->candidates) {
    const bool fits = candidate.refusal.empty();
    list.push_back({{"schedule", candidate.schedule},
                    {"traffic", fits ? traffic_json(candidate.traffic) : json(nullptr)},
                    {"refusal", candidate.refusal},
                    {"leaves_lse_out", candidate.leaves_lse_out},
                    {"others", json::array()}});
    for (const io::Candidate& other : candidate.others) {
      list.back()["others"].push_back(
          {{"schedule", other.schedule}, {"traffic", traffic_json(other.traffic)}});
    }
  }
  return list;
}

json replays_json(const std::vector<Replayed>& replays) {
  json list = json::array();
  for (const Replayed& replayed : replays) {
    const io::CacheTraffic& traffic = replayed.traffic;
    list.push_back({{"cache", replayed.cache.to_string()},
                    {"line_words", traffic.line_words},
                    {"read_words", traffic.read_words().value()},
                    {"written_words", traffic.written_words().value()},
                    {"scratch_written_words", traffic.scratch_written_words().value()}});
  }
  return list;
}

}  // namespace

json schedule_count_json(const io::ScheduleCount& count, const Problem& problem) {
  json bounds = json::array();
  for (const io::Bound& bound : count.bounds) bounds.push_back(bound_json(bound));
  const auto ratio = count.ratio();
  return {
      {"schedule", count.schedule},
      {"direction", name(count.direction)},
      {"problem", problem.to_string()},
      {"fast_memory",
       {{"words", limit_json(count.capacity.words)}, {"bytes", limit_json(count.capacity.bytes)}}},
      {"counted", traffic_json(count.counted)},
      {"closed_form", traffic_json(count.closed_form)},
      {"closed_form_equal", count.closed_form_equal()},
      {"blocks",
       {{"count", count.blocks.count.value()},
        {"busiest_words", count.blocks.busiest_words.value()}}},
      {"class", class_json(count.kernel)},
      {"bound_words", count.bound_words},
      {"bounds", bounds},
      {"lower", lower_json(count.lower, count.narrowest_bytes)},
      {"lower_of_every", lower_json(count.lower_of_every, count.narrowest_bytes)},
      {"ratio", ratio ? json(*ratio) : json(nullptr)}};
}

json count_json(const io::ScheduleCount& count, const std::optional<io::BestSchedule>& best,
                const std::vector<Replayed>& replays, const Problem& problem, int exit_code,
                const std::string& inputs) {
  json object = schedule_count_json(count, problem);
  object["schema"] = "attest-count-1";
  object["version"] = version();
  object["best_schedule"] = candidates_json(best);
  object["replays"] = replays_json(replays);
  object["inputs"] = inputs.empty() ? json(nullptr) : json(inputs);
  object["exit_code"] = exit_code;
  return object;
}

}  // namespace attest::certify
