#include "certify/regime/regime.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/text/suggest.hpp"
#include "io/schedule/best_schedule.hpp"
#include "io/schedule/schedule_count.hpp"

namespace attest::certify {

const std::vector<WordType>& word_types() {
  static const std::vector<WordType> all{{"f32", 4}, {"bf16", 2}, {"fp8", 1}};
  return all;
}

const WordType& find_word_type(const std::string& name) {
  std::vector<std::string> names;
  for (const WordType& word : word_types()) {
    if (word.name == name) return word;
    names.push_back(word.name);
  }
  throw InvalidProblem("dtype: '" + name + "' has no width here" + did_you_mean(name, names) +
                       " (f32 bf16 fp8)");
}

std::string name(CacheRegime regime) {
  return regime == CacheRegime::large ? "large cache" : "small cache";
}

CacheSize cache_size(std::int64_t fast_bytes, const WordType& word, std::int64_t head_dim_qk,
                     std::int64_t head_dim_v) {
  if (head_dim_qk < 1 || head_dim_v < 1) {
    throw InvalidProblem("head_dim: " + std::to_string(std::min(head_dim_qk, head_dim_v)) +
                         ", but it must be at least 1");
  }
  if (fast_bytes < word.bytes) {
    throw InvalidProblem("fast_bytes: " + std::to_string(fast_bytes) + ", but one word of " +
                         word.name + " takes " + std::to_string(word.bytes));
  }
  CacheSize size;
  size.fast_words = fast_bytes / word.bytes;
  size.ratio = static_cast<double>(size.fast_words) /
               (static_cast<double>(head_dim_qk) * static_cast<double>(head_dim_v));
  size.regime = size.ratio < 1 ? CacheRegime::small : CacheRegime::large;
  return size;
}

Problem with_groups_as_rows(const Problem& problem) {
  const std::int64_t pairs = problem.batch * problem.seqlen_q * problem.seqlen_k;
  const bool all_visible = !problem.mask.packed() && problem.visible_pairs() == pairs;
  if (!all_visible || problem.alibi != Alibi::none) return problem;
  Problem rows = problem;
  rows.mask = Pattern::parse("none", problem.seqlen_q, problem.seqlen_k);
  rows.seqlen_q = problem.group_size() * problem.seqlen_q;
  rows.num_heads_q = problem.num_heads_kv;
  return rows;
}

Prediction predict(const io::ScheduleRegistry& schedules, Direction direction,
                   const Problem& problem, std::int64_t fast_words, io::Storage storage) {
  Prediction prediction;
  prediction.direction = direction;
  const Problem rows = with_groups_as_rows(problem);
  const AbiProblem form(rows, 1);
  try {
    const io::BestSchedule found =
        io::best_schedule(schedules, direction, *form.get(), io::FastMemory::of_words(fast_words));
    prediction.schedule = found.best().schedule;
    prediction.words = found.best().traffic.total_words().value();
  } catch (const InvalidProblem& error) {
    prediction.refusal = error.what();
    return prediction;
  }
  io::KernelClass kernel = io::plain_class(problem);
  kernel.storage = storage;
  prediction.lower = io::greatest(io::bounds_of(direction, problem, kernel, fast_words));
  if (prediction.lower && prediction.lower->words > 0) {
    prediction.ratio =
        static_cast<double>(prediction.words) / static_cast<double>(prediction.lower->words);
  }
  return prediction;
}

}  // namespace attest::certify
