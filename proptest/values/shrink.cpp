#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/features/pages.hpp"
#include "core/features/score_features.hpp"
#include "proptest/values/generator.hpp"
#include "proptest/values/score_draws.hpp"

namespace attest::proptest {
namespace {

// Smaller values of a size, the smallest first: the least, half, one less; of a large size also
// those a smaller and smaller part less, or its smallest failing value would be a thousand steps
// away.
std::vector<std::int64_t> smaller_sizes(std::int64_t now, std::int64_t least) {
  constexpr std::int64_t kLarge = 64;
  std::vector<std::int64_t> sizes{least, now / 2};
  for (std::int64_t part = now / 4; now > kLarge && part > 1; part /= 4) {
    sizes.push_back(now - part);
  }
  sizes.push_back(now - 1);
  std::erase_if(sizes, [&](std::int64_t size) { return size < least || size >= now; });
  return sizes;
}

class Steps {
 public:
  explicit Steps(const Case& from) : from_(from) {}

  // Adds the case changed by `change`, when it is valid and simpler.
  template <typename Change>
  void add(const Change& change) {
    Case next = from_;
    try {
      change(next);
    } catch (const InvalidProblem&) {  // a pattern that is none
      return;
    }
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
    const auto same = [&](const Case& step) {
      return step.problem.to_string() == next.problem.to_string() && step.values == next.values &&
             step.threads == next.threads;
    };
    if (std::none_of(steps_.begin(), steps_.end(), same)) steps_.push_back(next);
  }

  // A number of the case in less, the smallest first. `set` puts it into a case.
  template <typename Number, typename Set>
  void shrink_number(Number now, Number least, const Set& set) {
    for (const std::int64_t smaller : smaller_sizes(now, least)) {
      add([&](Case& c) { set(c, static_cast<Number>(smaller)); });
    }
  }

  // Fewer keys and queries have shorter lengths.
  void shrink_size(std::int64_t Problem::*size, std::int64_t least) {
    shrink_number(from_.problem.*size, least, [size](Case& c, std::int64_t smaller) {
      c.problem.*size = smaller;
      for (std::int32_t& length : c.problem.mask.key_lengths) {
        length = static_cast<std::int32_t>(std::min<std::int64_t>(length, c.problem.seqlen_k));
      }
      for (std::int32_t& length : c.problem.query_lengths.given) {
        length = static_cast<std::int32_t>(std::min<std::int64_t>(length, c.problem.seqlen_q));
      }
    });
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

using Size = std::int64_t Problem::*;

// Sets a size and what follows from it.
void set_size(Problem& problem, Size size, std::int64_t value) {
  const std::int64_t group = problem.group_size();
  problem.*size = value;
  problem.num_heads_q = problem.num_heads_kv * group;
  for (auto* const lengths : {&problem.mask.key_lengths, &problem.query_lengths.given}) {
    lengths->resize(std::min(lengths->size(), static_cast<std::size_t>(problem.batch)));
  }
}

// Where two extents are equal, what fails may need that.
void smaller_alike(const Case& failing, Steps& steps) {
  constexpr std::array<std::pair<Size, Size>, 6> kPairs{
      {{&Problem::batch, &Problem::num_heads_kv},
       {&Problem::num_heads_kv, &Problem::seqlen_q},
       {&Problem::num_heads_kv, &Problem::seqlen_k},
       {&Problem::seqlen_q, &Problem::head_dim_qk},
       {&Problem::seqlen_k, &Problem::head_dim_qk},
       {&Problem::seqlen_k, &Problem::head_dim_v}}};
  for (const auto& [first, second] : kPairs) {
    const std::int64_t now = failing.problem.*first;
    if (now != failing.problem.*second) continue;
    for (const std::int64_t smaller : {std::int64_t{2}, now / 2, now - 1}) {
      if (smaller < 2 || smaller >= now) continue;
      steps.add([&, one = first, other = second](Case& c) {
        set_size(c.problem, one, smaller);
        set_size(c.problem, other, smaller);
      });
    }
  }
}

void plainer_mask(const Case& failing, Steps& steps) {
  const Pattern& mask = failing.problem.mask;
  steps.add([](Case& c) { c.problem.mask.boolean = nullptr; });
  steps.add([](Case& c) { c.problem.mask.key_lengths.clear(); });
  steps.add([](Case& c) { c.problem.mask.remove_window(); });
  if (mask.packed()) {
    steps.add([](Case& c) {
      c.problem.mask.cu_seqlens_q.clear();
      c.problem.mask.cu_seqlens_k.clear();
      c.problem.layout = Layout::bshd;
    });
  } else if (failing.problem.batch > 1) {
    steps.add([](Case& c) { set_size(c.problem, &Problem::batch, 1); });
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

// Each width of a window with both ends anywhere alone: nearer to 0, or without an end.
void nearer_ends(const Case& failing, Steps& steps) {
  const Pattern& mask = failing.problem.mask;
  const std::int64_t left = mask.window_left, right = mask.window_right;
  const auto nearer = [&](std::int64_t width, const auto& set) {
    if (width == Pattern::kUnbounded) return;
    for (const std::int64_t other : {Pattern::kUnbounded, std::int64_t{0}, width < 0 ? -1L : 1L,
                                     width / 2, width - (width < 0 ? -1 : 1)}) {
      if (other == Pattern::kUnbounded || std::abs(other) < std::abs(width)) set(other);
    }
  };
  nearer(left, [&](std::int64_t other) {
    steps.add([=](Case& c) { c.problem.mask.set_window(other, right); });
  });
  nearer(right, [&](std::int64_t other) {
    steps.add([=](Case& c) { c.problem.mask.set_window(left, other); });
  });
}

// Each width of a window alone: smaller, or without an end.
void narrower_window(const Case& failing, Steps& steps) {
  if (failing.problem.mask.offset) return nearer_ends(failing, steps);
  for (const auto side : {&Pattern::window_left, &Pattern::window_right}) {
    const std::int64_t width = failing.problem.mask.*side;
    if (width < 0) continue;
    steps.add([&](Case& c) { c.problem.mask.*side = -1; });
    steps.shrink_number(width, std::int64_t{0},
                        [&](Case& c, std::int64_t smaller) { c.problem.mask.*side = smaller; });
  }
}

template <typename List>
void erase_at(List& list, std::size_t which) {
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(which));
}

// Smaller pages, in an order of a smaller seed, and fewer of them.
void smaller_pages(const Case& failing, Steps& steps) {
  const PagedKv& paged = failing.problem.paged_kv;
  if (!is_paged(failing.problem)) return;
  steps.shrink_number(paged.pages, std::int64_t{0},
                      [](Case& c, std::int64_t smaller) { c.problem.paged_kv.pages = smaller; });
  steps.shrink_number(paged.page_size, std::int64_t{1}, [](Case& c, std::int64_t smaller) {
    c.problem.paged_kv.page_size = smaller;
  });
  for (const std::uint64_t order : {0ull, 1ull, 2ull}) {
    steps.add([&](Case& c) {
      if (order < c.problem.paged_kv.order) c.problem.paged_kv.order = order;
    });
  }
}

// One batch entry less, or fewer keys or queries of one.
void shorter_lengths(const Case& failing, Steps& steps) {
  using Lengths = std::vector<std::int32_t>;
  const auto shorten = [&](const Lengths& lengths, Lengths& (*of)(Problem&)) {
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      if (lengths.size() > 1 && !failing.problem.mask.packed()) {
        steps.add([&](Case& c) {
          --c.problem.batch;
          for (Lengths* const one : {&c.problem.mask.key_lengths, &c.problem.query_lengths.given}) {
            if (!one->empty()) erase_at(*one, b);
          }
        });
      }
      steps.shrink_number(lengths[b], 0,
                          [&](Case& c, std::int32_t smaller) { of(c.problem)[b] = smaller; });
    }
  };
  shorten(failing.problem.mask.key_lengths,
          [](Problem& p) -> Lengths& { return p.mask.key_lengths; });
  shorten(failing.problem.query_lengths.given,
          [](Problem& p) -> Lengths& { return p.query_lengths.given; });
}

// Packed sequences as lengths, which sizes and lists follow from.
struct Packed {
  std::vector<std::int32_t> queries, keys;

  explicit Packed(const Pattern& mask) {
    for (std::size_t b = 0; b + 1 < mask.cu_seqlens_q.size(); ++b) {
      queries.push_back(mask.cu_seqlens_q[b + 1] - mask.cu_seqlens_q[b]);
      keys.push_back(mask.cu_seqlens_k[b + 1] - mask.cu_seqlens_k[b]);
    }
  }

  void put(Problem& problem) const {
    const auto sums = [](const std::vector<std::int32_t>& lengths) {
      std::vector<std::int32_t> list{0};
      for (const std::int32_t length : lengths) list.push_back(list.back() + length);
      return list;
    };
    problem.batch = static_cast<std::int64_t>(queries.size());
    problem.seqlen_q = *std::max_element(queries.begin(), queries.end());
    problem.seqlen_k = *std::max_element(keys.begin(), keys.end());
    problem.mask.cu_seqlens_q = sums(queries);
    problem.mask.cu_seqlens_k = sums(keys);
  }
};

void shorter_sequences(const Case& failing, Steps& steps) {
  if (!failing.problem.mask.packed()) return;
  const Packed packed(failing.problem.mask);
  const auto changed = [&](const auto& change) {
    steps.add([&](Case& c) {
      Packed other = packed;
      change(other);
      other.put(c.problem);
    });
  };
  for (std::size_t b = 0; b < packed.queries.size(); ++b) {
    if (packed.queries.size() > 1) {
      changed([&](Packed& other) {
        erase_at(other.queries, b);
        erase_at(other.keys, b);
      });
    }
    for (const auto list : {&Packed::queries, &Packed::keys}) {
      const std::int32_t length = (packed.*list)[b];
      for (const std::int32_t smaller : {0, 1, length / 2, length - 1}) {
        if (smaller < 0 || smaller >= length) continue;
        changed([&](Packed& other) { (other.*list)[b] = smaller; });
      }
    }
  }
}

// The numbers in the spelling of a pattern: percentages, sizes of blocks, seeds. A file has none.
void plainer_numbers(const Case& failing, Steps& steps) {
  const Problem& p = failing.problem;
  if (!p.mask.boolean) return;
  const std::string& spelling = p.mask.boolean->spelling;
  if (spelling.rfind("file_", 0) == 0 || spelling.rfind("pattern_", 0) == 0) return;
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t begin = 0; begin < spelling.size(); ++begin) {
    if (!digit(spelling[begin]) || (begin > 0 && digit(spelling[begin - 1]))) continue;
    std::size_t end = begin;
    while (end < spelling.size() && digit(spelling[end])) ++end;
    std::int64_t number = 0;
    std::from_chars(spelling.data() + begin, spelling.data() + end, number);
    steps.shrink_number(number, std::int64_t{0}, [&](Case& c, std::int64_t smaller) {
      const std::string other =
          spelling.substr(0, begin) + std::to_string(smaller) + spelling.substr(end);
      c.problem.mask.boolean = Pattern::parse(other, p.seqlen_q, p.seqlen_k).boolean;
    });
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
    for (const std::int64_t n : smaller_sizes(failing.problem.seqlen_q, 1)) {
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
  smaller_alike(failing, steps);
  shorter_sequences(failing, steps);
  shorter_lengths(failing, steps);
  narrower_window(failing, steps);
  smaller_pages(failing, steps);
  plainer_numbers(failing, steps);
  steps.add([](Case& c) { c.problem.strides = Strides::packed; });
  steps.add([](Case& c) {
    if (!c.problem.mask.packed()) c.problem.layout = Layout::bshd;
  });
  steps.shrink_number(failing.problem.num_splits, std::int64_t{0},
                      [](Case& c, std::int64_t smaller) { c.problem.num_splits = smaller; });
  steps.add([](Case& c) { c.problem.softmax_scale.reset(); });
  for (const ScoreFeature& feature : score_features()) {
    steps.add([&](Case& c) { feature.remove(c.problem); });
  }
  for (const ScoreDraw& feature : score_draws()) {
    steps.add([&](Case& c) { feature.simplify(c.problem); });
  }
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
