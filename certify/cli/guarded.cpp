#include "certify/cli/guarded.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "certify/cli/streams.hpp"
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
    fmt::print(stderr, "attest: internal error: {}\n", printable(error.what()));
    return kInternal;
  }
}

}  // namespace

int guarded(const std::function<int()>& run) {
  keep_streams();
  const int status = status_of(run);
  const std::optional<int> error = output_error();
  if (!error) return status;
  fmt::print(stderr, "attest: cannot write to the standard output: {}\n", std::strerror(*error));
  return status == 0 ? kUsage : status;
}

}  // namespace attest::certify::cli
