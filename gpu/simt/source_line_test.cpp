#include "gpu/simt/source_line.hpp"

#include "core/testing/catch.hpp"

namespace attest::simt {
namespace {

std::string shown(std::string_view answer) {
  const CodeLine line = kernel_line(answer);
  return line.file + ":" + std::to_string(line.line);
}

TEST_CASE("the kernel's line is the first one that is no helper's", "[source_line]") {
  CHECK(shown("/a/gpu/kernels/flash2.cuh:17\n") == "/a/gpu/kernels/flash2.cuh:17");
  CHECK(shown("/a/gpu/simt/emulation.hpp:160\n/a/kernel.cuh:3\n/a/main.cpp:9\n") ==
        "/a/kernel.cuh:3");
  CHECK(shown("/usr/include/c++/12/bits/atomic_base.h:5\n/b/../gpu/simt/emulation.hpp:1\n"
              "/a/gpu/simt/testing/seeded_bugs.cpp:40\n") ==
        "/a/gpu/simt/testing/seeded_bugs.cpp:40");
  CHECK(shown("/a/gpu/simt/emulation.hpp:160\n") == "/a/gpu/simt/emulation.hpp:160");
}

TEST_CASE("what addr2line answers is read with blanks and remarks", "[source_line]") {
  CHECK(shown("/my kernels/row sums.cu:25\n") == "/my kernels/row sums.cu:25");
  CHECK(shown("/my kernels/a.cu:25 (discriminator 4)\n") == "/my kernels/a.cu:25");
  CHECK(shown("??:0\n") == ":0");
  CHECK(shown("??:0\n/a/kernel.cuh:3\n") == "/a/kernel.cuh:3");
  CHECK(shown("") == ":0");
}

}  // namespace
}  // namespace attest::simt
