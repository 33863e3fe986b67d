#include <array>
#include <bit>
#include <cmath>

#include "core/dtype/dtype.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/texts.hpp"
#include "gpu/simt/testing/operand_layout.hpp"

/// Products of a warpgroup: each spelling against PTX ISA's tables, and the waits and fences that
/// they need.
namespace attest::ptx {
namespace {

using simt::Fault;
using simt::Major;
using simt::Swizzle;
using simt::testing::OperandLayout;
using testing::Call;
using testing::faults;
using testing::kernel;
using testing::with;
using Faults = std::vector<Fault>;

constexpr unsigned kLanes = 128;

// How one product is made: D = ±A B + D, or without "+ D".
struct Product {
  std::string type;
  std::size_t columns;
  Swizzle swizzle;  // of A; of B the next
  Major a_major = Major::k, b_major = Major::k;
  bool from_registers = false, adds = true;
  int a_scale = 1, b_scale = 1;
  std::string sums = "f32", b_type{};  // of D, and of B where it is another
  std::size_t shift = 0;               // of matrices from where their swizzle's pattern begins

  bool has_half_sums() const { return sums == "f16"; }
  std::string type_of_b() const { return b_type.empty() ? type : b_type; }
  std::size_t sum_registers() const { return columns / (has_half_sums() ? 4 : 2); }
  std::size_t element_bytes() const { return type == "tf32" ? 4 : type[0] == 'e' ? 1 : 2; }
  std::size_t depth() const { return 32 / element_bytes(); }
  OperandLayout a() const { return {swizzle, a_major, 64, element_bytes()}; }
  OperandLayout b() const {
    const auto next =
        shift != 0 ? swizzle : static_cast<Swizzle>((static_cast<unsigned>(swizzle) + 1) % 4);
    return {next, b_major, columns, element_bytes()};
  }
  std::size_t b_begin() const { return (a().bytes() + shift + 1023) / 1024 * 1024; }
  std::size_t bytes() const { return (b_begin() + b().bytes() + shift + 1023) / 1024 * 1024; }
};

std::uint32_t bits_of(const std::string& type, float value) {
  if (type == "tf32") return std::bit_cast<std::uint32_t>(value) | 0x155U;  // ignored bits
  if (type == "bf16") return bf16_from_float(value);
  const std::uint32_t half = f16_from_float(value);
  if (type == "f16") return half;
  // The upper half of an f16; of e4m3 the exponent's bias is 8 less, and the mantissa has one more.
  if (type == "e5m2") return half >> 8;
  const std::uint32_t sign = half >> 8 & 0x80U, magnitude = half & 0x7FFFU;
  return value == 0.0F ? sign : sign | (magnitude - (8U << 10)) >> 7;
}

// Whole numbers so small that every order of the sums gives the same bits.
float number(std::uint64_t seed, std::size_t row, std::size_t column) {
  constexpr std::array kNumbers{0.0F, 1.0F, 2.0F,  3.0F, 4.0F,
                                6.0F, 8.0F, 12.0F, 16.0F};  // in 8 bits
  const std::uint64_t drawn = mix(seed, 512 * row + column);
  return kNumbers[drawn % kNumbers.size()] * ((drawn >> 32 & 1U) != 0 ? -1.0F : 1.0F);
}

// The k-th accumulator of a lane: PTX ISA, wgmma.mma_async, D.
std::size_t place_in_d(std::size_t lane, std::size_t k, std::size_t columns) {
  const std::size_t row = 16 * (lane / 32) + lane % 32 / 4 + (k % 4 < 2 ? 0 : 8);
  return row * columns + k / 4 * 8 + lane % 4 * 2 + k % 2;
}

std::string listed(const std::string& name, std::size_t count) {
  std::string text = "{";
  for (std::size_t k = 0; k < count; ++k) text += (k == 0 ? "%" : ", %") + name + std::to_string(k);
  return text + "}";
}

// Copies `image` to shared memory, loads D and fragments, then multiplies and stores D.
std::string program(const Product& product, const std::string& operands) {
  const std::size_t count = product.sum_registers();
  const std::string word = product.has_half_sums() ? "b32" : "f32";
  std::string text =
      ".shared .align 1024 .b8 s[" + std::to_string(product.bytes()) +
      "];\n.reg .b64 %a<9>, %b<2>; "
      ".reg .b32 %r<9>, %f<4>; .reg ." +
      word + " %d<" + std::to_string(count) +
      ">; .reg .pred %p<2>;\n"
      "mov.u32 %r0, %tid.x; ld.param.u64 %a0, [image]; mov.u32 %r1, s; shl.b32 %r2, %r0, 2;\n"
      "ld.param.u64 %b0, [a]; ld.param.u64 %b1, [b]; setp.ge.u32 %p1, %r0, 0;\n"
      "cvt.u64.u32 %a1, %r2; add.u64 %a0, %a0, %a1; add.u32 %r1, %r1, %r2; mov.u32 %r3, 0;\n"
      "copy: ld.global.b32 %r4, [%a0]; st.shared.b32 [%r1], %r4; add.u64 %a0, %a0, 512;\n"
      "add.u32 %r1, %r1, 512; add.u32 %r3, %r3, 512; setp.lt.u32 %p0, %r3, " +
      std::to_string(product.bytes()) +
      ";\n@%p0 bra copy; fence.proxy.async.shared::cta; bar.sync 0;\n"
      "ld.param.u64 %a2, [fragments]; mul.wide.u32 %a3, %r0, 16; add.u64 %a2, %a2, %a3;\n"
      "ld.global.v4.b32 {%f0, %f1, %f2, %f3}, [%a2];\n"
      "ld.param.u64 %a4, [d]; mul.wide.u32 %a5, %r0, " +
      std::to_string(4 * count) + "; add.u64 %a4, %a4, %a5;\n";
  const auto each = [&](const std::string& begin, const std::string& middle,
                        const std::string& end) {
    for (std::size_t k = 0; k < count; ++k) {
      text += begin + std::to_string(k) + middle + std::to_string(4 * k) + end;
    }
  };
  each("ld.global." + word + " %d", ", [%a4+", "];\n");
  text += "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n" +
          std::to_string(product.columns) + "k" + std::to_string(product.depth()) + "." +
          product.sums + "." + product.type + "." + product.type_of_b() + " " + listed("d", count) +
          ", " + (product.from_registers ? listed("f", 4) : "%b0") + ", %b1, " + operands +
          ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  for (std::size_t k = 0; k < count; ++k) {
    text += "st.global." + word + " [%a4+" + std::to_string(4 * k) + "], %d" + std::to_string(k) +
            ";\n";
  }
  return kernel(
      ".param .u64 image, .param .u64 a, .param .u64 b, .param .u64 fragments, "
      ".param .u64 d",
      text + "ret;");
}

std::string flags(const Product& product) {
  std::string text = std::string(product.adds ? "%p1" : "0") + ", " +
                     std::to_string(product.a_scale) + ", " + std::to_string(product.b_scale);
  if (product.element_bytes() != 2) return text;
  if (!product.from_registers) text += product.a_major == Major::k ? ", 0" : ", 1";
  return text + (product.b_major == Major::k ? ", 0" : ", 1");
}

struct Operands {
  std::vector<std::byte> image;
  std::vector<std::uint32_t> fragments = std::vector<std::uint32_t>(4 * kLanes);
  std::vector<std::uint32_t> d;
};

Operands operands_of(const Product& product) {
  Operands made;
  made.image.resize(product.bytes());
  const auto put = [&](std::size_t begin, const OperandLayout& layout, std::uint64_t seed,
                       const std::string& type) {
    for (std::size_t row = 0; row < layout.rows; ++row) {
      for (std::size_t k = 0; k < layout.depth(); ++k) {
        const std::uint32_t bits = bits_of(type, number(seed, row, k));
        std::size_t place = begin + layout.place(row, k);
        if (product.shift != 0) {  // rows of 128 bytes, whose pieces go by their addresses
          place = begin + product.shift + row * 128 + k * layout.element_bytes;
          place ^= (place >> 7 & 7U) << 4;
        }
        std::memcpy(&made.image[place], &bits, layout.element_bytes);
      }
    }
  };
  put(0, product.a(), 1, product.type);
  put(product.b_begin(), product.b(), 2, product.type_of_b());
  const std::size_t parts = 4 / product.element_bytes();
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for (std::size_t i = 0; i < 4 * parts; ++i) {
      const std::size_t row = 16 * (lane / 32) + lane % 32 / 4 + i / parts % 2 * 8;
      const std::size_t k = lane % 4 * parts + i % parts + i / (2 * parts) * 4 * parts;
      made.fragments[4 * lane + i / parts] |= bits_of(product.type, number(1, row, k))
                                              << 32 / parts * (i % parts);
    }
    const auto d = [&](std::size_t k) {
      return number(3, 0, place_in_d(lane, k, product.columns));
    };
    for (std::size_t k = 0; k < product.sum_registers(); ++k) {
      made.d.push_back(product.has_half_sums()
                           ? bits_of("f16", d(2 * k)) | bits_of("f16", d(2 * k + 1)) << 16
                           : std::bit_cast<std::uint32_t>(d(k)));
    }
  }
  return made;
}

void check_product(const Product& product) {
  Operands data = operands_of(product);
  const auto descriptor = [](std::size_t begin, const OperandLayout& layout) {
    return simt::encode(
        {static_cast<std::uint32_t>(begin), layout.leading(), layout.stride(), layout.swizzle, 0});
  };
  const std::string text = program(product, flags(product));
  Call call(text);
  call.input("image", data.image).value(descriptor(product.shift, product.a()));
  call.value(descriptor(product.b_begin() + product.shift, product.b()));
  call.input("fragments", data.fragments).buffer("d", data.d);
  INFO(product.type << " " << product.columns << " columns, swizzle "
                    << static_cast<int>(product.swizzle) << ", A from registers "
                    << product.from_registers);
  CHECK(call.run(1, kLanes).to_string() == "");
  std::size_t wrong = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for (std::size_t i = 0; i < product.columns / 2; ++i) {
      const std::size_t place = place_in_d(lane, i, product.columns);
      const std::size_t row = place / product.columns, column = place % product.columns;
      float sum = 0.0F;
      for (std::size_t k = 0; k < product.depth(); ++k) {
        sum += number(1, row, k) * number(2, column, k);
      }
      sum = sum * static_cast<float>(product.a_scale * product.b_scale) +
            (product.adds ? number(3, 0, place) : 0.0F);
      const std::size_t at = product.has_half_sums() ? i / 2 : i;
      const std::uint32_t word = data.d[lane * product.sum_registers() + at];
      if (product.has_half_sums()) {
        wrong += (word >> 16 * (i % 2) & 0xFFFFU) == f16_from_float(sum) ? 0 : 1;
      } else {
        wrong += std::bit_cast<float>(word) == sum ? 0 : 1;
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("each spelling of wgmma is the product of its matrices", "[ptx]") {
  for (const std::string type : {"f16", "bf16", "tf32"}) {
    for (std::size_t columns = 8; columns <= 256; columns += 8) {
      const bool is_odd = columns % 16 != 0;
      check_product({type, columns, static_cast<Swizzle>(columns / 8 % 4), Major::k, Major::k,
                     is_odd, columns % 24 != 0});
    }
  }
}

TEST_CASE("wgmma sums in f16, and multiplies factors of 8 bits", "[ptx]") {
  for (const bool from_registers : {false, true}) {
    for (const std::string sums : {"f16", "f32"}) {
      for (const std::size_t columns : {8U, 64U, 200U}) {
        const auto swizzle = static_cast<Swizzle>(columns / 8 % 4);
        for (const auto& [a, b] : {std::pair{"f16", "f16"}, std::pair{"e4m3", "e4m3"},
                                   std::pair{"e4m3", "e5m2"}, std::pair{"e5m2", "e4m3"}}) {
          Product product{a, columns, swizzle, Major::k, Major::k, from_registers};
          product.b_type = b;
          product.sums = sums;
          check_product(product);
        }
      }
    }
  }
}

TEST_CASE("wgmma reads its operands in every layout", "[ptx]") {
  for (const Swizzle swizzle :
       {Swizzle::none, Swizzle::bytes_32, Swizzle::bytes_64, Swizzle::bytes_128}) {
    for (const bool from_registers : {false, true}) {
      for (const Major a : {Major::k, Major::rows}) {
        for (const Major b : {Major::k, Major::rows}) {
          check_product({"f16", 64, swizzle, from_registers ? Major::k : a, b, from_registers});
        }
      }
      check_product({"tf32", 64, swizzle, Major::k, Major::k, from_registers});
    }
  }
}

TEST_CASE("a matrix may begin amid its swizzle's pattern", "[ptx]") {
  for (const std::size_t shift : {128U, 512U, 640U}) {
    Product product{"bf16", 64, Swizzle::bytes_128};
    product.shift = shift;
    check_product(product);
  }
}

TEST_CASE("wgmma's scales are signs", "[ptx]") {
  for (const int a : {1, -1}) {
    for (const int b : {1, -1}) {
      check_product({"bf16", 16, Swizzle::none, Major::k, Major::k, a == b, true, a, b});
    }
  }
}

TEST_CASE("constants that wgmma does not have are refused", "[ptx]") {
  const Product product{"bf16", 8, Swizzle::none};
  for (const std::string constants : {"%p1, 2, 1, 0, 0", "%p1, 1, 0, 0, 0", "%p1, 1, 1, 2, 0"}) {
    CHECK_THROWS_WITH(Call(program(product, constants)),
                      Catch::Matchers::Contains("with these operands is not carried out"));
  }
  CHECK_THROWS_WITH(Call(program(product, "%p1, 1, 1, 0")), Catch::Matchers::Contains("operands"));
  CHECK_THROWS_WITH(Call(program({"bf16", 128, Swizzle::none}, "!%p1, 1, 1, 0, 0")),
                    Catch::Matchers::Contains("'!'"));
}

// A product that is right, of which each case breaks one part.
simt::LaunchReport run(const std::string& text, unsigned threads = kLanes,
                       simt::Order order = simt::Order::ascending) {
  const Product product{"bf16", 16, Swizzle::none, Major::k, Major::k, true};
  Operands data = operands_of(product);
  Call call(text);
  call.input("image", data.image).value(std::uint64_t{0});
  call.value(simt::encode({static_cast<std::uint32_t>(product.b_begin()), product.b().leading(),
                           product.b().stride(), product.b().swizzle, 0}));
  call.input("fragments", data.fragments).buffer("d", data.d);
  return call.run(1, threads, 0, order);
}
const std::string& right() {
  static const std::string text =
      program({"bf16", 16, Swizzle::none, Major::k, Major::k, true}, "%p1, 1, 1, 0");
  return text;
}
const std::string kFence = "wgmma.fence.sync.aligned;\n",
                  kCommit = "wgmma.commit_group.sync.aligned;\n",
                  kWait = "wgmma.wait_group.sync.aligned 0;\n";

TEST_CASE("waits and fences that are removed from a product are found", "[ptx]") {
  for (const simt::Order order : testing::kOrders) {
    CHECK(run(right(), kLanes, order).clean());
    const auto found = [&](const std::string& part, const std::string& other) {
      return faults(run(with(right(), part, other), kLanes, order));
    };
    CHECK(found(kFence, "") == Faults{Fault::missing_fence});
    CHECK(found("fence.proxy.async.shared::cta;", "") == Faults{Fault::missing_fence});
    // Uses of each register under way, and the end of the block.
    CHECK(found(kWait, "").front() == Fault::async_pending);
    CHECK(found(kCommit, "").front() == Fault::async_pending);
    CHECK(found(kWait, "wgmma.wait_group.sync.aligned 1;\n").front() == Fault::async_pending);
    CHECK(found("bar.sync 0;", "") == Faults{Fault::race});
  }
}

TEST_CASE("registers of a product are left alone from its fence to its wait", "[ptx]") {
  const auto found = [](const std::string& part, const std::string& other) {
    return faults(run(with(right(), part, other)));
  };
  CHECK(found(kFence, kFence + "add.f32 %d3, %d3, %d3;\n") == Faults{Fault::missing_fence});
  CHECK(found(kFence, kFence + "xor.b32 %f1, %f1, 1;\n") == Faults{Fault::missing_fence});
  CHECK(found(kFence, kFence + "xor.b32 %r5, %r4, 1;\n").empty());
  CHECK(found(kFence, kFence + "mov.b32 %f1, %r4;\n").empty());
  CHECK(found(kCommit, "xor.b32 %r5, %f1, 1;\n" + kCommit) == Faults{Fault::async_pending});
  CHECK(found(kCommit, "mov.b32 %f1, %r4;\n" + kCommit) == Faults{Fault::async_pending});
  CHECK(found(kCommit, kCommit + "st.shared.b32 [s+2048], %r4;\n") ==
        Faults{Fault::async_pending});  // B, of which it is the first word
  // Another product with some of its registers.
  const std::string wgmma = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 ";
  CHECK(found(kCommit, wgmma + "{%d1, %d2, %d3, %d4}, %b0, %b1, 1, 1, 1, 0, 0;\n" + kCommit) ==
        Faults{Fault::async_pending});
}

TEST_CASE("a product needs its whole warpgroup at one place", "[ptx]") {
  CHECK(faults(run(right(), 96)) == Faults{Fault::exited_lane});
  // The branch passes the product by: for one lane, or for one warp.
  const auto without = [](const std::string& condition) {
    const std::string text = with(right(), kFence, condition + "@%p0 bra past;\n" + kFence);
    return faults(run(with(text, kWait, kWait + "past:\n")));
  };
  CHECK(without("setp.eq.u32 %p0, %r0, 70;\n") == Faults{Fault::divergence});
  CHECK(without("setp.ge.u32 %p0, %r0, 96;\n") == Faults{Fault::exited_lane});
}

TEST_CASE("a warpgroup gives one descriptor", "[ptx]") {
  const std::string text =
      with(right(), kFence, "cvt.u64.u32 %a6, %r0; add.u64 %b1, %b1, %a6;\n" + kFence);
  CHECK(faults(run(text)) == Faults{Fault::divergence});
}

TEST_CASE("an operand must lie in shared memory", "[ptx]") {
  const std::string text = with(right(), kFence, "add.u64 %b1, %b1, 4096;\n" + kFence);
  CHECK(faults(run(text)) == Faults{Fault::out_of_bounds});
}

}  // namespace
}  // namespace attest::ptx
