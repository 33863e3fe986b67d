#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "gpu/testing/call.hpp"
#include "gpu/testing/forward_kernels.hpp"
#include "gpu/testing/words.hpp"
#include "io/recording/word_move.hpp"
#include "schedules/register.hpp"

/// The law that ties a CUDA kernel to the schedule that it names: the words that its emulated
/// launches move are those that the schedule's dry count moves on the same problem, reads and
/// writes each, integer for integer, summed over the heads; of one head, tensor by tensor too.
///
/// Words are counted as in gpu/kernels/emulated/moved_words.hpp. Block masks:
/// gpu/kernels/block_flash2/block_flash2_test.
namespace attest::gpu {
namespace {

std::string to_string(const MovedByTensor& moved) {
  std::string text;
  for (const auto& [name, words] : moved) {
    text += " " + name + " " + std::to_string(words.reads) + "/" + std::to_string(words.writes);
  }
  return text;
}

MovedByTensor in_one(const MovedByTensor& moved) { return {{"all tensors", total(moved)}}; }

class TensorSums : public io::WordMoveSink {
 public:
  void take(const io::WordMove& move) override {
    if (move.kind == io::WordMove::Kind::load) ++sums[move.slow.matrix].reads;
    if (move.kind == io::WordMove::Kind::store) ++sums[move.slow.matrix].writes;
  }
  MovedByTensor sums;
};

MovedByTensor moved_by_schedule(const std::string& spelling, const Problem& problem) {
  if (problem.batch == 1 && problem.num_heads_q == 1) {
    const AbiProblem form(problem, 1);
    TensorSums sink;
    all_schedules().make(spelling, *form.get(), {})->record({}, sink);
    return sink.sums;
  }
  return {{"all tensors", testing::counted_words(spelling, problem)}};
}

/// "" where the law holds, else both sides: words read and written.
std::string difference(const EmulatedKernel& kernel, const std::string& spelling,
                       const std::string& text) {
  testing::Call call(text);
  EmulatedForward emulated(call.forward_arguments(kernel.abi()));
  const simt::LaunchReport report = kernel.directions().forward.run(emulated, {});
  const MovedByTensor by_launches =
      moved_by_tensor(emulated.memory, report.traffic, call.problem.dtype);
  const MovedByTensor by_schedule = moved_by_schedule(spelling, call.problem);
  if (by_launches == by_schedule || in_one(by_launches) == by_schedule) return "";
  return "launches" + to_string(by_launches) + "; schedule" + to_string(by_schedule);
}

std::vector<const char*> law_problems() {
  std::vector<const char*> all = testing::problems();
  const std::vector<const char*>& more = testing::sequence_problems();
  all.insert(all.end(), more.begin(), more.end());
  for (const char* text : {"sq=64,sk=64,d=32,dv=128", "sq=70,sk=130,d=40,dv=140,mask=causal_tl",
                           "sq=33,sk=300,d=4,mask=random_1_2", "sq=65,sk=97,d=33,mask=random_0_1",
                           "sq=40,sk=500,d=3,dv=5,mask=window_60_0"}) {
    all.push_back(text);
  }
  return all;
}

TEST_CASE("forward: words moved are those of the schedule that the kernel names",
          "[gpu][schedule_words]") {
  for (const EmulatedKernel* kernel : testing::forward_kernels()) {
    for (const std::string& text : testing::spellings_taken(*kernel, law_problems())) {
      INFO(kernel->description().name << " " << text);
      CHECK(difference(*kernel, testing::dense_schedule(*kernel), text).empty());
    }
  }
}

TEST_CASE("forward: without LSE, what leaves only for the caller is not moved",
          "[gpu][schedule_words]") {
  const std::set<std::string> no_other_use{
      "gpu/block_flash2",       "gpu/flash2",   "gpu/flash2_16bit",        "gpu/flash2_nonfinite",
      "gpu/flash2_tensor_core", "gpu/split_kv", "gpu/split_kv_tensor_core"};
  for (const EmulatedKernel* kernel : testing::forward_kernels()) {
    INFO(kernel->description().name);
    testing::Call call(testing::spelled_for(kernel->abi(), "b=2,hq=3,sq=40,sk=50,d=5"));
    attest_forward_args args = call.forward_arguments(kernel->abi());
    args.LSE = nullptr;
    EmulatedForward emulated(args);
    const simt::LaunchReport report = kernel->directions().forward.run(emulated, {});
    MovedWords expected = testing::counted_words(testing::dense_schedule(*kernel), call.problem);
    if (no_other_use.count(kernel->description().name) != 0) expected.writes -= 2 * 3 * 40;
    CHECK(total(moved_by_tensor(emulated.memory, report.traffic, call.problem.dtype)) == expected);
  }
}

// The deliberately wrong subjects.

TEST_CASE("the law refuses a schedule with other tiles", "[gpu][schedule_words]") {
  const std::map<std::string, const char*> others{
      {"gpu/block_flash2", "flash2:bq=32,bk=64"},
      {"gpu/flash2", "flash2:bq=32,bk=64"},
      {"gpu/flash2_16bit", "flash2:bq=64,bk=32"},
      {"gpu/flash2_nonfinite", "flash2:bq=64,bk=32"},
      {"gpu/flash2_tensor_core", "flash2:bq=32,bk=32"},
      {"gpu/standard", "standard:bm=32,bn=16,bl=32"},
      {"gpu/standard_tensor_core", "standard:bm=32,bn=16,bl=32"},
      {"gpu/flash1", "flash1:bq=32,bk=64"},
      {"gpu/split_kv", "split_kv:splits=2,bq=32,bk=32"},
      {"gpu/split_kv_tensor_core", "split_kv:splits=4,bq=32,bk=32"},
      {"gpu/square_tiled", "square_tiled:b=16"},
      {"gpu/square_tiled_tensor_core", "square_tiled:b=64"},
      {"gpu/hybrid", "hybrid:bq=32,oq=32,ov=64"},
      {"gpu/hybrid_tensor_core", "hybrid:bq=64,oq=32,ov=128"}};
  for (const EmulatedKernel* kernel : testing::forward_kernels()) {
    INFO(kernel->description().name);
    // A mask, so that other tiles see other pairs.
    const std::string text =
        testing::spelled_for(kernel->abi(), "hq=2,sq=70,sk=130,d=40,dv=140,mask=causal_tl");
    CHECK(!difference(*kernel, others.at(kernel->description().name), text).empty());
  }
}

void read_one_word(ForwardArguments<simt::Counted> a) {
  simt::Counted mem(a.sink);
  mem.load(a.K, 0);
}

simt::LaunchReport run_with_one_word_more(EmulatedForward& call, const simt::Emulation& emulation) {
  simt::LaunchReport report =
      testing::forward_kernels().front()->directions().forward.run(call, emulation);
  return report += simt::launch({}, emulation, call.memory, read_one_word, call.arguments);
}

TEST_CASE("the law refuses a kernel that reads one word more", "[gpu][schedule_words]") {
  const EmulatedKernel& kernel = *testing::forward_kernels().front();
  EmulatedDirections directions{.forward = kernel.directions().forward};
  directions.forward.run = run_with_one_word_more;
  const EmulatedKernel broken(kernel.description(), directions);
  for (const char* text : {"sq=33,sk=40,d=8", "b=2,hq=2,sq=33,d=8"}) {
    INFO(text);
    CHECK(difference(kernel, kernel.description().schedule, text).empty());
    CHECK(!difference(broken, kernel.description().schedule, text).empty());
  }
}

}  // namespace
}  // namespace attest::gpu
