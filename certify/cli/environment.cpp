#include "certify/cli/environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "certify/printable.hpp"
#include "core/error.hpp"

namespace attest::certify::cli {
namespace {

// Whole numbers from 1 on, one for each level of threads, with commas between them.
bool is_thread_count(std::string_view text) {
  constexpr std::string_view kSpace = " \t";
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view one = text.substr(0, comma);
    one.remove_prefix(std::min(one.find_first_not_of(kSpace), one.size()));
    one = one.substr(0, one.find_last_not_of(kSpace) + 1);
    int threads = 0;
    const auto [stopped, error] = std::from_chars(one.data(), one.data() + one.size(), threads);
    if (error != std::errc() || stopped != one.data() + one.size() || threads < 1) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

void require_environment() {
  const char* const threads = std::getenv("OMP_NUM_THREADS");
  if (threads != nullptr && !is_thread_count(threads)) {
    throw InvalidProblem(fmt::format(
        "OMP_NUM_THREADS is '{}', which is no number of threads; set it to one, or unset it",
        printable(threads)));
  }
#if defined(__clang__)  // whose runtime notes there that it was loaded
  if (access("/dev/shm", W_OK) != 0) {
    throw InvalidProblem(
        "nothing can be written in /dev/shm, which the OpenMP runtime needs; mount it writable "
        "(docker run --tmpfs /dev/shm, docs/how-to/install.md)");
  }
#endif
}

}  // namespace attest::certify::cli
