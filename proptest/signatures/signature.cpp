#include "proptest/signatures/signature.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "proptest/laws/level.hpp"
#include "proptest/laws/trials/trial.hpp"
#include "proptest/signatures/alternative.hpp"
#include "proptest/signatures/loss_signature.hpp"
#include "proptest/signatures/results.hpp"
#include "proptest/values/generator.hpp"

namespace attest::proptest {
namespace {

bool affordable(const Problem& p) {
  constexpr double kMostProducts = 0x1p21;
  return static_cast<double>(p.batch * p.num_heads_q) * static_cast<double>(p.seqlen_q) *
             static_cast<double>(p.seqlen_k) * static_cast<double>(p.head_dim_qk + p.head_dim_v) <=
         kMostProducts;
}

// One case, run and compared with the truth. Not copyable: its parts refer to each other.
class Played {
 public:
  Played(const attest_kernel& kernel, const Case& c, InputValues values)
      : case_(c),
        direction_(furthest(kernel, case_.problem)),
        solved_(kernel, case_.problem, std::move(values), direction_, case_),
        results_({kernel.description, case_.problem, solved_.values, direction_, case_.seed,
                  solved_.truth, solved_.run}) {}
  Played(const Played&) = delete;
  Played& operator=(const Played&) = delete;

  const Results& results() const { return results_; }

 private:
  Case case_;
  Direction direction_;
  Solved solved_;
  Results results_;
};

// With the values of a case as they are, or as the law `score_level` shifts them.
enum class Level : std::uint8_t { own, shifted };

// Nothing where the kernel did not complete the case, or there is nothing to compare with.
std::unique_ptr<Played> play(const attest_kernel& kernel, const Case& c, Level level) {
  if (!affordable(c.problem)) return nullptr;
  try {
    if (level == Level::own) {
      return std::make_unique<Played>(kernel, c, make_values(c.problem, c.values, c.seed));
    }
    Levelled levelled = at_level(kernel.description, c);
    Case shifted = c;
    shifted.problem = levelled.problem;
    return std::make_unique<Played>(kernel, shifted, std::move(levelled.values));
  } catch (const Stopped&) {
    return nullptr;
  } catch (const InvalidProblem&) {  // values without an answer
    return nullptr;
  }
}

// Cases like the shrunk one, larger and with other values, and some of everything.
std::vector<Case> others(const attest_kernel& kernel, const Case& shrunk, const Case& found) {
  constexpr std::uint64_t kLike = 4, kGenerated = 16;
  std::vector<Case> cases;
  for (std::uint64_t index = 0; index < kLike; ++index) {
    Case c = found;
    c.values = Values::normal;
    c.seed = mix(shrunk.seed, index);
    const Pattern& mask = c.problem.mask;
    if (index > 0 && !mask.boolean && !mask.packed() && mask.key_lengths.empty()) {
      const auto step = static_cast<std::int64_t>(index);
      c.problem.seqlen_q = shrunk.problem.seqlen_q + 3 * step;
      c.problem.seqlen_k = shrunk.problem.seqlen_k + 5 * step;
    }
    cases.push_back(c);
  }
  // A boolean mask alone, which tells one kind of mask from all.
  if ((kernel.description.features & ATTEST_BOOLEAN_MASK) != 0 && !shrunk.problem.mask.packed()) {
    constexpr std::int64_t kKeys = 8;
    Case c = shrunk;
    c.values = Values::normal;
    c.problem.seqlen_q = c.problem.seqlen_k = kKeys;
    c.problem.mask = Pattern::parse("random_50_1", kKeys, kKeys);
    cases.push_back(c);
  }
  for (std::uint64_t index = 0; index < kGenerated; ++index) {
    cases.push_back(generate(kernel.description, Tier::smoke, shrunk.seed, index));
  }
  return cases;
}

// The shrunk case with as many keys as tiles have, at the same level: they tell tiles apart.
std::vector<Case> whole_tiles(const attest_kernel& kernel, const Case& shrunk) {
  std::vector<Case> cases;
  const Pattern& mask = shrunk.problem.mask;
  if (mask.boolean || mask.packed() || !mask.key_lengths.empty()) return cases;
  for (const std::int64_t keys : {8, 16, 32, 64, 128}) {
    Case c = shrunk;
    c.problem.seqlen_k = keys;
    if ((kernel.description.features & ATTEST_CROSS_LENGTHS) == 0) c.problem.seqlen_q = keys;
    cases.push_back(c);
  }
  return cases;
}

// Tells whether the kernel's results on a case are not the suspect's. Where the mistake does not
// apply to the case, a right result contradicts nothing.
bool contradicts(const Results& one, Pass pass, const std::vector<Alternative>& alternatives,
                 const Suspect& suspect) {
  bool applies = false;
  for (const Alternative& alternative : alternatives) {
    if (Suspect(alternative.name, alternative.statement) != suspect) continue;
    if (one.equals(alternative) || one.leaves_range(alternative)) return false;
    applies = true;
  }
  return applies || one.wrong() == pass;
}

// The mistakes whose results these are, and not the truth's, with so many bits of agreement.
std::set<Suspect> suspects_of(const Results& one, double least_bits) {
  std::set<Suspect> suspects;
  for (const Alternative& alternative : one.alternatives(one.wrong(), nullptr)) {
    if (one.tells_apart(alternative) && one.equals(alternative) &&
        one.bits_of_agreement(alternative) >= least_bits) {
      suspects.insert({alternative.name, alternative.statement});
    }
  }
  return suspects;
}

// Each name once; of two that nothing the kernel claims tells apart, the narrower.
std::vector<Signature> named(const std::set<Suspect>& suspects) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kNarrower{
      {{"maximum_from_zero", "pads_in_maximum"},
       {"causal_one_more", "right_one_more"},
       {"band_ignored", "mask_ignored"},
       {"boolean_mask_ignored", "mask_ignored"},
       {"lse_of_first_head_for_one_query", "lse_of_first_head"},
       {"first_key_length_for_one_query", "first_key_length"}}};
  std::set<std::string> names, left_out;
  for (const auto& [name, statement] : suspects) names.insert(name);
  for (const auto& [narrow, wide] : kNarrower) {
    if (names.count(std::string(narrow)) > 0) left_out.insert(std::string(wide));
  }
  std::vector<Signature> signatures;
  for (const auto& [name, statement] : suspects) {
    if (left_out.insert(name).second) signatures.push_back({name, statement});
  }
  return signatures;
}

}  // namespace

std::vector<Signature> signatures_of(const attest_kernel& kernel, const Case& shrunk,
                                     const Case& found) {
  if ((kernel.description.directions & (ATTEST_FORWARD | ATTEST_BACKWARD)) == 0) {
    return loss_signatures_of(kernel, shrunk, found);
  }
  std::vector<std::unique_ptr<Played>> played;
  const auto add = [&](const Case& c, Level level) {
    if (auto one = play(kernel, c, level)) played.push_back(std::move(one));
  };
  for (const Case& c : {shrunk, found}) add(c, Level::own);
  const bool ordinary = std::any_of(played.begin(), played.end(), [](const auto& one) {
    return one->results().wrong() != Pass::none;
  });
  if (!ordinary) {
    for (const Case& c : {shrunk, found}) add(c, Level::shifted);
  }
  Pass pass = Pass::none;
  std::set<Suspect> suspects;
  for (const auto& one : played) {
    if (pass == Pass::none) pass = one->results().wrong();
    if (pass == Pass::none || one->results().wrong() != pass) continue;
    suspects.merge(suspects_of(one->results(), 0));  // other cases tell
  }
  if (suspects.empty()) return {};
  for (const Case& c : others(kernel, shrunk, found)) {
    add(c, Level::own);
    if (!ordinary) add(c, Level::shifted);
  }
  if (!ordinary) {
    for (const Case& c : whole_tiles(kernel, shrunk)) add(c, Level::shifted);
  }
  for (const auto& one : played) {
    if (suspects.empty()) break;
    if (pass == Pass::backward &&
        (!one->results().ran_backward() || one->results().wrong() == Pass::forward))
      continue;
    const std::vector<Alternative> alternatives = one->results().alternatives(pass, &suspects);
    for (auto suspect = suspects.begin(); suspect != suspects.end();) {
      suspect = contradicts(one->results(), pass, alternatives, *suspect) ? suspects.erase(suspect)
                                                                          : std::next(suspect);
    }
  }
  return named(suspects);
}

std::vector<Signature> signatures_of(const Scene& scene) {
  constexpr double kLeastBits = 12;  // about 40 mistakes: one of 100 wrong results by chance
  const Results results(scene);
  return results.wrong() == Pass::none ? std::vector<Signature>{}
                                       : named(suspects_of(results, kLeastBits));
}

}  // namespace attest::proptest
