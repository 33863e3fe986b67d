#include "python/api/contract.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <span>

#include "core/contract/conventions.hpp"
#include "core/dtype/dtype.hpp"
#include "core/error.hpp"
#include "core/text/suggest.hpp"

namespace attest::python {
namespace {

[[noreturn]] void refuse(const std::string& field, const std::string& value,
                         const std::string& needed) {
  throw InvalidProblem("numerics: " + field + "=" + value + " must be " + needed);
}

template <class Number>
Number number(const std::string& field, const std::string& text, Number most) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value >= 0 && value <= most) return value;
  refuse(field, text,
         std::numeric_limits<Number>::is_integer ? "a whole number, 0 or more"
                                                 : "a number, 0 or more");
}

std::string listed(const std::vector<std::string>& words) {
  std::string text = "one of";
  for (const std::string& word : words) text += " " + word;
  return text;
}

// Returns the place of a value among those that the field knows.
std::int32_t place(const std::string& field, const std::string& value,
                   const std::vector<std::string>& known) {
  const auto found = std::find(known.begin(), known.end(), value);
  if (found == known.end()) refuse(field, value, listed(known) + did_you_mean(value, known));
  return static_cast<std::int32_t>(found - known.begin());
}

// Writes the value, as its text, to a field of the description.
using Write = void (*)(attest_description&, const std::string& field, const std::string& text);

template <auto Member>
void write_type(attest_description& d, const std::string& field, const std::string& text) {
  static const std::vector<std::string> types = [] {
    std::vector<std::string> names;
    for (const DTypeFacts& row : kDTypes) names.emplace_back(row.name);
    names.emplace_back("input");
    return names;
  }();
  const std::int32_t type = place(field, text, types);
  d.numerics.*Member =
      type == static_cast<std::int32_t>(kDTypes.size()) ? ATTEST_INPUT_DTYPE : 1 + type;
}

template <auto Member>
void write_flag(attest_description& d, const std::string& field, const std::string& text) {
  d.numerics.*Member = place(field, text, {"0", "1"});
}

template <auto Member>
void write_count(attest_description& d, const std::string& field, const std::string& text) {
  d.numerics.*Member = number(field, text, std::numeric_limits<std::int32_t>::max());
}

// A relative error of 1 leaves nothing of a value.
template <auto Member>
void write_roundoff(attest_description& d, const std::string& field, const std::string& text) {
  d.numerics.*Member = number(field, text, 1.0);
}

void write_accumulation(attest_description& d, const std::string& field, const std::string& text) {
  d.numerics.accumulation = static_cast<attest_accumulation>(
      place(field, text, {"nearest", "truncating", "fused_blocks"}));
}

void write_exp_ulps(attest_description& d, const std::string& field, const std::string& text) {
  constexpr double kMostUlps = 0x1p17;  // an exponential that is 1 % off
  d.numerics.exp_ulps = number(field, text, kMostUlps);
}

void write_lse_base(attest_description& d, const std::string& field, const std::string& text) {
  d.numerics.lse_base_two = place(field, text, {"e", "two"});
}

void write_empty_row(attest_description& d, const std::string& field, const std::string& text) {
  d.empty_row = static_cast<attest_empty_row>(
      place(field, text, {"zero_neg_inf", "zero_pos_inf", "nan", "zero_zero"}));
}

void write_past_length(attest_description& d, const std::string& field, const std::string& text) {
  d.past_length = static_cast<attest_past_length>(place(field, text, {"empty_row", "not_written"}));
}

struct Field {
  const char* name;
  Write write;
};

using N = attest_numerics;
constexpr std::array<Field, 26> kFields{
    {{"accumulation", write_accumulation},
     {"accumulator", write_type<&N::accumulator>},
     {"fused_block", write_count<&N::fused_block>},
     {"fused_fraction_bits", write_count<&N::fused_fraction_bits>},
     {"summation_depth", write_count<&N::summation_depth>},
     {"input_roundoff", write_roundoff<&N::input_roundoff>},
     {"operand_roundoff", write_roundoff<&N::operand_roundoff>},
     {"scaled_q_roundoff", write_roundoff<&N::scaled_q_roundoff>},
     {"p_cast", write_type<&N::p_cast>},
     {"p_normalized", write_flag<&N::p_normalized>},
     {"sum_after_cast", write_flag<&N::sum_after_cast>},
     {"flushes_p", write_flag<&N::flushes_p>},
     {"exp_ulps", write_exp_ulps},
     {"exp_zero_not_one", write_flag<&N::exp_zero_not_one>},
     {"lse_splits", write_count<&N::lse_splits>},
     {"lse_split_keys", write_count<&N::lse_split_keys>},
     {"gqa_partial", write_type<&N::gqa_partial>},
     {"gqa_accumulator", write_type<&N::gqa_accumulator>},
     {"dq_accumulator", write_type<&N::dq_accumulator>},
     {"dkv_accumulator", write_type<&N::dkv_accumulator>},
     {"dp_cast", write_type<&N::dp_cast>},
     {"score_cast", write_type<&N::score_cast>},
     {"delta_from_p", write_flag<&N::delta_from_p>},
     {"flushes_subnormals", write_flag<&N::flushes_subnormals>},
     {"lse_base", write_lse_base},
     {"nondeterministic", write_flag<&N::nondeterministic>}}};
constexpr std::array<Field, 2> kOfRows{
    {{"empty_row", write_empty_row}, {"past_length", write_past_length}}};

const Field& find_field(const std::string& name) {
  std::vector<std::string> names;
  for (const std::span<const Field> fields : {std::span<const Field>(kOfRows), {kFields}}) {
    for (const Field& field : fields) {
      if (name == field.name) return field;
      names.emplace_back(field.name);
    }
  }
  throw InvalidProblem("numerics: unknown field '" + name + "'" + did_you_mean(name, names) + " (" +
                       listed(names) + ")");
}

const Preset& find_preset(const std::string& name) {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) {
    if (name == preset.name) return preset;
    names.emplace_back(preset.name);
  }
  throw InvalidProblem("numerics: unknown preset '" + name + "'" + did_you_mean(name, names) +
                       " (" + listed(names) + ", or fields as in p_cast=bf16,exp_ulps=4)");
}

void write_fields(attest_description& d, std::string_view text) {
  while (!text.empty()) {
    const std::string item(text.substr(0, text.find(',')));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) {
      write_fields(d, find_preset(item).fields);
    } else {
      const Field& field = find_field(item.substr(0, equals));
      field.write(d, field.name, item.substr(equals + 1));
    }
  }
}

}  // namespace

const std::vector<Preset>& presets() {
  // Blocks of the A100, which cover the wider ones with more bits of H100 and B200, but not V100's
  // four products without an extra bit (docs/how-to/python.md).
  static const std::vector<Preset> known{
      {"f32", ""},
      {"p_cast_to_input", "p_cast=input"},
      {"tensor_core",
       "p_cast=input,accumulation=fused_blocks,fused_block=8,fused_fraction_bits=24"},
      {"autodiff", "p_cast=input,p_normalized=1,dp_cast=input,delta_from_p=1"},
      {"eager", "p_cast=input,p_normalized=1,dp_cast=input,score_cast=input,delta_from_p=1"},
      {"tf32",
       "operand_roundoff=0.0009765625,accumulation=fused_blocks,fused_block=4,"
       "fused_fraction_bits=24"}};
  return known;
}

attest_description parse_contract(std::string_view text) {
  attest_description description{};
  description.struct_size = sizeof description;
  description.numerics.struct_size = sizeof description.numerics;
  write_fields(description, text);
  return description;
}

attest_kernel under(const attest_kernel& kernel, const char* contract) {
  attest_kernel changed = kernel;
  if (contract == nullptr) return changed;
  const attest_description described = parse_contract(contract);
  changed.description.numerics = described.numerics;
  changed.description.empty_row = described.empty_row;
  changed.description.past_length = described.past_length;
  return changed;
}

}  // namespace attest::python
