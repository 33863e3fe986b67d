#include "sparse/inputs/schedules/input_schedules.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "sparse/inputs/random_inputs.hpp"

namespace attest::sparse {
namespace {

SparseOperands operands_of(const char* inputs, const char* problem) {
  return RandomInputs::parse(inputs).operands_for(Problem::parse(problem));
}

TEST_CASE("the spelling of inputs", "[sparse][schedules]") {
  const RandomInputs inputs = RandomInputs::parse("csr:density=0.25,seed=7");
  CHECK(inputs.density == 0.25);
  CHECK(inputs.seed == 7);
  CHECK(inputs.to_string() == "csr:density=0.25,seed=7");
  CHECK(RandomInputs::parse("csr:density=1").seed == 1);
  for (const char* text : {"", "csr", "dense:density=1", "csr:density=0", "csr:density=1.5",
                           "csr:density=nan", "csr:", "csr:density=x", "csr:density=0.5,seed=-1",
                           "csr:density=0.5,rows=3", "csr:seed=1", "csr:density=1,density=1"}) {
    INFO(text);
    CHECK_THROWS_AS(RandomInputs::parse(text), InvalidProblem);
    CHECK_THROWS_WITH(RandomInputs::parse(text), Catch::StartsWith("inputs: "));
  }
  for (const char* problem : {"sq=8,d=4,b=2", "sq=8,d=4,hq=2,hkv=2", "sq=8,d=4,mask=causal_br",
                              "sq=8,d=4,dtype=bf16", "sq=0,d=4", "sq=2048,d=4"}) {
    INFO(problem);
    CHECK_THROWS_AS(inputs.operands_for(Problem::parse(problem)), InvalidProblem);
  }
}

TEST_CASE("random inputs have the density asked for", "[sparse][schedules]") {
  const SparseOperands in = operands_of("csr:density=0.25,seed=7", "sq=9,sk=11,d=16,dv=3");
  in.validate();
  for (std::int64_t row = 0; row < 9; ++row) CHECK(in.Q.row_columns(row).size() == 4);
  for (std::int64_t row = 0; row < 11; ++row) CHECK(in.V.row_columns(row).size() == 1);
  CHECK(in.softmax_scale == 0.25);
  CHECK(operands_of("csr:density=0.25,seed=7", "sq=9,sk=11,d=16,dv=3").K == in.K);
  CHECK_FALSE(operands_of("csr:density=0.25,seed=8", "sq=9,sk=11,d=16,dv=3").K == in.K);
  CHECK(operands_of("csr:density=1", "sq=9,d=5").Q.nonzeros() == 45);
}

TEST_CASE("schedules of sparse inputs are counted beside bounds", "[sparse][schedules]") {
  const SparseOperands in = operands_of("csr:density=0.2,seed=3", "sq=40,sk=30,d=20,dv=10");
  for (const InputSchedule& known : input_schedules()) {
    for (const std::int64_t fast_words : {1500, 6000}) {
      INFO(known.name << " M " << fast_words);
      const InputCount found =
          count_sparse_inputs({known.name, {}}, in, io::FastMemory::of_words(fast_words));
      const io::ScheduleCount& count = found.count;
      CHECK(count.direction == known.direction);
      CHECK(count.faults().empty());
      CHECK(count.counted.peak.words <= fast_words);
      REQUIRE(count.lower);
      CHECK(count.ratio().value() >= 1);
      // The search finds these tiles again, and nothing that is given moves less.
      CHECK(found.best.candidates.size() == 2);
      CHECK(found.best.best().traffic.total_words() <= count.counted.total_words());
      const auto spec = io::ScheduleSpec::parse(count.schedule);
      CHECK(spec.parameters.size() == known.parameters.size());
      CHECK(count_sparse_inputs(spec, in, io::FastMemory::of_words(fast_words)).count.counted ==
            count.counted);
    }
  }
}

TEST_CASE("unknown schedules, tiles and too little memory are refused", "[sparse][schedules]") {
  const SparseOperands in = operands_of("csr:density=0.2", "sq=16,d=8");
  const auto count = [&](const char* spec, std::int64_t fast_words) {
    return count_sparse_inputs(io::ScheduleSpec::parse(spec), in,
                               io::FastMemory::of_words(fast_words));
  };
  CHECK_NOTHROW(count("sparse_flash:bq=3,bk=5", 1000));
  for (const char* spec :
       {"flash2", "sparse_flash:bv=4", "sparse_flash:bq=0", "sparse_flash:bq=x"}) {
    INFO(spec);
    CHECK_THROWS_AS(count(spec, 1000), InvalidProblem);
  }
  CHECK_THROWS_WITH(count("sparse_flash", 10),
                    Catch::Contains("the least of the tiles tried; give more"));
}

TEST_CASE("words against memory are those of the search", "[sparse][schedules]") {
  const SparseOperands in = operands_of("csr:density=0.3,seed=5", "sq=24,d=12");
  const InputWords words(in, Direction::forward);
  std::int64_t before = 0;
  for (const std::int64_t fast_words : {4000, 1000, 500}) {
    const auto capacity = io::FastMemory::of_words(fast_words);
    const auto* choice = words.fewest("sparse_flash", capacity);
    REQUIRE(choice != nullptr);
    CHECK(choice->traffic == count_sparse_inputs({"sparse_flash", {}}, in, capacity).count.counted);
    CHECK(choice->traffic.total_words() >= before);
    before = choice->traffic.total_words().value();
  }
  CHECK(words.fewest("sparse_flash",
                     io::FastMemory::of_words(words.least_memory("sparse_flash") - 1)) == nullptr);
  CHECK_THROWS_AS(words.fewest("sparse_flash_bwd", {}), InvalidProblem);
}

}  // namespace
}  // namespace attest::sparse
