// Kernels are never called outside their claims. A kernel of many sets of claims looks at every
// call that the generator, the pair table and the laws make of it.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#include "certify/plan/pairs/pairwise.hpp"
#include "certify/plan/plan.hpp"
#include "certify/testing/outside_claims.hpp"
#include "certify/worker/library/description.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "proptest/laws/law.hpp"
#include "proptest/values/generator.hpp"
#include "proptest/values/values.hpp"

namespace attest::certify {
namespace {

using proptest::Case;

// A kernel that writes zeros and notes the first call outside its claims.
class Watcher {
 public:
  Watcher(attest_description description, const std::optional<attest_limits>& limits)
      : limits_(limits) {
    kernel_.struct_size = sizeof kernel_;
    kernel_.abi_version = ATTEST_ABI_VERSION;
    kernel_.description = description;
    kernel_.description.struct_size = sizeof kernel_.description;
    kernel_.description.name = "test/watcher";
    kernel_.description.device = ATTEST_CPU;
    kernel_.description.numerics.struct_size = sizeof kernel_.description.numerics;
    kernel_.description.limits = limits_ ? &*limits_ : nullptr;
    kernel_.self = this;
    kernel_.forward = [](const void* self, const attest_forward_args* x) {
      return watch(self, *x, {x->O, x->LSE});
    };
    kernel_.backward = [](const void* self, const attest_backward_args* x) {
      return watch(self, *x, {x->dQ, x->dK, x->dV});
    };
    kernel_.loss_gradient = [](const void* self, const attest_loss_args* x) {
      return watch(self, *x, {x->dX, x->dY});
    };
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  const attest_kernel& kernel() const { return kernel_; }
  std::string outside() const { return outside_; }
  std::int64_t calls() const { return calls_; }

 private:
  template <class Arguments>
  static attest_status watch(const void* self, const Arguments& x,
                             const std::vector<const attest_tensor*>& outputs) {
    auto& watcher = *static_cast<Watcher*>(const_cast<void*>(self));
    ++watcher.calls_;
    if (watcher.outside_.empty()) {
      watcher.outside_ = testing::outside_claims(watcher.kernel_.description, x);
    }
    for (const attest_tensor* tensor : outputs) {
      if (tensor != nullptr) clear(*tensor, 0, 0);
    }
    return ATTEST_OK;
  }

  static void clear(const attest_tensor& t, std::int32_t axis, std::int64_t at) {
    const std::size_t width = t.dtype.bits / 8U;
    if (axis == t.ndim) {
      std::memset(static_cast<char*>(t.data) + t.byte_offset + static_cast<std::size_t>(at) * width,
                  0, width);
      return;
    }
    for (std::int64_t k = 0; k < t.shape[axis]; ++k) clear(t, axis + 1, at + k * t.strides[axis]);
  }

  std::optional<attest_limits> limits_;
  attest_kernel kernel_{};
  std::string outside_;
  std::int64_t calls_ = 0;
};

// A quarter of the sets of claims outside nightly, for time.
std::uint64_t sets(std::uint64_t all) { return attest::testing::is_nightly() ? all : all / 4; }

bool chance(Rng& rng, std::int64_t percent) { return rng.between(0, 99) < percent; }

attest_description drawn_claims(Rng& rng) {
  attest_description d{};
  const std::uint32_t all = (std::uint32_t{ATTEST_LAYOUT_BITS} << 1) - 1;
  const std::int64_t often = rng.between(1, 9) * 10;
  for (std::uint32_t bit = 1; bit <= all; bit <<= 1) d.features |= chance(rng, often) ? bit : 0;
  for (const std::uint32_t bit :
       {ATTEST_BATCH_INVARIANT, ATTEST_SPLIT_INVARIANT, ATTEST_NONFINITE}) {
    d.features |= chance(rng, often) ? bit : 0;
  }
  d.directions = ATTEST_FORWARD;
  if (chance(rng, 70)) d.directions |= ATTEST_BACKWARD;
  if (chance(rng, 15)) d.directions |= ATTEST_LOSS_GRADIENT;
  if (chance(rng, 5)) d.directions = ATTEST_LOSS_GRADIENT;
  d.dtypes = static_cast<std::uint32_t>(rng.between(1, 15));
  if (chance(rng, 30)) d.max_head_dim = rng.between(16, 64);
  if (chance(rng, 30)) d.head_dim_multiple = rng.between(1, 16);
  return d;
}

attest_extents drawn_extents(Rng& rng) {
  attest_extents extents{};
  if (chance(rng, 40)) extents.least = rng.between(0, 40);
  if (chance(rng, 40)) extents.most = extents.least + rng.between(0, 60);
  if (chance(rng, 40)) extents.multiple = rng.between(1, 64);
  if (chance(rng, 15)) extents = {1, 1, 0};
  return extents;
}

attest_limits drawn_limits(Rng& rng) {
  attest_limits limits{};
  limits.struct_size = sizeof limits;
  for (std::uint32_t bit = 1; bit <= ATTEST_ONLY_ONE_SCALE; bit <<= 1) {
    limits.only |= chance(rng, 25) ? bit : 0;
  }
  if ((limits.only & ATTEST_ONLY_ONE_SCALE) != 0 && chance(rng, 50)) limits.softmax_scale = 0.3;
  if (chance(rng, 40)) limits.seqlen_q = drawn_extents(rng);
  if (chance(rng, 40)) limits.seqlen_k = drawn_extents(rng);
  if (chance(rng, 30)) limits.head_dim = drawn_extents(rng);
  if (chance(rng, 20)) limits.head_dims[0] = rng.between(1, 64);
  if (chance(rng, 10)) limits.head_dims[1] = rng.between(1, 64);
  if (chance(rng, 30)) limits.most_heads_q = rng.between(1, 6);
  if (chance(rng, 30)) limits.most_batch = rng.between(1, 3);
  return limits;
}

// Descriptions that a library may have; half of them have limits.
std::unique_ptr<Watcher> drawn_watcher(std::uint64_t seed) {
  Rng rng(seed, 0x636c61696du);
  while (true) {
    const attest_description claims = drawn_claims(rng);
    std::optional<attest_limits> limits;
    if (chance(rng, 50)) limits = drawn_limits(rng);
    auto watcher = std::make_unique<Watcher>(claims, limits);
    if (worker::objection(watcher->kernel()).empty()) return watcher;
  }
}

void call(const attest_kernel& kernel, const Case& c) {
  const proptest::InputValues values = proptest::make_values(c.problem, c.values, c.seed);
  for (const Direction direction : claimed_directions(kernel.description, c.problem)) {
    if (direction == Direction::loss_gradient) {
      proptest::find_law("loss_layout").check(kernel, c);
    } else {
      proptest::run(kernel, c.problem, values, direction, c);
    }
  }
}

}  // namespace

TEST_CASE("nothing outside the claims is drawn", "[claims]") {
  constexpr std::uint64_t kSets = 60, kCases = 40;
  std::int64_t calls = 0;
  for (std::uint64_t set = 0; set < sets(kSets); ++set) {
    const auto watcher = drawn_watcher(set);
    const attest_kernel& kernel = watcher->kernel();
    for (std::uint64_t index = 0; index < kCases && watcher->outside().empty(); ++index) {
      const Case c = proptest::generate(kernel.description, proptest::Tier::smoke, set, index);
      CAPTURE(set, c.problem.to_string());
      REQUIRE_FALSE(claimed_directions(kernel.description, c.problem).empty());
      call(kernel, c);
      CHECK(watcher->outside().empty());
    }
    CAPTURE(set);
    CHECK(watcher->outside() == "");
    CHECK(watcher->calls() >= static_cast<std::int64_t>(kCases));
    calls += watcher->calls();
  }
  CHECK(calls > 0);
}

TEST_CASE("nothing outside the claims is in the pair table", "[claims]") {
  constexpr std::uint64_t kSets = 20;
  for (std::uint64_t set = 0; set < sets(kSets); ++set) {
    const auto watcher = drawn_watcher(1000 + set);
    const attest_kernel& kernel = watcher->kernel();
    const Pairs claimed = claimed_pairs(kernel.description);
    CAPTURE(set);
    CHECK_FALSE(claimed.empty());
    for (const Case& c : cases_meeting(kernel.description, claimed, set)) {
      CAPTURE(c.problem.to_string());
      call(kernel, c);
      REQUIRE(watcher->outside() == "");
    }
  }
}

TEST_CASE("no law asks for what is outside the claims", "[claims]") {
  constexpr std::uint64_t kSets = 100, kCases = 3;
  for (std::uint64_t set = 0; set < sets(kSets); ++set) {
    const auto watcher = drawn_watcher(2000 + set);
    const attest_kernel& kernel = watcher->kernel();
    for (const proptest::Law& law : proptest::laws()) {
      if (!proptest::concerns(law, kernel.description)) continue;
      for (std::uint64_t k = 0; k < kCases; ++k) {
        // Past the tier's own cases, where most are small.
        const Case c = proptest::generate(kernel.description, proptest::Tier::smoke, set,
                                          proptest::tier_cases(proptest::Tier::smoke) + k);
        const proptest::LawResult result = law.check(kernel, c);
        CAPTURE(set, law.name, c.problem.to_string(), result.message);
        REQUIRE(watcher->outside() == "");
      }
    }
  }
}

TEST_CASE("axes of one element get no strides that are not claimed", "[claims]") {
  attest_description plain{};
  plain.directions = ATTEST_FORWARD | ATTEST_BACKWARD;
  plain.dtypes = 1U << ATTEST_F32;
  plain.features = ATTEST_LSE | ATTEST_HEAD_DIM_V;
  for (const char* strides : {"packed", "padded", "huge", "mixed"}) {
    for (const char* sizes : {"sq=1,d=2,dv=1", "sq=1,d=1", "sq=3,d=1,dv=2", "b=2,sq=1,d=2"}) {
      Watcher watcher(plain, std::nullopt);
      const Case c{Problem::parse(std::string(sizes) + ",strides=" + strides),
                   proptest::Values::normal, 1, 1};
      CAPTURE(c.problem.to_string());
      call(watcher.kernel(), c);
      CHECK(watcher.outside() == "");
      CHECK(watcher.calls() == 3);
    }
  }
}

TEST_CASE("a call outside the claims is seen", "[claims]") {
  attest_description plain{};
  plain.directions = ATTEST_FORWARD;
  plain.dtypes = 1U << ATTEST_F32;
  attest_limits limits{};
  limits.struct_size = sizeof limits;
  limits.only = ATTEST_ONLY_ONE_SCALE;
  limits.seqlen_q.multiple = 2;
  const auto seen = [&](const char* problem) {
    Watcher watcher(plain, limits);
    const Case c{Problem::parse(problem), proptest::Values::normal, 1, 1};
    proptest::run(watcher.kernel(), c.problem, proptest::make_values(c.problem, c.values, c.seed),
                  Direction::forward, c);
    return watcher.outside();
  };
  CHECK(seen("sq=4,d=2") == "");
  CHECK(seen("sq=4,sk=5,d=2") == "other lengths");
  CHECK(seen("sq=3,d=2") == "seqlen_q of 3");
  CHECK(seen("sq=4,d=2,scale=0.3") == "another scale");
  CHECK(seen("sq=4,d=2,mask=causal_br") == "causal, bottom right");
  CHECK(seen("sq=4,d=2,mask=random_50_1") == "a boolean mask");
  CHECK(seen("sq=4,d=2,strides=interleaved") == "an innermost stride of 2 of Q");
  CHECK(seen("sq=4,d=2,strides=broadcast,hq=2") == "elements in one place of K");
  CHECK(seen("sq=4,d=2,dtype=bf16") == "a dtype");
  CHECK(seen("sq=4,d=2,splits=2") == "a number of splits");
}

}  // namespace attest::certify
