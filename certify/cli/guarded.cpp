#include "certify/cli/guarded.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>

#include "certify/printable.hpp"
#include "core/error.hpp"

namespace attest::certify::cli {
namespace {

int status_of(const std::function<int()>& run) {
  try {
    return run();
  } catch (const InvalidProblem& error) {
    fmt::print(stderr, "attest: {}\n", printable_lines(error.what()));
    return kUsage;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "attest: not enough memory for this problem; make it smaller\n");
    return kUsage;
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) return kUsage;  // guarded says why
    fmt::print(stderr, "attest: internal error: {}\n", printable(error.what()));
    return kInternal;
  }
}

}  // namespace

int guarded(const std::function<int()>& run) {
  // A file beyond the limit on sizes is one that cannot be written: the signal would end the
  // program and leave what it wrote.
  std::signal(SIGXFSZ, SIG_IGN);
  const int status = status_of(run);
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fmt::print(stderr, "attest: cannot write to the standard output; is the disk full?\n");
    return kUsage;
  }
  return status;
}

}  // namespace attest::certify::cli
