#include "gpu/ptx/testing/opcode_runner.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/dtype/dtype.hpp"
#include "core/error.hpp"
#include "gpu/ptx/execution/executor.hpp"
#include "gpu/ptx/testing/texts.hpp"
#include "gpu/ptx/text/parser.hpp"

namespace attest::ptx::testing {
namespace {

constexpr unsigned kThreads = 64;

std::string width_of(Type type) { return std::to_string(std::max(bits(type), 16U)); }

// Loads source k into %v<k>, or into %p<k> where it is a predicate.
std::string loaded(std::size_t k, Type type) {
  const std::string number = std::to_string(k);
  std::string text = "ld.param.u64 %a, [s" + number + "];\nadd.u64 %a, %a, %o;\n";
  if (type == Type::pred) {
    return text + "ld.global.b64 %t, [%a];\nsetp.ne.b64 %p" + number + ", %t, 0;\n";
  }
  return text + ".reg .b" + width_of(type) + " %v" + number + ";\nld.global.b" + width_of(type) +
         " %v" + number + ", [%a];\n";
}

std::string operand(std::size_t k, Type type) {
  return (type == Type::pred ? "%p" : "%v") + std::to_string(k);
}

}  // namespace

std::vector<std::uint64_t> results_of(const std::string& opcode, const std::vector<Type>& types,
                                      const std::vector<std::vector<std::uint64_t>>& operands,
                                      const std::string& last_operand, const Choices& choices) {
  const std::size_t sources = types.size() - 1, count = operands.at(0).size();
  std::string parameters = ".param .u64 out, .param .u32 n";
  std::string body =
      ".reg .b64 %a, %o, %t;\n.reg .b32 %i, %n, %b;\n.reg .pred %p<9>, %skip;\n"
      "mov.u32 %i, %tid.x;\nmov.u32 %b, %ctaid.x;\n"
      "mad.lo.u32 %i, %b, " +
      std::to_string(kThreads) +
      ", %i;\n"
      "ld.param.u32 %n, [n];\nsetp.ge.u32 %skip, %i, %n;\n@%skip ret;\n"
      "mul.wide.u32 %o, %i, 8;\n";
  std::string call = opcode + " ";
  const bool is_predicate = types[0] == Type::pred;
  call += is_predicate ? "%p8" : "%d";
  if (!is_predicate) body += ".reg .b" + width_of(types[0]) + " %d;\n";
  for (std::size_t k = 0; k < sources; ++k) {
    parameters += ", .param .u64 s" + std::to_string(k);
    body += loaded(k, types[k + 1]);
    call += ", " + operand(k, types[k + 1]);
  }
  if (!last_operand.empty()) call += ", " + last_operand;
  body += call + ";\n";
  body += is_predicate ? "selp.b64 %t, 1, 0, %p8;\n" : "";
  body += "ld.param.u64 %a, [out];\nadd.u64 %a, %a, %o;\n";
  body += is_predicate ? "st.global.b64 [%a], %t;\nret;"
                       : "st.global.b" + width_of(types[0]) + " [%a], %d;\nret;";

  const Program program = check(parse(kernel(parameters, body)));
  std::vector<std::uint64_t> results(count);
  simt::GlobalMemory memory;
  Parameters values(program);
  values.add(results.data()).add(static_cast<std::uint32_t>(count));
  memory.add("out", results.data(), static_cast<std::int64_t>(count));
  for (const auto& each : operands) {
    values.add(each.data());
    memory.add("source", each.data(), static_cast<std::int64_t>(count));
  }
  const simt::LaunchShape shape{{static_cast<unsigned>((count + kThreads - 1) / kThreads), 1, 1},
                                {kThreads, 1, 1}};
  const simt::LaunchReport report = execute(program, shape, {}, memory, values, choices);
  if (!report.clean()) throw InternalError(report.to_string());
  return results;
}

namespace {

void add_integers(std::vector<std::uint64_t>& values, std::uint32_t width) {
  const std::uint64_t all = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  const std::uint64_t top = std::uint64_t{1} << (width - 1);
  for (const std::uint64_t each :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{7}, std::uint64_t{31},
        std::uint64_t{width}, std::uint64_t{0x5A}, std::uint64_t{0x1234}, top - 1, top, top + 1,
        all - 6, all - 1, all, std::uint64_t{0x0123'4567'89AB'CDEF}, all / 3}) {
    values.push_back(each & all);
  }
}

void add_floats(std::vector<std::uint64_t>& values, Type type) {
  const double numbers[] = {0.0,
                            1.0,
                            1.5,
                            2.5,
                            3.0,
                            0.1,
                            0.3333333333333,
                            0.5,
                            1e-3,
                            7.25,
                            127.7,
                            255.5,
                            65504.0,
                            65520.0,
                            32768.5,
                            1e5,
                            1e10,
                            3e38,
                            2147483648.0,
                            4294967296.5,
                            0x1p63,
                            0x1p64,
                            0x1.fffffep127,
                            0x1p-24,
                            0x1p-25,
                            0x1.8p-25,
                            0x1p-126,
                            0x1.8p-130,
                            0x1p-149,
                            0x1p127,
                            0x1.000002p0,
                            0x1.004p0,
                            0x1.01p0,
                            0x1.002p0,
                            0x1.8p126};
  const auto add = [&](double number) {
    switch (type) {
      case Type::f16:
        return values.push_back(f16_from_float(static_cast<float>(number)));
      case Type::bf16:
        return values.push_back(bf16_from_float(static_cast<float>(number)));
      case Type::f32:
        return values.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(number)));
      default:
        return values.push_back(std::bit_cast<std::uint64_t>(number));
    }
  };
  for (const double number : numbers) {
    add(number);
    add(-number);
  }
  add(std::numeric_limits<double>::infinity());
  add(-std::numeric_limits<double>::infinity());
  add(std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

std::vector<std::uint64_t> edge_values(Type type) {
  std::vector<std::uint64_t> values;
  switch (info(type).type_class) {
    case TypeClass::predicate:
      return {0, 1};
    case TypeClass::floating:
      if (type == Type::f16x2 || type == Type::bf16x2) {
        const auto halves = edge_values(type == Type::f16x2 ? Type::f16 : Type::bf16);
        for (std::size_t k = 0; k < halves.size(); ++k) {
          values.push_back(halves[k] | halves[(7 * k + 3) % halves.size()] << 16);
        }
      } else {
        add_floats(values, type);
      }
      return values;
    default:
      add_integers(values, bits(type));
      return values;
  }
}

std::vector<std::vector<std::uint64_t>> edge_operands(const std::vector<Type>& sources) {
  std::vector<std::vector<std::uint64_t>> operands(sources.size());
  std::vector<std::vector<std::uint64_t>> values;
  std::size_t count = 1;
  for (const Type type : sources) {
    values.push_back(edge_values(type));
    count *= values.back().size();
  }
  constexpr std::size_t kMost = 1500;  // of more, every so many
  const std::size_t step = (count / kMost + 1) | 1;
  for (std::size_t k = 0; k < count; k += step) {
    std::size_t rest = k;
    for (std::size_t source = 0; source < sources.size(); ++source) {
      operands[source].push_back(values[source][rest % values[source].size()]);
      rest /= values[source].size();
    }
  }
  return operands;
}

}  // namespace attest::ptx::testing
