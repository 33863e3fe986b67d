#include "certify/campaign/batches.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

#include "certify/campaign/campaign.hpp"
#include "certify/worker/process/isolated_kernel.hpp"

namespace attest::certify {
namespace {

bool fails(Verdict verdict) { return verdict == Verdict::violated || verdict == Verdict::crashed; }

CheckRecord record_of(const proptest::LawResult& result, std::uint64_t seed) {
  CheckRecord record{result.verdict, result.message, seed, {}};
  for (const proptest::Comparison& comparison : result.comparisons) {
    double& worst = record.outputs[comparison.output];
    worst = std::max(worst, comparison.ratio);
  }
  return record;
}

// 0 for a batch with one of the checks, 1 for another of one of their laws, else 2.
int urgency(const Batch& batch, const FailedChecks& first) {
  const std::string law(batch.law->name);
  if (std::any_of(batch.positions.begin(), batch.positions.end(), [&](std::uint64_t position) {
        return first.count({law, position}) > 0;
      })) {
    return 0;
  }
  const auto of_law = first.lower_bound({law, 0});
  return of_law != first.end() && of_law->first == law ? 1 : 2;
}

// A problem without scores counts as the largest: little happens in its calls.
std::int64_t scores_of(const Problem& p) {
  const std::int64_t scores = p.batch * p.num_heads_q * p.seqlen_q * p.seqlen_k;
  return scores > 0 ? scores : std::numeric_limits<std::int64_t>::max();
}

// The position in a batch whose case has the fewest scores.
std::uint64_t smallest_position(const std::vector<PlannedCase>& plan, const Batch& batch) {
  const auto scores = [&](std::uint64_t position) { return scores_of(plan[position].c.problem); };
  return *std::min_element(batch.positions.begin(), batch.positions.end(),
                           [&](std::uint64_t a, std::uint64_t b) { return scores(a) < scores(b); });
}

// The batch that one process soaks for long: a whole one of the first law, with the smallest case.
// None in a campaign of a few cases.
const Batch* soaked_long(const std::vector<PlannedCase>& plan, const std::vector<Batch>& batches) {
  const Batch* best = nullptr;
  std::int64_t fewest = 0;
  for (const Batch& batch : batches) {
    if (batch.law != batches.front().law || batch.positions.size() < kBatchLength) continue;
    const std::int64_t scores = scores_of(plan[smallest_position(plan, batch)].c.problem);
    if (best != nullptr && scores >= fewest) continue;
    best = &batch;
    fewest = scores;
  }
  return best;
}

// Everything the threads share.
class Batches {
 public:
  Batches(Run& run, const std::vector<PlannedCase>& plan, const Batch* soaked_long)
      : run_(run), plan_(plan), soaked_long_(soaked_long) {}

  // Tells whether an earlier run has carried the batch out to its end.
  bool known(const Batch& batch) const {
    for (const std::uint64_t position : batch.positions) {
      const auto record = run_.journal.check(name_of(batch, position));
      if (!record) return false;
      if (ends_law(run_, record->verdict, record->message)) break;
    }
    return true;
  }

  void carry_out(const Batch& batch) {
    std::size_t made = 0;
    if (batch.positions.front() < first_failure(batch) && !known(batch)) {
      worker::restart(run_.kernel);
      for (; made < batch.positions.size() && !run_.interrupted(); ++made) {
        if (!check(batch, batch.positions[made])) break;
        advance(1);
      }
      if (made == batch.positions.size()) soak(batch);
      worker::restart(run_.kernel);
      if (run_.interrupted()) return;
    }
    note_failure(batch);
    advance(batch.positions.size() - made);
  }

 private:
  CheckName name_of(const Batch& batch, std::uint64_t position) const {
    return {run_.kernel.description.name, std::string(batch.law->name), position};
  }

  // Checks a case and tells whether the law goes on.
  bool check(const Batch& batch, std::uint64_t position) {
    const CheckName name = name_of(batch, position);
    proptest::Case c = plan_[position].c;
    run_.journal.begin(name, reproduce_line(std::get<0>(name), std::get<1>(name), c, 1,
                                            worker::isolation_words(run_.kernel)));
    const proptest::LawResult result = check_repeating(*batch.law, run_.kernel, c);
    note(run_, name, record_of(result, c.seed));
    if (fails(result.verdict)) tell_failure(batch);
    return !ends_law(run_, result.verdict, result.message);
  }

  // A batch of few cases is checked again in the same process: what a kernel does wrong only after
  // its first calls must show in a small campaign too.
  void soak(const Batch& batch) {
    if (!worker::is_isolated(run_.kernel)) return;
    for (std::size_t made = batch.positions.size(); made < kBatchLength; ++made) {
      if (!goes_on_again(batch, batch.positions[made % batch.positions.size()])) return;
    }
    if (&batch != soaked_long_) return;
    const std::uint64_t smallest = smallest_position(plan_, batch);
    for (std::size_t made = kBatchLength; made < kLongSoak; ++made) {
      if (!goes_on_again(batch, smallest)) return;
    }
  }

  // Checks a case once more; false where the soak ends. The first failure of a case stays, unless
  // another one ends the law.
  bool goes_on_again(const Batch& batch, std::uint64_t position) {
    if (run_.interrupted()) return false;
    proptest::Case c = plan_[position].c;
    const proptest::LawResult result = check_repeating(*batch.law, run_.kernel, c);
    if (!fails(result.verdict)) return true;
    const CheckName name = name_of(batch, position);
    const bool ends = ends_law(run_, result.verdict, result.message);
    const auto before = run_.journal.check(name);
    if (ends || !before || !fails(before->verdict)) note(run_, name, record_of(result, c.seed));
    tell_failure(batch);
    return !ends;
  }

  void tell_failure(const Batch& batch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (run_.failed) run_.failed(std::string(batch.law->name));
  }

  std::uint64_t first_failure(const Batch& batch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = failures_.find(batch.law);
    return found == failures_.end() ? std::numeric_limits<std::uint64_t>::max() : found->second;
  }

  void note_failure(const Batch& batch) {
    for (const std::uint64_t position : batch.positions) {
      const auto record = run_.journal.check(name_of(batch, position));
      if (!record || !ends_law(run_, record->verdict, record->message)) continue;
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto [known, first] = failures_.emplace(batch.law, position);
      if (!first) known->second = std::min(known->second, position);
      return;
    }
  }

  void advance(std::size_t checks) {
    const std::lock_guard<std::mutex> lock(mutex_);
    run_.done += checks;
    run_.progress(run_.done, run_.total);
  }

  Run& run_;
  const std::vector<PlannedCase>& plan_;
  const Batch* soaked_long_;
  std::mutex mutex_;
  std::map<const proptest::Law*, std::uint64_t> failures_;
};

}  // namespace

bool ends_law(const Run& run, Verdict verdict, const std::string& message) {
  return fails(verdict) && run.expected.count(worker::kind_in(message)) == 0;
}

void note(Run& run, const CheckName& name, const CheckRecord& record) {
  worker::require_same_file(run.kernel);
  run.journal.add(name, record);
}

void note(Run& run, const CheckName& name, const ShrunkRecord& record) {
  worker::require_same_file(run.kernel);
  run.journal.add(name, record);
}

void run_parallel(unsigned jobs, std::size_t count, const std::function<void(std::size_t)>& task) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr thrown;
  const auto work = [&] {
    for (std::size_t index = next++; index < count; index = next++) {
      try {
        task(index);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!thrown) thrown = std::current_exception();
        next = count;
      }
    }
  };
  std::vector<std::thread> others;
  const std::size_t threads =
      std::min<std::size_t>(std::max(jobs, 1u), std::max<std::size_t>(count, 1));
  for (std::size_t thread = 1; thread < threads; ++thread) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  if (thrown) std::rethrow_exception(thrown);
}

void run_batches(Run& run, const std::vector<PlannedCase>& plan,
                 const std::vector<Batch>& batches) {
  std::vector<const Batch*> mine;
  for (std::size_t k = run.shard.index - 1; k < batches.size(); k += run.shard.count) {
    mine.push_back(&batches[k]);
    run.batches.push_back(batches[k]);
    run.total += batches[k].positions.size();
    for (const std::uint64_t position : batches[k].positions) {
      run.planned[position].push_back(batches[k].law);
    }
  }
  std::stable_sort(mine.begin(), mine.end(), [&run](const Batch* a, const Batch* b) {
    return urgency(*a, run.first) < urgency(*b, run.first);
  });
  Batches shared(run, plan, soaked_long(plan, batches));
  run_parallel(run.jobs, mine.size(), [&](std::size_t k) {
    if (!run.interrupted()) shared.carry_out(*mine[k]);
  });
}

}  // namespace attest::certify
