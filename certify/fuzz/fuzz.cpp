// libFuzzer's entry: the parser is the one that ATTEST_FUZZ_PARSER names.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "certify/fuzz/parsers.hpp"
#include "certify/temporary_folder.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

// A fault that a fuzzer must find before its silence means anything.
void planted(const std::string& bytes, const std::string&) {
  if (bytes.starts_with("attest")) throw InternalError("planted");
}
constexpr fuzz::Parser kPlanted{"planted", planted};

const fuzz::Parser& chosen() {
  const char* given = std::getenv("ATTEST_FUZZ_PARSER");
  const std::string name = given == nullptr ? "" : given;
  try {
    return name == kPlanted.name ? kPlanted : fuzz::find_parser(name);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ATTEST_FUZZ_PARSER: %s\n", error.what());
    std::exit(2);
  }
}

}  // namespace
}  // namespace attest::certify

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto& parser = attest::certify::chosen();
  static const attest::certify::TemporaryFolder folder;
  attest::certify::fuzz::takes(parser, {reinterpret_cast<const char*>(data), size},
                               folder.file(""));
  return 0;
}
