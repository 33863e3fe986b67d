#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "proptest/generator.hpp"

namespace attest::proptest {
namespace {

class Steps {
 public:
  explicit Steps(const Case& from) : from_(from) {}

  // Adds the case changed by `change`, when it is valid and simpler.
  template <typename Change>
  void add(const Change& change) {
    Case next = from_;
    change(next);
    if (next.problem.to_string() == from_.problem.to_string() && next.values == from_.values &&
        next.threads == from_.threads) {
      return;
    }
    try {
      // The boolean mask and the packed lists depend on the sizes: parse everything again.
      next.problem = Problem::parse(next.problem.to_string());
    } catch (const InvalidProblem&) {
      return;
    }
    steps_.push_back(next);
  }

  // Smaller values of one size: the least, half, one less.
  void shrink_size(std::int64_t Problem::*size, std::int64_t least) {
    const std::int64_t now = from_.problem.*size;
    for (const std::int64_t smaller : {least, now / 2, now - 1}) {
      if (smaller < least || smaller >= now) continue;
      add([&](Case& c) { c.problem.*size = smaller; });
    }
  }

  std::vector<Case> take() { return std::move(steps_); }

 private:
  const Case& from_;
  std::vector<Case> steps_;
};

void fewer_heads(const Case& failing, Steps& steps) {
  const std::int64_t group = failing.problem.group_size();
  steps.add([](Case& c) { c.problem.num_heads_q = c.problem.num_heads_kv = 1; });
  steps.add([&](Case& c) {
    c.problem.num_heads_kv = 1;
    c.problem.num_heads_q = group;
  });
  steps.add([](Case& c) { c.problem.num_heads_q = c.problem.num_heads_kv; });
}

void plainer_mask(const Case& failing, Steps& steps) {
  const Pattern& mask = failing.problem.mask;
  steps.add([](Case& c) { c.problem.mask.boolean = nullptr; });
  steps.add([](Case& c) { c.problem.mask.key_lengths.clear(); });
  steps.add([](Case& c) { c.problem.mask.window_left = c.problem.mask.window_right = -1; });
  if (mask.packed()) {
    steps.add([](Case& c) {
      c.problem.mask.cu_seqlens_q.clear();
      c.problem.mask.cu_seqlens_k.clear();
      c.problem.layout = Layout::bshd;
    });
  } else if (failing.problem.batch > 1) {
    steps.add([](Case& c) {
      c.problem.batch = 1;
      auto& lengths = c.problem.mask.key_lengths;
      lengths.resize(std::min<std::size_t>(lengths.size(), 1));
    });
  }
}

// A plain boolean mask, then the plainest pattern of the same form: what fails may need the form.
void plainer_pattern(const Case& failing, Steps& steps) {
  const SparsityPattern* const pattern = failing.problem.mask.sparsity();
  if (pattern == nullptr) return;
  const auto replace_by = [&](const std::string& spelling) {
    const Problem& p = failing.problem;
    const auto mask = Pattern::parse(spelling, p.seqlen_q, p.seqlen_k).boolean;
    steps.add([&](Case& c) { c.problem.mask.boolean = mask; });
  };
  replace_by("random_50_0");
  if (const auto* blocks = std::get_if<BlockForm>(&pattern->form())) {
    const auto diagonal = [](std::int64_t q, std::int64_t k) {
      return "blockband_" + std::to_string(q) + "x" + std::to_string(k) + "_0";
    };
    replace_by(diagonal(blocks->block_q, blocks->block_k));
    replace_by(diagonal((blocks->block_q + 1) / 2, (blocks->block_k + 1) / 2));
  } else {
    replace_by(std::holds_alternative<NmForm>(pattern->form()) ? "nm_1_2_0" : "pairs_50_0");
  }
}

}  // namespace

std::vector<Case> shrink_candidates(const Case& failing) {
  Steps steps(failing);
  plainer_mask(failing, steps);
  plainer_pattern(failing, steps);
  fewer_heads(failing, steps);
  steps.shrink_size(&Problem::seqlen_q, 1);
  steps.shrink_size(&Problem::seqlen_k, 1);
  if (failing.problem.seqlen_q == failing.problem.seqlen_k) {
    for (const std::int64_t n :
         {std::int64_t{1}, failing.problem.seqlen_q / 2, failing.problem.seqlen_q - 1}) {
      if (n < 1 || n >= failing.problem.seqlen_q) continue;
      steps.add([&](Case& c) { c.problem.seqlen_q = c.problem.seqlen_k = n; });
    }
  }
  steps.shrink_size(&Problem::head_dim_v, 1);
  steps.shrink_size(&Problem::head_dim_qk, 1);
  steps.add([](Case& c) { c.problem.head_dim_qk = c.problem.head_dim_v = 1; });
  if (failing.problem.head_dim_qk == failing.problem.head_dim_v) {
    const std::int64_t d = failing.problem.head_dim_qk;
    for (const std::int64_t smaller : {d / 2, d - 1}) {
      if (smaller < 1 || smaller >= d) continue;
      steps.add([&](Case& c) { c.problem.head_dim_qk = c.problem.head_dim_v = smaller; });
    }
  }
  steps.add([](Case& c) { c.problem.strides = Strides::packed; });
  steps.add([](Case& c) {
    if (!c.problem.mask.packed()) c.problem.layout = Layout::bshd;
  });
  steps.add([](Case& c) { c.problem.softmax_scale.reset(); });
  steps.add([](Case& c) { c.problem.softcap = 0; });
  steps.add([](Case& c) { c.problem.alibi = Alibi::none; });
  steps.add([](Case& c) { c.problem.dtype = DType::f32; });
  steps.add([](Case& c) { c.threads = 1; });
  steps.add([](Case& c) { c.values = Values::integers; });
  return steps.take();
}

Case shrink(const Case& failing, const std::function<bool(const Case&)>& still_fails, int budget) {
  // The values of a smaller problem are drawn anew, and the failure may need luck: where no
  // candidate fails, each is tried with these seeds too.
  constexpr std::array<std::uint64_t, 3> kSeeds{1, 2, 3};
  Case smallest = failing;
  const auto tries = [&](const Case& candidate) {
    if (budget-- <= 0 || !still_fails(candidate)) return false;
    smallest = candidate;
    return true;
  };
  const auto step = [&] {
    const std::vector<Case> candidates = shrink_candidates(smallest);
    if (std::any_of(candidates.begin(), candidates.end(), tries)) return true;
    for (const std::uint64_t seed : kSeeds) {
      for (Case candidate : candidates) {
        candidate.seed = seed;
        if (tries(candidate)) return true;
      }
    }
    return false;
  };
  while (budget > 0) {
    if (!step()) break;
  }
  return smallest;
}

}  // namespace attest::proptest
