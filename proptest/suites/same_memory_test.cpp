#include <map>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"
#include "proptest/judge/buffer.hpp"
#include "proptest/judge/run.hpp"
#include "proptest/laws/memory_laws.hpp"

namespace attest::proptest {
namespace {

struct Seen {
  std::vector<const void*> addresses;
  bool poisoned = true;
};

// Notes where its tensors lie.
attest_status forward(const void* self, const attest_forward_args* args) {
  auto& seen = *static_cast<std::vector<Seen>*>(const_cast<void*>(self));
  Seen now;
  for (const attest_tensor* tensor : {args->Q, args->K, args->V, args->O, args->LSE}) {
    now.addresses.push_back(static_cast<const char*>(tensor->data) + tensor->byte_offset);
  }
  float& first = *static_cast<float*>(args->O->data);
  now.poisoned = first != first;
  first = 1;
  seen.push_back(now);
  return ATTEST_OK;
}

TEST_CASE("tensors of several runs lie in the same memory", "[same_memory]") {
  std::vector<Seen> seen;
  attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::none);
  kernel.self = &seen;
  kernel.forward = forward;
  const Case c{Problem::parse("hq=2,sq=5,sk=7,d=4"), Values::normal, 3, 1};
  const auto runs = [&] {
    for (const std::uint64_t seed : {1u, 2u}) {
      const InputValues values = make_values(c.problem, c.values, seed);
      run(kernel, c.problem, values, Direction::forward, c);
    }
  };
  {
    const SameMemory kept;
    CHECK(SameMemory::current().scope != 0);
    runs();
    CHECK(SameMemory::current().run == 2);
    const Buffer between("X", DType::f32, c.problem.q_axes());  // takes no place of the run's
    runs();
  }
  CHECK(SameMemory::current().scope == 0);
  REQUIRE(seen.size() == 4);
  for (const Seen& one : seen) {
    CHECK(one.addresses == seen.front().addresses);
    CHECK(one.poisoned);  // the output of the call before is gone
  }
}

TEST_CASE("one element of each input is another", "[same_memory]") {
  const Problem problem = Problem::parse("hq=2,sq=5,sk=7,d=4,dtype=f16");
  const InputValues values = make_values(problem, Values::normal, 1);
  const InputValues changed = with_one_changed(problem, values, 5);
  const auto differing = [](const Tensor& a, const Tensor& b) {
    int count = 0;
    for (std::int64_t e = 0; e < a.view().size(); ++e) {
      count += a.doubles()[e] != b.doubles()[e] ? 1 : 0;
      CHECK(b.doubles()[e] == round_to(DType::f16, b.doubles()[e]));
    }
    return count;
  };
  CHECK(differing(values.Q, changed.Q) == 1);
  CHECK(differing(values.K, changed.K) == 1);
  CHECK(differing(values.V, changed.V) == 1);
  CHECK(differing(values.dO, changed.dO) == 1);
}

}  // namespace
}  // namespace attest::proptest
