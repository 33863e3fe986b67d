#include <algorithm>
#include <bit>

#include "core/dtype/dtype.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/definitions.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/opcode_runner.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// Atomic operations of each form: what they leave and what they return.
namespace attest::ptx {
namespace {

using testing::Call;
using testing::kernel;
using Bits = std::vector<std::uint64_t>;

Type half_of(Type type) {
  return type == Type::f16 || type == Type::f16x2 ? Type::f16 : Type::bf16;
}

bool has_nan(std::uint64_t value, Type type) {
  if (info(type).type_class != TypeClass::floating) return false;
  if (type == Type::f32 || type == Type::f64) return testing::is_nan(value, type);
  return testing::is_nan(value & 0xFFFF, half_of(type)) ||
         testing::is_nan(value >> 16, half_of(type));
}

// PTX ISA, atom: the new value of a place.
std::uint64_t defined(const Spelling& spelling, std::uint64_t there, std::uint64_t b,
                      std::uint64_t c) {
  const Type type = spelling.last_type();
  const std::uint64_t all =
      bits(type) == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits(type)) - 1;
  const auto x = testing::integer_of(there, type), y = testing::integer_of(b, type);
  if (spelling.has("add") && type == Type::f32) {
    const float sum = std::bit_cast<float>(static_cast<std::uint32_t>(there)) +
                      std::bit_cast<float>(static_cast<std::uint32_t>(b));
    return sum == sum ? std::bit_cast<std::uint32_t>(sum) : 0x7FFFFFFF;
  }
  if (spelling.has("add") && type == Type::f64) {
    return std::bit_cast<std::uint64_t>(std::bit_cast<double>(there) + std::bit_cast<double>(b));
  }
  if (spelling.has("noftz")) {  // rounding to float first changes nothing
    const Type half = half_of(type);
    std::uint64_t sums = 0;
    for (std::uint32_t shift = 0; shift < bits(type); shift += 16) {
      const auto sum = static_cast<float>(testing::value_of(there >> shift & 0xFFFF, half) +
                                          testing::value_of(b >> shift & 0xFFFF, half));
      const std::uint16_t number = half == Type::f16 ? f16_from_float(sum) : bf16_from_float(sum);
      const std::uint16_t found = sum == sum ? number : std::uint16_t{0x7FFF};
      sums |= std::uint64_t{found} << shift;
    }
    return sums;
  }
  if (spelling.has("add")) return static_cast<std::uint64_t>(x + y) & all;
  if (spelling.has("min")) return x < y ? there : b;
  if (spelling.has("max")) return x < y ? b : there;
  if (spelling.has("and")) return there & b;
  if (spelling.has("or")) return there | b;
  if (spelling.has("xor")) return (there | b) & ~(there & b);
  if (spelling.has("exch")) return b;
  if (spelling.has("inc")) return x >= y ? 0 : there + 1;
  if (spelling.has("dec")) return x == 0 || x > y ? b : there - 1;
  if (spelling.has("cas")) return there == b ? c : there;
  throw InternalError("no definition of " + std::string(spelling.form->pattern));
}

std::string replaced(std::string text, const std::string& part, const std::string& other) {
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += other.size()) {
    text.replace(at, part.size(), other);
  }
  return text;
}

struct Result {
  Bits places, returned;
};
// Each thread applies the instruction to a place of its own, in the space that the opcode says.
Result run(const std::string& opcode, const Spelling& spelling, const Bits& there, const Bits& b,
           const Bits& c) {
  const bool is_shared =
      spelling.has("shared") || spelling.has("shared::cta") || spelling.has("shared::cluster");
  const bool has_result = opcode[0] == 'a';
  const std::string width = std::to_string(bits(spelling.last_type()));
  Result result{there, Bits(there.size(), 0)};
  std::string body =
      ".shared .b64 s[32]; .reg .b64 %a<9>; .reg .bW %v<4>; .reg .b32 %r<5>;\n"
      "mov.u32 %r0, %tid.x; mul.wide.u32 %a0, %r0, 8;\n"
      "ld.param.u64 %a1, [places]; add.u64 %a1, %a1, %a0;\n"
      "ld.param.u64 %a2, [returned]; add.u64 %a2, %a2, %a0;\n"
      "ld.param.u64 %a3, [b]; add.u64 %a3, %a3, %a0; ld.global.bW %v0, [%a3];\n"
      "ld.param.u64 %a4, [c]; add.u64 %a4, %a4, %a0; ld.global.bW %v1, [%a4];\n"
      "mov.u64 %a5, s; add.u64 %a5, %a5, %a0; ld.global.b64 %a6, [%a1]; st.shared.b64 [%a5], "
      "%a6;\n";
  body += opcode + (has_result ? " %v2, [" : " [") + (is_shared ? "%a5]" : "%a1]") + ", %v0" +
          (spelling.has("cas") ? ", %v1;\n" : ";\n");
  body += is_shared ? "ld.shared.b64 %a6, [%a5]; st.global.b64 [%a1], %a6;\n" : "";
  body += has_result ? "st.global.bW [%a2], %v2; ret;" : "ret;";
  Call call(kernel(".param .u64 places, .param .u64 returned, .param .u64 b, .param .u64 c",
                   replaced(body, "bW", "b" + width)));
  call.buffer("places", result.places).buffer("returned", result.returned);
  call.input("b", b).input("c", c);
  CHECK(call.run(1, static_cast<unsigned>(there.size())).to_string() == "");
  return result;
}

TEST_CASE("atomic operations leave and return what they should", "[ptx]") {
  for (const Form& form : atomic_forms()) {
    const std::vector<std::string> all = spellings(form);
    constexpr std::size_t kEvery = 11;  // of spellings that differ in ordering, scope and space
    for (std::size_t k = 0; k < all.size(); k += kEvery) {
      const Spelling spelling = match(all[k], {}).front();
      if (spelling.has("v2") || spelling.has("v4")) continue;
      Bits values = testing::edge_values(spelling.last_type());
      // NaN has no bits of its own.
      std::erase_if(values,
                    [&](std::uint64_t each) { return has_nan(each, spelling.last_type()); });
      values.resize(std::min<std::size_t>(values.size(), 14));
      Bits there, b, c;
      for (std::size_t i = 0; i < 32; ++i) {
        there.push_back(values[i % values.size()]);
        b.push_back(values[(3 * i + i / 14) % values.size()]);
        c.push_back(values[(5 * i + 2) % values.size()]);
      }
      const Result result = run(all[k], spelling, there, b, c);
      for (std::size_t i = 0; i < there.size(); ++i) {
        INFO(all[k] << " of " << std::hex << there[i] << ", " << b[i] << ", " << c[i]);
        CHECK(result.places[i] == defined(spelling, there[i], b[i], c[i]));
        CHECK(result.returned[i] == (all[k][0] == 'a' ? there[i] : 0));
      }
    }
  }
}

TEST_CASE("vectors are added to element by element", "[ptx]") {
  for (const std::string count : {"2", "4"}) {
    const std::string vector = count == "2" ? "{%f0, %f1}" : "{%f0, %f1, %f2, %f3}";
    const auto number = static_cast<std::size_t>(count[0] - '0');
    for (const bool has_result : {true, false}) {
      std::vector<float> places{1, 2, 3, 4}, returned(4);
      Call call(kernel(
          ".param .u64 places, .param .u64 returned",
          ".reg .b64 %a<2>; .reg .f32 %f<4>; ld.param.u64 %a0, [places];\n"
          "mov.f32 %f0, 0f40A00000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n" +
              (has_result ? "atom.global.gpu.acq_rel.add.v" + count + ".f32 " + vector + ", "
                          : "red.global.add.v" + count + ".f32 ") +
              "[%a0], " + vector + ";\nld.param.u64 %a1, [returned]; st.global.v" + count +
              ".f32 [%a1], " + vector + "; ret;"));
      CHECK(call.buffer("places", places).buffer("returned", returned).run(1, 1).clean());
      for (std::size_t k = 0; k < 4; ++k) {
        const float before = static_cast<float>(k) + 1.0F;
        CHECK(places[k] == (k < number ? before + 5.0F : before));
        CHECK(returned[k] == (k >= number ? 0.0F : has_result ? before : 5.0F));
      }
    }
  }
}

TEST_CASE("the space, the scope and the ordering may stand in any order", "[ptx]") {
  const Form* const form = match("atom.acq_rel.gpu.global.add.f32", {}).front().form;
  for (const char* opcode : {"atom.global.gpu.acq_rel.add.f32", "atom.global.acq_rel.gpu.add.f32",
                             "atom.gpu.global.add.f32", "atom.add.f32"}) {
    CHECK(match(opcode, {}).front().form == form);
  }
  CHECK_THROWS_AS(match("atom.global.shared.add.f32", {}), InvalidProblem);
  CHECK_THROWS_AS(match("atom.gpu.sys.add.f32", {}), InvalidProblem);
}

TEST_CASE("an atomic operation and a plain one on one place are a race", "[ptx]") {
  std::vector<std::uint32_t> place(1, 0);
  const std::string add = "red.global.add.u32 [%a], 1; ";
  const auto faults = [&](const std::string& statements, unsigned blocks) {
    Call call(kernel(".param .u64 place",
                     ".reg .b64 %a; .reg .b32 %r; .reg .pred %p; ld.param.u64 %a, [place];\n" +
                         statements + "ret;"));
    return testing::faults(call.buffer("place", place).run(blocks, 32));
  };
  CHECK(faults(add, 3).empty());
  const std::string read = "ld.global.u32 %r, [%a]; ";
  CHECK_FALSE(faults(add + read + "setp.eq.u32 %p, %r, 7; @%p trap; ", 3).empty());
  CHECK(faults(add + read, 3).empty());  // the value goes unused
  CHECK_FALSE(faults("st.global.u32 [%a], 1; " + add, 1).empty());
}

}  // namespace
}  // namespace attest::ptx
