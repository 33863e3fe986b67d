// A law that compares several outputs must refuse a kernel that is wrong in any one of them: each
// output of a sound kernel is spoiled alone, by another amount in every call.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"
#include "proptest/laws/law.hpp"

namespace attest::proptest {
namespace {

const attest_kernel& sound() { return fixtures::defective_kernel(fixtures::Defect::none); }

struct Spoiler {
  std::string output;
  mutable std::int64_t calls = 0;

  // Squares, so that no sum of two calls' amounts is a third's.
  void spoil(const std::string& name, const attest_tensor* tensor) const {
    if (name != output || tensor == nullptr) return;
    ++calls;
    const auto amount = static_cast<double>(1024 * calls * calls);
    std::vector<std::string_view> axes{"batch", "position", "head", "column"};
    axes.resize(static_cast<std::size_t>(tensor->ndim));
    const TensorView view = view_of(*tensor, name, axes);
    const std::int64_t columns = view.rank() == 4 ? view.extent(3) : 1;
    for (std::int64_t a = 0; a < view.extent(0); ++a) {
      for (std::int64_t b = 0; b < view.extent(1); ++b) {
        for (std::int64_t c = 0; c < view.extent(2); ++c) {
          for (std::int64_t x = 0; x < columns; ++x)
            view.set(view(a, b, c, x) + amount, a, b, c, x);
        }
      }
    }
  }
};

attest_status forward(const void* self, const attest_forward_args* args) {
  const attest_status status = sound().forward(sound().self, args);
  const auto& spoiler = *static_cast<const Spoiler*>(self);
  spoiler.spoil("O", args->O);
  spoiler.spoil("LSE", args->LSE);
  return status;
}

attest_status backward(const void* self, const attest_backward_args* args) {
  const attest_status status = sound().backward(sound().self, args);
  const auto& spoiler = *static_cast<const Spoiler*>(self);
  spoiler.spoil("dQ", args->dQ);
  spoiler.spoil("dK", args->dK);
  spoiler.spoil("dV", args->dV);
  return status;
}

// Tells whether the law's own comparison of the spoiled output fails.
bool sees(const Law& law, const std::string& output, const Case& c) {
  Spoiler spoiler{output};
  attest_kernel kernel = sound();
  kernel.self = &spoiler;
  kernel.forward = forward;
  kernel.backward = backward;
  const LawResult result = law.check(kernel, c);
  const auto& found = result.comparisons;
  return std::any_of(found.begin(), found.end(), [&](const Comparison& comparison) {
    return comparison.output == output && comparison.verdict == Verdict::violated;
  });
}

TEST_CASE("a law sees every output it speaks of, spoiled alone", "[defects]") {
  using Names = std::set<std::string>;
  const Names all{"O", "LSE", "dQ", "dK", "dV"}, gradients{"dQ", "dK", "dV"};
  const std::vector<std::pair<std::string_view, Names>> speaks{
      {"reference_forward", {"O", "LSE"}},
      {"reference_backward", gradients},
      {"ones", {"O"}},
      {"score_level", all},
      {"changed_field", all},
      {"one_hot_probe", all},
      {"uniform_probe", {"O"}},
      {"repeat", all},
      {"layout_independence", all},
      {"head_independence", all},
      {"masked_key_independence", {"O", "LSE", "dQ"}},
      {"same_memory", all},
      {"key_permutation", all},
      {"query_permutation", all},
      {"linearity_in_v", {"O"}},
      {"linearity_in_do", gradients},
      {"split_merge", {"O"}},
      {"duplicate_keys", {"O"}},
      {"row_shift", {"O", "dQ"}},
      {"repeated_heads", all},
      {"mask_forms", all},
      {"sparsity_forms", all},
      {"batch_invariance", all},
      {"split_invariance", all},
      {"nan_propagation", {"O", "LSE"}},
      {"infinity_propagation", {"O", "LSE"}},
      {"hidden_nonfinite", {"O", "LSE"}},
      {"shared_kv", all},
      {"head_mask_repeated", all},
      {"head_mask_shared", all},
      {"query_lengths", all},
      {"offset_window", all}};
  Case c;
  c.problem = Problem::parse("b=2,hq=4,hkv=2,sq=17,sk=33,d=8,mask=causal_tl");
  c.seed = 1;  // it changes a field that shows
  for (const auto& [law, outputs] : speaks) {
    for (const std::string& output : all) {
      INFO(law << " " << output);
      const bool found = sees(find_law(law), output, c);
      CHECK((found || outputs.count(output) == 0));
    }
    CHECK(find_law(law).check(sound(), c).verdict == Verdict::passed);
  }
}

}  // namespace
}  // namespace attest::proptest
