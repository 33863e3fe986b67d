#include "certify/worker/library/description.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "certify/worker/library/limits.hpp"
#include "certify/worker/process/protocol.hpp"
#include "core/dtype/dtype.hpp"
#include "core/features/claim_words.hpp"
#include "core/registry.hpp"

namespace attest::certify::worker {
namespace {

constexpr std::uint32_t kDirections = ATTEST_FORWARD | ATTEST_BACKWARD | ATTEST_LOSS_GRADIENT;
constexpr std::uint32_t kDtypes = (1u << kDTypes.size()) - 1;
constexpr std::uint32_t kMayChange = (std::uint32_t{ATTEST_MAY_START_PROCESSES} << 1) - 1;

std::string hex(std::uint64_t value) {
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdef"[value % 16]);
    value /= 16;
  } while (value != 0);
  return "0x" + digits;
}

std::string got(const std::string& field, const std::string& value, const std::string& needed) {
  return field + " is " + value + "; " + needed;
}

std::string other_size(const std::string& object, std::size_t size, std::size_t needed) {
  if (size == needed) return "";
  return got(object + ".struct_size", std::to_string(size),
             "it must be sizeof(" + object + "), " + std::to_string(needed) +
                 " with this attest_kernel.h; rebuild with it");
}

// A string of at most `most` printable characters; names have no blanks or quotes either, because
// they stand in command lines.
std::string bad_text(const std::string& field, const char* text, std::size_t most,
                     std::string_view forbidden) {
  const std::size_t length = strnlen(text, most);
  if (length == most) return field + " is longer than " + std::to_string(most - 1) + " bytes";
  for (const char c : std::string_view(text, length)) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f || forbidden.find(c) != std::string_view::npos) {
      return field + " has the character " + hex(code) + "; use printable characters" +
             (forbidden.empty() ? "" : " without blanks, quotes and colons");
    }
  }
  return "";
}

std::string bad_bits(const std::string& field, std::uint32_t bits, std::uint32_t known) {
  if ((bits & ~known) == 0) return "";
  return got("description." + field, hex(bits),
             "unknown bits " + hex(bits & ~known) + ", this program knows " + hex(known));
}

// Names FP8, whose bits are planned (docs/decisions/0024-version-2-of-the-interface.md).
std::string bad_dtypes(std::uint32_t bits) {
  constexpr std::uint32_t kFp8 = 1u << 4 | 1u << 5;
  static_assert((kDtypes & kFp8) == 0);
  std::string why = bad_bits("dtypes", bits, kDtypes);
  if ((bits & kFp8) != 0) why += "; this version does not have fp8, bits 0x10 and 0x20";
  return why;
}

std::string bad_size(const std::string& field, std::int64_t value) {
  if (value >= 0) return "";
  return got("description." + field, std::to_string(value), "it must be 0 (any) or positive");
}

// A library may hold any number where the header has an enumeration, which C++ may not read as one.
template <class Choice>
std::int64_t number_of(const Choice& choice) {
  static_assert(sizeof(Choice) == sizeof(std::int32_t));
  std::int32_t number = 0;
  std::memcpy(&number, &choice, sizeof number);
  return number;
}

std::string bad_choice(const std::string& field, std::int64_t value, std::int64_t most) {
  if (value >= 0 && value <= most) return "";
  return got("description." + field, std::to_string(value),
             "it must be from 0 to " + std::to_string(most));
}

// 0, 1 + attest_dtype or ATTEST_INPUT_DTYPE.
std::string bad_dtype(const std::string& field, std::int32_t value) {
  constexpr std::int32_t kMost = 1 + kDTypes.back().code;
  if (value == ATTEST_INPUT_DTYPE || (value >= 0 && value <= kMost)) return "";
  return got("description.numerics." + field, std::to_string(value),
             "it must be 0, 1 + an attest_dtype or ATTEST_INPUT_DTYPE");
}

std::string bad_roundoff(const std::string& field, double value, double most) {
  if (std::isfinite(value) && value >= 0 && value <= most) return "";
  return got("description.numerics." + field, std::to_string(value),
             "it must be a number from 0 to " + std::to_string(most));
}

std::string bad_exp_ulps_of(const attest_numerics& n, double most) {
  for (const DTypeFacts& row : kDTypes) {
    const std::string field = "exp_ulps_of[" + std::string(row.abi_name) + "]";
    if (std::string why = bad_roundoff(field, n.exp_ulps_of[row.code], most); !why.empty()) {
      return why;
    }
  }
  return "";
}

std::string numerics_objection(const attest_numerics& n) {
  constexpr std::int64_t kFlag = 1, kAny = INT32_MAX;
  // An exponential that is 1 % off, and more merges than there are keys, bound nothing.
  constexpr double kMostUlps = 0x1p17;
  constexpr std::int64_t kMostSplits = 1 << 16;
  if (number_of(n.accumulation) == ATTEST_FUSED_BLOCKS &&
      (n.fused_block <= 0 || n.fused_fraction_bits <= 0)) {
    return "description.numerics.accumulation is ATTEST_FUSED_BLOCKS; fused_block and "
           "fused_fraction_bits must be positive";
  }
  for (const std::string& text :
       {bad_choice("numerics.accumulation", number_of(n.accumulation), ATTEST_FUSED_BLOCKS),
        bad_dtype("accumulator", n.accumulator),
        bad_choice("numerics.fused_block", n.fused_block, kAny),
        bad_choice("numerics.fused_fraction_bits", n.fused_fraction_bits, kAny),
        bad_choice("numerics.summation_depth", n.summation_depth, INT64_MAX),
        bad_roundoff("input_roundoff", n.input_roundoff, 1),
        bad_roundoff("operand_roundoff", n.operand_roundoff, 1),
        bad_roundoff("scaled_q_roundoff", n.scaled_q_roundoff, 1),
        bad_dtype("p_cast", n.p_cast),
        bad_choice("numerics.p_normalized", n.p_normalized, kFlag),
        bad_choice("numerics.sum_after_cast", n.sum_after_cast, kFlag),
        bad_choice("numerics.flushes_p", n.flushes_p, kFlag),
        bad_roundoff("exp_ulps", n.exp_ulps, kMostUlps),
        bad_exp_ulps_of(n, kMostUlps),
        bad_choice("numerics.exp_zero_not_one", n.exp_zero_not_one, kFlag),
        bad_choice("numerics.lse_splits", n.lse_splits, kMostSplits),
        bad_dtype("gqa_partial", n.gqa_partial),
        bad_dtype("gqa_accumulator", n.gqa_accumulator),
        bad_dtype("dq_accumulator", n.dq_accumulator),
        bad_dtype("dkv_accumulator", n.dkv_accumulator),
        bad_dtype("dp_cast", n.dp_cast),
        bad_dtype("score_cast", n.score_cast),
        bad_choice("numerics.lse_base_two", n.lse_base_two, kFlag),
        bad_choice("numerics.nondeterministic", n.nondeterministic, kFlag),
        bad_choice("numerics.lse_split_keys", n.lse_split_keys, kAny),
        bad_choice("numerics.delta_from_p", n.delta_from_p, kFlag),
        bad_choice("numerics.flushes_subnormals", n.flushes_subnormals, kFlag)}) {
    if (!text.empty()) return text;
  }
  return "";
}

std::string missing_function(const attest_kernel& kernel) {
  const attest_description& d = kernel.description;
  const auto claims = [&](std::uint32_t bit) { return (d.directions & bit) != 0; };
  if (claims(ATTEST_FORWARD) && kernel.forward == nullptr) {
    return "description.directions has ATTEST_FORWARD, but forward is NULL";
  }
  if (claims(ATTEST_BACKWARD) && (kernel.backward == nullptr || !claims(ATTEST_FORWARD))) {
    return "description.directions has ATTEST_BACKWARD; backward must not be NULL and "
           "ATTEST_FORWARD must be claimed too";
  }
  if (claims(ATTEST_LOSS_GRADIENT) && kernel.loss_gradient == nullptr) {
    return "description.directions has ATTEST_LOSS_GRADIENT, but loss_gradient is NULL";
  }
  return "";
}

}  // namespace

std::string objection(const attest_kernel& kernel) {
  if (std::string text = version_objection(kernel); !text.empty()) return text;
  const attest_description& d = kernel.description;
  for (const std::string& text :
       {other_size("attest_kernel", kernel.struct_size, sizeof kernel),
        other_size("attest_description", d.struct_size, sizeof d),
        other_size("attest_numerics", d.numerics.struct_size, sizeof d.numerics)}) {
    if (!text.empty()) return text;
  }
  const auto set = [](const auto& reserved) {
    return std::any_of(std::begin(reserved), std::end(reserved), [](auto x) { return x != 0; });
  };
  if (set(d.reserved) || d.reserved_bits != 0 || d.more_reserved_bits != 0 ||
      set(d.numerics.reserved) || d.numerics.reserved_bits != 0) {
    return "description: a reserved field is not 0; set what this attest_kernel.h does not name to "
           "0";
  }
  if (d.name == nullptr || *d.name == '\0') {
    return "description.name is empty; give the kernel a unique name like mine/attention";
  }
  const std::int64_t device = number_of(d.device);
  if (device != ATTEST_CPU && device != ATTEST_CUDA) {
    return got("description.device", std::to_string(device),
               "ATTEST_CPU and ATTEST_CUDA are known");
  }
  if (d.directions == 0) return "description.directions is 0; claim at least ATTEST_FORWARD";
  if (d.dtypes == 0) return "description.dtypes is 0; claim at least 1 << ATTEST_F32";
  const char* summary = d.summary == nullptr ? "" : d.summary;
  const char* schedule = d.schedule == nullptr ? "" : d.schedule;
  const char* backward = d.schedule_backward == nullptr ? "" : d.schedule_backward;
  for (const std::string& text :
       {bad_text("description.name", d.name, sizeof(Description::name), " \"'`\\$:"),
        bad_text("description.summary", summary, sizeof(Description::summary), ""),
        bad_text("description.schedule", schedule, sizeof(Description::schedule), ""),
        bad_text("description.schedule_backward", backward, sizeof(Description::schedule_backward),
                 ""),
        bad_bits("directions", d.directions, kDirections), bad_dtypes(d.dtypes),
        bad_bits("features", d.features, known_features()),
        bad_size("max_head_dim", d.max_head_dim),
        bad_size("head_dim_multiple", d.head_dim_multiple),
        bad_choice("empty_row", number_of(d.empty_row), ATTEST_ZERO_ZERO),
        bad_choice("past_length", number_of(d.past_length), ATTEST_PAST_NOT_WRITTEN),
        bad_bits("may_change", d.may_change, kMayChange), numerics_objection(d.numerics),
        missing_function(kernel)}) {
    if (!text.empty()) return text;
  }
  return limits_objection(d);
}

}  // namespace attest::certify::worker
