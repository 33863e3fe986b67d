#include "certify/report/html/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "certify/report/certificate_fields.hpp"
#include "certify/report/html/markup.hpp"

namespace attest::certify {
namespace {

constexpr Success kSuccesses[] = {
    {"certified", "Certified", "", " certified"},
    {"law_holds", "The law holds", "law holds on ", "; certifies nothing"},
    {"mask_holds", "Holds on the mask", "holds on ", "; certifies no other mask"},
    {"shard_passed", "Shard passed", "shard passed on ",
     "; certifies nothing without the other shards"}};

}  // namespace

const Success& certified() { return kSuccesses[0]; }

const Success* success_of(const std::string& verdict) {
  const auto* const found =
      std::find_if(std::begin(kSuccesses), std::end(kSuccesses),
                   [&](const Success& one) { return verdict == one.verdict; });
  return found == std::end(kSuccesses) ? nullptr : found;
}

Tone tone_of(const std::string& verdict) {
  const char* const style = success_of(verdict) != nullptr ? "good"
                            : verdict == "violated"        ? "bad"
                            : verdict == "crashed"         ? "crash"
                                                           : "warn";
  return {style, verdict_words(verdict)};
}

std::string chip(const std::string& verdict) {
  const Tone tone = tone_of(verdict);
  return fmt::format("<span class=\"chip {}\">{}</span>", tone.style, escaped(tone.word));
}

}  // namespace attest::certify
