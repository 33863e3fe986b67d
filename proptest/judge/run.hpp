#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"
#include "core/tensor.hpp"
#include "proptest/judge/claims.hpp"
#include "proptest/values/values.hpp"

namespace attest::proptest {

/// One generated case: everything that is needed to run it again.
struct Case {
  Problem problem;
  Values values = Values::normal;
  std::uint64_t seed = 0;
  std::int32_t threads = 1;
};

/// Results that a kernel's calls left behind.
struct KernelRun {
  attest_status status = ATTEST_OK;
  std::string
      misconduct;     // "" or: modified inputs, wrote into gaps, guards; returned an unknown status
  std::string words;  // that a call which did not succeed handed back with its status
  Tensor O, LSE;      // packed, in the dtype the kernel wrote
  Tensor dQ, dK, dV;
  Tensor dSinks;  // without axes where the problem has no sinks
  Tensor dBias;   // without axes where it has no bias

  bool completed() const { return status == ATTEST_OK && misconduct.empty(); }
};

/// How tensor number `tensor` of a call lies in memory: as the problem says; with Strides::mixed
/// packed or padded, or with ATTEST_ANY_STRIDES transposed or interleaved too, by the seed.
/// [proptest/values/case_test "mixed strides"]
Strides tensor_strides(const attest_description& description, const Problem& problem,
                       std::uint64_t seed, std::uint64_t tensor);

/// How LSE and dLSE lie in memory in a case: packed where the problem's tensors are, or where the
/// kernel does not claim ATTEST_ANY_STRIDES; else packed, padded, transposed or interleaved, by the
/// seed.  [proptest/values/case_test "LSE lies in memory in every way"]
Strides scalar_strides(const attest_description& description, const Problem& problem,
                       std::uint64_t seed);

/// Says when the forward call asks for LSE: where the kernel claims it, or never.
enum class LseRequest : std::uint8_t { where_claimed, never };

/// Tells whether the ABI knows the status.
bool known_status(attest_status status);

/// Where a call may say why it does not succeed.
class CallWords {
 public:
  char* data() { return text_.data(); }
  std::size_t size() const { return text_.size(); }

  /// The text, of a call that returned `status`; "" of one that succeeded. A text without an end is
  /// cut where the room for it ends.  [proptest/values/case_test "a call that does not succeed"]
  std::string of(attest_status status) const;

 private:
  std::array<char, 1024> text_{};
};

/// Tells whether a case of this seed passes a gradient of LSE (half of them do, if the kernel takes
/// one).
bool uses_dlse(const attest_description& description, std::uint64_t seed);

/// The problem of this thread's last `run`; nothing before the first, and after it is reset. A law
/// may make another of its case's.
std::optional<Problem>& problem_of_last_run();

/// Calls forward, and backward too when asked, on fresh poisoned memory laid out as the problem
/// says. The backward call gets O and LSE as the forward call stored them; no LSE where none is
/// claimed. Requires: direction forward with LseRequest::never. Else throws InternalError.
KernelRun run(const attest_kernel& kernel, const Problem& problem, const InputValues& values,
              Direction direction, const Case& of, LseRequest request = LseRequest::where_claimed);

}  // namespace attest::proptest
