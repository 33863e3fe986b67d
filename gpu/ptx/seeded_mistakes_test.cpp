#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/attention.hpp"
#include "gpu/ptx/testing/pipeline.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// Each barrier, wait, wait count, group and fence of three compiled kernels is taken away or made
/// weaker in turn: the table of what is found, docs/reference/ptx-seeded-mistakes.md.
namespace attest::ptx {
namespace {

using testing::Attention;
using testing::Pipeline;

// The first finding of a launch, or a wrong result.
std::optional<std::string> first_of(const simt::LaunchReport& report, bool is_right) {
  if (!report.diagnoses.empty()) return simt::name(report.diagnoses.front().fault);
  return is_right ? std::nullopt : std::optional<std::string>("wrong result");
}

struct Subject {
  const char *text, *title;
  std::optional<std::string> (*found)(const std::string& text, simt::Order order);
};

template <const testing::Compiled& kCompiled>
std::optional<std::string> found_in_attention(const std::string& text, simt::Order order) {
  Attention attention{70, 45};
  const auto report = attention.run(kCompiled, text, order);
  return first_of(report, attention.worst_error() <= 1.0);
}

std::optional<std::string> found_in_pipeline(const std::string& text, simt::Order order) {
  Pipeline pipeline;
  const auto report = pipeline(text, order);
  return first_of(report, pipeline.is_right());
}

constexpr Subject kSubjects[] = {
    {"attention_triton", "Flash attention by Triton for sm_80", found_in_attention<testing::kSm80>},
    {"attention_triton_sm90", "Flash attention by Triton for sm_90",
     found_in_attention<testing::kSm90>},
    {"pipelined_nvcc", "A pipeline of tensor copies and wgmma by nvcc for sm_90a",
     found_in_pipeline}};

// Instructions that order, and another that stands in their place: nothing, or one that waits less.
struct Mistake {
  const char *instruction, *other, *kind;
};
constexpr Mistake kMistakes[] = {
    {"bar.sync \t0;", "", "barrier removed"},
    {"bar.warp.sync \t-1;", "", "barrier removed"},
    {"cp.async.wait_group \t0;", "", "wait removed"},
    {"cp.async.wait_group \t0;", "cp.async.wait_group 1;", "wait count raised"},
    {"cp.async.commit_group;", "", "commit removed"},
    {"wgmma.wait_group.sync.aligned 0;", "", "wait removed"},
    {"wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;", "wait count raised"},
    {"wgmma.commit_group.sync.aligned;", "", "commit removed"},
    {"wgmma.fence.sync.aligned;", "", "fence removed"},
    {"fence.proxy.async.shared::cta;", "", "fence removed"},
    {"fence.mbarrier_init.release.cluster;", "", "fence removed"},
    {"mbarrier.try_wait.parity.shared::cta.b64 p, [%r7], %r6;", "setp.eq.u32 p, 0, 0;",
     "wait removed"},
    {"mbarrier.try_wait.parity.shared::cta.b64 p, [%r49], %r50;", "setp.eq.u32 p, 0, 0;",
     "wait removed"},
    {"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r40], %r32;",
     "mbarrier.arrive.shared::cta.b64 _, [%r40];", "expected bytes removed"},
    {"mbarrier.arrive.shared::cta.b64 _, [%r58];", "", "arrival removed"},
    {"cp.async.bulk.commit_group;", "", "commit removed"},
    {"cp.async.bulk.wait_group.read 0;", "", "wait removed"},
    {"cp.async.bulk.wait_group.read 0;", "cp.async.bulk.wait_group.read 1;", "wait count raised"},
};

// Why a mistake that is not found changes nothing, by text, line and kind.
using Place = std::tuple<std::string, std::size_t, std::string>;
constexpr const char* kJoins = "the copies join the next group, which the same wait waits for";
constexpr const char* kZeros =
    "after the last tile copies of zeros are under way to places that nothing uses any more";
constexpr const char* kBarrierFollows =
    "another barrier comes before the next access to shared memory";
constexpr const char* kTakenForEnough =
    "the barrier of the block behind it is taken for enough, as compilers leave this fence out";
const std::map<Place, const char*> kReasons{
    {{"attention_triton", 125, "commit removed"}, kJoins},
    {{"attention_triton", 380, "commit removed"}, kJoins},
    {{"attention_triton", 397, "wait removed"}, kZeros},
    {{"attention_triton", 397, "wait count raised"}, kZeros},
    {{"attention_triton", 398, "barrier removed"}, kBarrierFollows},
    {{"attention_triton_sm90", 115, "commit removed"}, kJoins},
    {{"attention_triton_sm90", 355, "commit removed"}, kJoins},
    {{"attention_triton_sm90", 372, "wait removed"}, kZeros},
    {{"attention_triton_sm90", 372, "wait count raised"}, kZeros},
    {{"attention_triton_sm90", 373, "barrier removed"}, kBarrierFollows},
    {{"pipelined_nvcc", 36, "fence removed"}, kTakenForEnough},
};

struct Outcome {
  Place place;
  std::string instruction;
  std::optional<std::string> found;
};

std::vector<Outcome> outcomes_of(const Subject& subject) {
  const std::string text = testing::text(subject.text);
  std::vector<Outcome> all;
  for (const Mistake& mistake : kMistakes) {
    const std::string instruction = mistake.instruction;
    for (std::size_t at = 0; (at = text.find(instruction, at)) != std::string::npos; ++at) {
      std::string broken = text;
      broken.replace(at, instruction.size(), mistake.other);
      Outcome outcome;
      const auto line = static_cast<std::size_t>(
          std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
      outcome.place = {subject.text, line + 1, mistake.kind};
      outcome.instruction = instruction.substr(0, instruction.find_first_of(" ;"));
      for (const simt::Order order : testing::kOrders) {
        if (!outcome.found) outcome.found = subject.found(broken, order);
      }
      all.push_back(outcome);
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Outcome& a, const Outcome& b) { return a.place < b.place; });
  return all;
}

std::string reason_of(const Outcome& outcome) {
  const auto known = kReasons.find(outcome.place);
  return known == kReasons.end() ? "" : known->second;
}

std::string page_of(const std::vector<std::vector<Outcome>>& outcomes) {
  std::string page =
      "# Mistakes that are seeded in PTX\n\n"
      "Written by `ptx_test`: of three compiled kernels each instruction that orders others is "
      "taken away\nor made weaker in turn, and the kernel is carried out in three orders of warps "
      "and blocks. Where nothing is\nfound, the reason was read in the PTX.\n";
  for (std::size_t k = 0; k < outcomes.size(); ++k) {
    const auto found = std::count_if(outcomes[k].begin(), outcomes[k].end(),
                                     [](const Outcome& each) { return each.found.has_value(); });
    page += "\n## " + std::string(kSubjects[k].title) + "\n\nFound: " + std::to_string(found) +
            " of " + std::to_string(outcomes[k].size()) + " (gpu/ptx/testing/" + kSubjects[k].text +
            ".ptx).\n\n| line | instruction | mistake | found as |\n" + "|---:|---|---|---|\n";
    for (const Outcome& each : outcomes[k]) {
      page += "| " + std::to_string(std::get<1>(each.place)) + " | `" + each.instruction + "` | " +
              std::get<2>(each.place) + " | " +
              (each.found ? *each.found : "not found: " + reason_of(each)) + " |\n";
    }
  }
  return page;
}

TEST_CASE("the table of seeded mistakes is what is found", "[ptx]") {
  std::vector<std::vector<Outcome>> all;
  std::size_t unfound = 0;
  for (const Subject& subject : kSubjects) {
    for (const simt::Order order : testing::kOrders) {
      CHECK_FALSE(subject.found(testing::text(subject.text), order).has_value());
    }
    all.push_back(outcomes_of(subject));
    for (const Outcome& each : all.back()) {
      INFO(subject.text << ", line " << std::get<1>(each.place) << ": " << each.instruction << ", "
                        << std::get<2>(each.place));
      CHECK(each.found.has_value() == reason_of(each).empty());
      unfound += each.found ? 0 : 1;
    }
  }
  CHECK(unfound == kReasons.size());
  const std::string page = page_of(all);
  if (std::getenv("ATTEST_APPROVE") != nullptr) std::ofstream(ATTEST_PTX_MISTAKES) << page;
  std::ifstream file(ATTEST_PTX_MISTAKES);
  std::ostringstream known;
  known << file.rdbuf();
  INFO("ATTEST_APPROVE=1 ptx_test writes " << ATTEST_PTX_MISTAKES);
  CHECK(known.str() == page);
}

}  // namespace
}  // namespace attest::ptx
