#include "schedules/testing/random_cases.hpp"

#include <optional>

#include "core/testing/catch.hpp"

namespace attest::schedules::testing {
namespace {

std::string random_mask(Rng& rng, std::int64_t batch, std::int64_t k) {
  const std::string width = std::to_string(rng.between(0, 6));
  switch (rng.between(0, 9)) {
    case 0:
      return "causal_tl";
    case 1:
      return "causal_br";
    case 2:
      return "window_" + width + "_" + std::to_string(rng.between(0, 6));
    case 3:
      return "window_tl_inf_" + width;
    case 4:
      return "random_" + std::to_string(rng.between(0, 60)) + "_" + width;
    case 5:
      return "causal_br+random_30_" + width;
    case 6: {
      std::string text = "lengths";
      for (std::int64_t b = 0; b < batch; ++b) text += "_" + std::to_string(rng.between(0, k));
      return text;
    }
    default:
      return "none";
  }
}

}  // namespace

Problem random_problem(Rng& rng, Direction direction) {
  const auto text = [](std::int64_t value) { return std::to_string(value); };
  const bool forward = direction == Direction::forward;
  const auto length = [&] { return rng.between(0, 19) == 0 ? 0 : rng.between(1, 19); };
  const std::int64_t batch = rng.between(1, 3), heads = rng.between(1, 2), k = length();
  const std::int64_t d = rng.between(1, 9), dv = rng.between(1, 9);
  const std::int64_t group = rng.between(0, 2) == 0 ? rng.between(2, 3) : 1;
  std::string problem = "b=" + text(batch) + ",d=" + text(d) + ",dv=" + text(dv) +
                        ",hkv=" + text(heads) + ",hq=" + text(group * heads);
  if (rng.between(0, 9) == 0) {
    problem += ",mask=cu_3x5_9x1_0x12_4x0";
    problem.replace(0, problem.find(',') + 1, "");
  } else {
    problem += ",sq=" + text(length()) + ",sk=" + text(k);
    problem += ",mask=" + random_mask(rng, batch, k);
  }
  if (rng.between(0, 3) == 0) problem += ",alibi=standard";
  if (forward && rng.between(0, 3) == 0) problem += ",softcap=2";
  if (rng.between(0, 3) == 0) problem += ",scale=-0.5";
  return Problem::parse(problem);
}

std::string random_schedule(Rng& rng, const io::ScheduleFamily& family, std::int64_t largest_tile) {
  std::string text = family.name();
  char separator = ':';
  for (const io::ScheduleParameter& parameter : family.parameters()) {
    if (parameter.name == "rule") continue;  // it chooses the tiles
    const auto choices = static_cast<std::int64_t>(parameter.choices.size());
    const bool unless_first = parameter.name == "dlse" || parameter.name == "order";
    if (unless_first && rng.between(0, 1) == 0) continue;  // the first choice is not printed
    const std::int64_t first = unless_first ? 1 : 0;
    text += separator + parameter.name + "=" +
            (choices == 0
                 ? std::to_string(rng.between(1, largest_tile))
                 : parameter.choices[static_cast<std::size_t>(rng.between(first, choices - 1))]);
    separator = ',';
  }
  return text;
}

attest::testing::Dlse dlse_of(const std::string& schedule) {
  using attest::testing::Dlse;
  return schedule.find("dlse=given") == std::string::npos ? Dlse::absent : Dlse::given;
}

template <class Arguments>
void check_counts(const io::Schedule& schedule, const Arguments& args) {
  const io::Traffic expected = schedule.closed_form();
  const std::int64_t words = expected.peak.words.value(), bytes = expected.peak.bytes.value();
  const io::FastMemory exact{words, bytes};
  const io::Traffic counted = schedule.count(exact, args).traffic();
  const io::Traffic dry = schedule.dry_count(exact).traffic();
  CHECK(counted.reads.words.value() == expected.reads.words.value());
  CHECK(counted.writes.words.value() == expected.writes.words.value());
  CHECK(counted.peak.words.value() == words);
  CHECK(counted == expected);
  CHECK(dry == expected);
  if (words > 1) {
    CHECK_THROWS_AS(schedule.dry_count(io::FastMemory::of_words(words - 1)), io::CapacityExceeded);
  }
  if (bytes > 1) {
    CHECK_THROWS_AS(schedule.dry_count(io::FastMemory::of_bytes(bytes - 1)), io::CapacityExceeded);
  }
}

template void check_counts(const io::Schedule&, const attest_forward_args&);
template void check_counts(const io::Schedule&, const attest_backward_args&);
template void check_counts(const io::Schedule&, const attest_loss_args&);

Problem random_band(Rng& rng) {
  const auto text = [&rng](std::int64_t least, std::int64_t most) {
    return std::to_string(rng.between(least, most));
  };
  std::string mask =
      rng.between(0, 3) == 0 ? "causal_br" : "window_" + text(0, 9) + "_" + text(0, 9);
  if (rng.between(0, 2) == 0) mask = "window_tl_" + text(0, 9) + "_inf";
  if (rng.between(0, 2) == 0) mask += "+lengths_" + text(0, 20);
  if (rng.between(0, 7) == 0) mask = "none";
  return Problem::parse("sq=" + text(1, 20) + ",sk=20,d=3,dv=2,mask=" + mask);
}

LeastWords least_held_words(
    std::int64_t extent, io::FastMemory capacity,
    const std::function<io::Traffic(std::int64_t block, std::int64_t held)>& cost) {
  std::optional<io::Words> of_all, with_most_held;
  const auto take = [](std::optional<io::Words>& least, io::Words words) {
    if (!least || words < *least) least = words;
  };
  for (std::int64_t block = 1; block <= extent; ++block) {
    std::optional<io::Words> last;
    for (std::int64_t held = 1; held <= capacity.words; ++held) {
      const io::Traffic traffic = cost(block, held);
      if (traffic.peak.words > capacity.words) continue;
      last = traffic.total_words();
      take(of_all, *last);
    }
    if (last) take(with_most_held, *last);
  }
  REQUIRE(of_all);
  return {*of_all, *with_most_held};
}

}  // namespace attest::schedules::testing
