#include "certify/count/cache_count.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "certify/campaign/host.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

// 16 vector registers of 32 bytes and 16 of 8, what a program under valgrind has.
constexpr std::int64_t kRegisterBytes = 16 * 32 + 16 * 8;

// Nothing is known of the kernel but what it writes.
io::KernelClass unknown_kernel(const attest_kernel& kernel, const Problem& problem) {
  io::KernelClass unknown = io::plain_class(problem);
  if ((kernel.description.features & ATTEST_LSE) != 0) unknown.lse = io::LseOutput::written;
  return unknown;
}

// The exact count of the schedule that the kernel names, in the fast memory it declares.
void count_itself(const io::ScheduleRegistry& schedules, const attest_kernel& kernel,
                  CacheCount& count) {
  const attest_description& description = kernel.description;
  if (description.schedule == nullptr || description.fast_memory_bytes <= 0) return;
  try {
    const auto spec = io::ScheduleSpec::parse(description.schedule);
    const io::ScheduleFamily& family = schedules.find(spec.name);
    if (family.direction() != count.call.direction) return;
    const AbiProblem form(count.problem, 1);
    const auto capacity = io::FastMemory::of_bytes(description.fast_memory_bytes);
    const auto schedule = family.make(spec, *form.get(), capacity);
    count.of_itself = io::count_schedule(family, *schedule, count.problem, capacity);
  } catch (const InvalidProblem& error) {
    count.own_refusal = error.what();
  }
}

nlohmann::json optional_words(const std::optional<io::Bound>& bound, std::int64_t word_bytes) {
  if (!bound) return nullptr;
  return {{"name", bound->name}, {"words", bound->words}, {"bytes", bound->words * word_bytes}};
}

}  // namespace

std::optional<double> CacheCount::ratio() const {
  if (!lower || lower->words == 0) return std::nullopt;
  return static_cast<double>(moved_bytes()) / static_cast<double>(lower->words * narrowest_bytes);
}

CacheCount judge_lines(const io::ScheduleRegistry& schedules, const attest_kernel& kernel,
                       const CallToSimulate& call, const CacheGeometry& cache,
                       const CacheLines& lines) {
  CacheCount count;
  count.call = call;
  count.problem = Problem::parse(call.problem);
  count.cache = cache;
  count.lines = lines;
  count.fast_bytes = cache.bytes + 2 * cache.line_bytes + kRegisterBytes;
  count.narrowest_bytes = std::min<std::int64_t>(
      static_cast<std::int64_t>(size_bytes(count.problem.dtype)), sizeof(float));
  count.kernel = unknown_kernel(kernel, count.problem);
  count.bounds = io::bounds_of(call.direction, count.problem, count.kernel,
                               count.fast_bytes / count.narrowest_bytes);
  count.lower = io::greatest(count.bounds);
  const AbiProblem form(count.problem, 1);
  count.best = io::best_schedule(schedules, call.direction, *form.get(),
                                 io::FastMemory::of_bytes(count.fast_bytes));
  count_itself(schedules, kernel, count);
  return count;
}

nlohmann::json cache_count_json(const CacheCount& count, int exit_code) {
  const CacheLines& lines = count.lines;
  const auto amount = [&](std::int64_t n) {
    return nlohmann::json{{"lines", n}, {"bytes", n * count.cache.line_bytes}};
  };
  const io::Candidate& best = count.best.best();
  const auto ratio = count.ratio();
  nlohmann::json object{
      {"schema", "attest-cache-count-1"},
      {"version", version()},
      {"kernel", count.call.kernel},
      {"direction", name(count.call.direction)},
      {"problem", count.problem.to_string()},
      {"cache",
       {{"bytes", count.cache.bytes},
        {"ways", count.cache.ways},
        {"line_bytes", count.cache.line_bytes}}},
      {"fast_bytes", count.fast_bytes},
      {"read", amount(lines.read)},
      {"allocated", amount(lines.allocated)},
      {"written_back", amount(lines.written_back)},
      {"moved_bytes", count.moved_bytes()},
      {"lower", optional_words(count.lower, count.narrowest_bytes)},
      {"ratio", ratio ? nlohmann::json(*ratio) : nlohmann::json(nullptr)},
      {"best_schedule",
       {{"schedule", best.schedule}, {"bytes", best.traffic.total_bytes().value()}}},
      {"exit_code", exit_code}};
  object["own_schedule"] = nullptr;
  if (count.of_itself) {
    object["own_schedule"] = {{"schedule", count.of_itself->schedule},
                              {"fast_bytes", count.of_itself->capacity.bytes},
                              {"bytes", count.of_itself->counted.total_bytes().value()}};
  }
  return object;
}

}  // namespace attest::certify
