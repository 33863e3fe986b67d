#include "proptest/laws/trials/neighbours.hpp"

#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"
#include "proptest/judge/compare.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

const attest_kernel& sound() { return fixtures::defective_kernel(fixtures::Defect::none); }

std::vector<std::string> problems_beside(const char* text, std::size_t entry) {
  std::vector<std::string> problems;
  for (const Neighbours& batch : neighbours_of(sound().description, Problem::parse(text), entry)) {
    problems.push_back(batch.problem.mask.to_string() + " of " +
                       std::to_string(batch.problem.batch) + " at " + std::to_string(batch.place));
  }
  return problems;
}

TEST_CASE("an entry lies alone, at other places and beside other lengths", "[neighbours]") {
  using Words = std::vector<std::string>;
  CHECK(problems_beside("b=3,sq=4,sk=9,d=2,mask=causal_br", 1) ==
        Words{"causal_br of 1 at 0", "causal_br of 3 at 2", "causal_br of 2 at 1"});
  CHECK(problems_beside("d=2,mask=cu_3x5_4x9", 1) ==
        Words{"cu_4x9 of 1 at 0", "cu_6x138_1x1_4x9 of 3 at 2", "cu_1x1_4x9 of 2 at 1"});
  CHECK(problems_beside("b=2,sq=4,sk=9,d=2,mask=lengths_9_5", 1) ==
        Words{"lengths_5 of 1 at 0", "lengths_134_1_5 of 3 at 2", "lengths_1_5 of 2 at 1",
              "lengths_5_9 of 2 at 0"});
}

TEST_CASE("an entry keeps its query length", "[neighbours]") {
  const auto lengths = [](const char* text, std::size_t entry) {
    std::vector<std::string> found;
    for (const Neighbours& batch :
         neighbours_of(sound().description, Problem::parse(text), entry)) {
      found.push_back(batch.problem.query_lengths.to_string());
    }
    return found;
  };
  using Words = std::vector<std::string>;
  CHECK(lengths("b=2,sq=4,sk=9,d=2,query_lengths=3_2", 0) == Words{"3", "4_1_3", "1_3"});
  CHECK(lengths("d=2,mask=cu_3x5_4x9,query_lengths=1_2", 1) == Words{"2", "6_1_2", "1_2"});
}

// Bits that depend on the batch where there is a bias, or a query length, alone.
attest_status one_entry_differs(const void*, const attest_forward_args* args) {
  const attest_status status = sound().forward(sound().self, args);
  const bool has_bias = args->bias != nullptr && args->bias->data != nullptr;
  if (args->problem->batch == 1 && (has_bias || args->problem->mask.query_lengths != nullptr)) {
    auto* const first =
        reinterpret_cast<float*>(static_cast<char*>(args->O->data) + args->O->byte_offset);
    *first += 1;
  }
  return status;
}

TEST_CASE("batches are compared with biases, masks of heads and query lengths", "[neighbours]") {
  attest_kernel kernel = sound();
  kernel.forward = one_entry_differs;
  kernel.description.directions = ATTEST_FORWARD;
  const Law& law = find_law("batch_invariance");
  for (const char* text :
       {"b=2,sq=4,sk=9,d=2,bias=bhqk_drawn_7", "b=2,sq=4,sk=9,d=2,query_lengths=3_2"}) {
    INFO(text);
    const Case c{Problem::parse(text), Values::normal, 3, 1};
    CHECK(law.check(sound(), c).verdict == Verdict::passed);
    CHECK(law.check(kernel, c).verdict == Verdict::violated);
  }
  const Case c{Problem::parse("b=2,sq=4,sk=9,d=2"), Values::normal, 3, 1};
  CHECK(law.check(kernel, c).verdict == Verdict::passed);
}

TEST_CASE("an entry keeps its values and its results find back", "[neighbours]") {
  const Case c{Problem::parse("b=2,hq=2,sq=4,sk=9,d=3,mask=lengths_9_5"), Values::normal, 3, 1};
  const InputValues in = make_values(c.problem, c.values, c.seed);
  const KernelRun run = complete(sound(), c.problem, in, Direction::backward, c);
  for (const Neighbours& batch : neighbours_of(sound().description, c.problem, 1)) {
    INFO(batch.words);
    const InputValues beside = values_beside(c.problem, in, 1, batch, 7);
    const auto place = static_cast<std::int64_t>(batch.place);
    CHECK(beside.Q(place, 3, 1, 2) == in.Q(1, 3, 1, 2));
    CHECK(beside.V(place, 4, 1, 2) == in.V(1, 4, 1, 2));
    CHECK(beside.dLSE(place, 1, 3) == in.dLSE(1, 1, 3));
    KernelRun other = complete(sound(), batch.problem, beside, Direction::backward, c);
    CHECK(same_bits(run, with_entry_of(run, c.problem, 1, other, batch), Direction::backward, "")
              .verdict == Verdict::passed);
    other.dK.set(other.dK(place, 4, 1, 2) + 1, place, 4, 1, 2);
    CHECK_THAT(
        same_bits(run, with_entry_of(run, c.problem, 1, other, batch), Direction::backward, "")
            .message,
        Catch::Contains("dK[batch=1, seqlen_k=4, num_heads_kv=1, head_dim_qk=2]"));
  }
}

}  // namespace
}  // namespace attest::proptest
