#include <string_view>

#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "gpu/ptx/execution/executor.hpp"
#include "gpu/ptx/testing/texts.hpp"
#include "gpu/ptx/text/parser.hpp"
#include "gpu/ptx/text/tokens.hpp"

/// Mutations of real PTX texts: none crashes or hangs, and none that breaks the grammar is
/// accepted.
namespace attest::ptx {
namespace {

// Executes accepted kernels, too, far from any buffer: the executor must hold its own.
bool is_accepted(const std::string& text) {
  try {
    const Module module = parse(text);
    for (const Function& function : module.functions) {
      if (!function.is_entry || !function.has_body) continue;
      const Program program = check(module, function.name);
      Parameters parameters(program);
      for (const Program::Parameter& each : program.parameters) {
        std::vector<std::byte> value(each.bytes);
        value[0] = std::byte{16};
        parameters.add_bytes(value.data(), value.size());
      }
      constexpr std::uint64_t kMost = 2000, kThreads = 64;
      simt::Emulation emulation;
      emulation.shared_checks = simt::SharedChecks::on;
      const auto threads = static_cast<unsigned>(
          program.required_threads.empty() ? kThreads : program.required_threads[0]);
      execute(program, {{1, 1, 1}, {threads, 1, 1}, 512}, emulation, {}, parameters,
              {Approximation::nearest, kMost});
    }
  } catch (const InvalidProblem&) {
    return false;
  }
  return true;
}

std::string without(const std::string& text, std::string_view part) {
  std::string rest = text;
  return rest.erase(static_cast<std::size_t>(part.data() - text.data()), part.size());
}

TEST_CASE("a text without one of its brackets, semicolons or commas is refused", "[ptx]") {
  constexpr std::string_view kNeeded = "{}()[]<>;,";
  for (const std::string& name : testing::texts()) {
    const std::string whole = testing::text(name);
    const std::string text = whole.substr(0, whole.find(".section"));  // which is skipped
    REQUIRE(is_accepted(text));
    const std::vector<Token> all = tokens(text);
    std::size_t tried = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      const bool is_needed =
          all[k].kind == Token::Kind::punctuation && kNeeded.find(all[k].text) != kNeeded.npos;
      constexpr std::size_t kEach = 7;  // of the many in a text
      if (!is_needed || ++tried % kEach != 0) continue;
      INFO(name << " line " << all[k].at.line << " column " << all[k].at.column);
      CHECK_FALSE(is_accepted(without(text, all[k].text)));
    }
    CHECK(tried > 0);
  }
}

TEST_CASE("a text that ends within a function is refused", "[ptx]") {
  const std::string text = testing::text("softmax_triton");
  const std::size_t begin = text.find(".entry"), end = text.rfind("ret;");
  constexpr std::size_t kStep = 97;
  for (std::size_t size = begin + 6; size < end; size += kStep) {
    INFO("the first " << size << " bytes");
    CHECK_FALSE(is_accepted(text.substr(0, size)));
  }
}

TEST_CASE("any bytes are read or refused", "[ptx]") {
  constexpr int kTexts = 300, kMostMutations = 4;
  constexpr std::string_view kPieces = "{}()[]<>;,:=|!@+-*.%$_0xfd9e\"/\n ab";
  auto random = [next = std::uint64_t{0}](std::size_t below) mutable {
    return static_cast<std::size_t>(mix(1, ++next) % below);
  };
  int accepted = 0;
  for (int k = 0; k < kTexts; ++k) {
    const auto& names = testing::texts();
    std::string text = testing::text(names[random(names.size())]);
    for (std::size_t n = 1 + random(kMostMutations); n > 0; --n) {
      const std::size_t at = random(text.size());
      switch (random(4)) {
        case 0:
          text[at] = kPieces[random(kPieces.size())];
          break;
        case 1:
          text.erase(at, 1 + random(40));
          break;
        case 2:
          text.insert(at, text.substr(random(text.size()), random(40)));
          break;
        default:
          text[at] = static_cast<char>(random(256));
          break;
      }
    }
    accepted += is_accepted(text) ? 1 : 0;
  }
  CHECK(accepted < kTexts);
  CHECK_FALSE(is_accepted(std::string(100'000, '{')));
  CHECK_FALSE(is_accepted(testing::kernel("", std::string(100'000, '{'))));
  CHECK_FALSE(is_accepted(testing::kernel("", "mov.b32 a, " + std::string(100'000, '{') + ";")));
  CHECK_FALSE(is_accepted(testing::kernel("", "mov.b32 " + std::string(100'000, '|') + ";")));
}

}  // namespace
}  // namespace attest::ptx
