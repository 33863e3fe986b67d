#include "gpu/runtime/fat_binary.hpp"

#include <dlfcn.h>

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "gpu/runtime/testing/fat_binary.hpp"

namespace attest::gpu::runtime {
namespace {

using namespace testing;

std::string ptx_in(const std::vector<Part>& parts, std::uint32_t newest = 90) {
  const std::string bytes = fat_binary(parts);
  Wrapper wrapper;
  wrapper.data = bytes.data();
  return ptx_of(&wrapper, newest).text;
}

// A block of LZ4 that is one run of letters as they are.
std::string as_lz4(const std::string& text) {
  constexpr std::size_t kInToken = 15;
  std::string bytes(1, '\xF0');
  std::size_t more = text.size() - kInToken;
  for (; more >= 255; more -= 255) bytes += '\xFF';
  return bytes + static_cast<char>(more) + text;
}

// A frame of zstd with one block that is not compressed.
std::string as_zstd(const std::string& text) {
  std::string bytes = "\x28\xB5\x2F\xFD\x20";
  bytes += static_cast<char>(text.size());
  const auto block = static_cast<std::uint32_t>(text.size() << 3 | 1);
  append(bytes, block);
  bytes.pop_back();  // three bytes
  return bytes + text;
}

const std::string kText = ".version 9.0\n.target sm_80\n.address_size 64\n";

}  // namespace

TEST_CASE("the newest PTX that the device takes", "[cudart]") {
  const std::vector<Part> parts{{kMachineCode, 80,
                                 "\x7f"
                                 "ELF"},
                                {kPtx, 75, "older"},
                                {kPtx, 80, "right"},
                                {kPtx, 90, "newer"},
                                {kPtx, 100, "newest"}};
  CHECK(ptx_in(parts) == "newer");
  CHECK(ptx_in(parts, 89) == "right");
  CHECK(ptx_in(parts, 75) == "older");
}

TEST_CASE("a fat binary without PTX for the device says how to build it", "[cudart]") {
  CHECK_THROWS_WITH(ptx_in({{kMachineCode, 80,
                             "\x7f"
                             "ELF"}}),
                    "holds machine code alone, no PTX; build it with nvcc -gencode "
                    "arch=compute_90,code=compute_90");
  CHECK_THROWS_WITH(ptx_in({{kPtx, 120, "a"}, {kPtx, 100, "b"}}),
                    Catch::StartsWith("holds PTX for compute_100, compute_120 alone, newer than "
                                      "the emulated sm_90; build it"));
}

TEST_CASE("compressed PTX is opened where the system's library is", "[cudart]") {
  struct Kind {
    const char* soname;
    std::uint64_t flag;
    std::string bytes;
  };
  for (const Kind& kind :
       {Kind{"liblz4.so.1", kLz4, as_lz4(kText)}, Kind{"libzstd.so.1", kZstd, as_zstd(kText)}}) {
    CAPTURE(kind.soname);
    Part part{kPtx, 80, kind.bytes, kind.flag, kText.size()};
    if (dlopen(kind.soname, RTLD_NOW) == nullptr) {
      CHECK_THROWS_WITH(ptx_in({part}), Catch::EndsWith("or build with nvcc --no-compress"));
      continue;
    }
    CHECK(ptx_in({part}) == kText);
    part.text_bytes += 1;
    CHECK_THROWS_WITH(ptx_in({part}), Catch::Contains("its compressed PTX is damaged"));
    part.text_bytes -= 1;
    part.bytes.pop_back();
    CHECK_THROWS_WITH(ptx_in({part}), Catch::Contains("its compressed PTX is damaged"));
  }
}

TEST_CASE("what is no fat binary is refused", "[cudart]") {
  std::string bytes = fat_binary({{kPtx, 80, kText}});
  Wrapper wrapper;
  wrapper.data = bytes.data();
  wrapper.version = 2;
  CHECK_THROWS_WITH(ptx_of(&wrapper, 90), Catch::Contains("-rdc=true"));
  wrapper.version = 1;
  bytes[8] = static_cast<char>(bytes[8] - 8);  // of all entries
  CHECK_THROWS_WITH(ptx_of(&wrapper, 90), Catch::Contains("is cut off"));
  bytes[0] = 'x';
  CHECK_THROWS_WITH(ptx_of(&wrapper, 90), Catch::Contains("does not begin as one"));
}

}  // namespace attest::gpu::runtime
