#include <algorithm>
#include <cmath>

#include "core/dtype.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "gpu/ptx/testing/launches.hpp"
#include "gpu/ptx/testing/texts.hpp"

/// A FlashAttention forward that Triton compiled for sm_80 (mma.sync, tiles of 32 queries) and for
/// sm_90 (wgmma, of 64): tiles of 16 keys, d = 16.
namespace attest::ptx {
namespace {

using testing::Call;

constexpr std::size_t kDepth = 16;
constexpr float kScale = 0.25F;

struct Compiled {
  const char* text;
  std::size_t queries;  // of a block
  unsigned threads;
  std::int64_t shared_bytes;
};
constexpr Compiled kSm80{"attention_triton", 32, 64, 2048},
    kSm90{"attention_triton_sm90", 64, 128, 4096};

std::vector<std::uint16_t> random_rows(std::uint64_t seed, std::size_t rows) {
  std::vector<std::uint16_t> values(rows * kDepth);
  for (std::size_t k = 0; k < values.size(); ++k) {
    values[k] = bf16_from_float(static_cast<float>(mix(seed, k) % 257) / 64.0F - 2.0F);
  }
  return values;
}

struct Attention {
  std::size_t queries, keys;
  std::vector<std::uint16_t> q = random_rows(1, queries), k = random_rows(2, keys),
                             v = random_rows(3, keys), o = random_rows(4, queries);
  std::vector<float> lse = std::vector<float>(queries, NAN);

  simt::LaunchReport run(const Compiled& compiled, const std::string& text, simt::Order order) {
    Call call(text);
    call.input("q", q).input("k", k).input("v", v).buffer("o", o).buffer("lse", lse);
    call.value(kScale).value(static_cast<std::uint32_t>(queries));
    call.value(static_cast<std::uint32_t>(keys)).value(std::uint64_t{0}).value(std::uint64_t{0});
    const auto blocks = static_cast<unsigned>(blocks_of(compiled));
    return call.run(blocks, compiled.threads, compiled.shared_bytes, order);
  }

  std::size_t blocks_of(const Compiled& compiled) const {
    return (queries + compiled.queries - 1) / compiled.queries;
  }

  // Errors of O and of LSE in units of what bf16's P and O, and float32's sums, may give.
  double worst_error() const {
    double worst = 0.0;
    const auto at = [](const std::vector<std::uint16_t>& rows, std::size_t row, std::size_t d) {
      return static_cast<double>(float_from_bf16(rows[row * kDepth + d]));
    };
    for (std::size_t i = 0; i < queries; ++i) {
      std::vector<double> weights(keys);
      double sum = 0.0;
      for (std::size_t j = 0; j < keys; ++j) {
        double score = 0.0;
        for (std::size_t d = 0; d < kDepth; ++d) score += at(q, i, d) * at(k, j, d);
        weights[j] = std::exp(score * static_cast<double>(kScale));
        sum += weights[j];
      }
      const double exact_lse = std::log(sum);
      const double lse_unit = unit_roundoff(DType::f32) * static_cast<double>(16 + keys);
      worst = std::fmax(worst, std::fabs(static_cast<double>(lse[i]) - exact_lse) /
                                   (lse_unit * (1.0 + std::fabs(exact_lse))));
      for (std::size_t d = 0; d < kDepth; ++d) {
        double exact = 0.0, magnitude = 0.0;
        for (std::size_t j = 0; j < keys; ++j) {
          exact += weights[j] / sum * at(v, j, d);
          magnitude += weights[j] / sum * std::fabs(at(v, j, d));
        }
        const double unit = 2.0 * unit_roundoff(DType::bf16) * (magnitude + std::fabs(exact));
        worst = std::fmax(worst, std::fabs(at(o, i, d) - exact) / unit);
      }
    }
    return worst;
  }
};

TEST_CASE("Triton's attention is right, its words equal the formula, nothing is found", "[ptx]") {
  for (const auto& [queries, keys, compiled] :
       {std::tuple{32U, 16U, kSm80}, std::tuple{70U, 45U, kSm80}, std::tuple{1U, 1U, kSm80},
        std::tuple{64U, 16U, kSm90}, std::tuple{70U, 45U, kSm90}, std::tuple{1U, 1U, kSm90}}) {
    for (const simt::Order order : testing::kOrders) {
      Attention attention{queries, keys};
      const auto report = attention.run(compiled, testing::text(compiled.text), order);
      INFO(compiled.text << ": " << queries << " queries, " << keys << " keys");
      CHECK(report.to_string() == "");
      CHECK(attention.worst_error() <= 1.0);
      const auto bytes = [](std::size_t rows) {
        return static_cast<std::int64_t>(rows * kDepth * 2);
      };
      const std::size_t blocks = attention.blocks_of(compiled);
      CHECK(report.traffic[0] == simt::GlobalTraffic{bytes(queries), 0});
      CHECK(report.traffic[1] == simt::GlobalTraffic{bytes(keys * blocks), 0});
      CHECK(report.traffic[2] == simt::GlobalTraffic{bytes(keys * blocks), 0});
      CHECK(report.traffic[3] == simt::GlobalTraffic{0, bytes(queries)});
      CHECK(report.traffic[4] == simt::GlobalTraffic{0, static_cast<std::int64_t>(4 * queries)});
    }
  }
}

// Removes each in turn; how many of them leave something to find.
std::size_t found_without(const Compiled& compiled, const std::string& removed) {
  const std::string text = testing::text(compiled.text);
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(removed, at)) != std::string::npos; ++at) {
    std::string broken = text;
    broken.replace(at, removed.size(), "");
    found += std::any_of(std::begin(testing::kOrders), std::end(testing::kOrders),
                         [&](simt::Order order) {
                           return !Attention{70, 45}.run(compiled, broken, order).clean();
                         })
                 ? 1
                 : 0;
  }
  return found;
}

// A wait and a barrier after the loop guard nothing: no copy is under way there, and the barrier
// after them stands before the next store.
TEST_CASE("barriers and waits that are removed from Triton's attention are found", "[ptx]") {
  CHECK(found_without(kSm80, "bar.sync \t0;") == 4);             // of 5
  CHECK(found_without(kSm80, "cp.async.wait_group \t0;") == 1);  // of 2
  CHECK(found_without(kSm80, "cp.async.commit_group;") > 0);
}

TEST_CASE("waits and fences that are removed from Triton's attention for sm_90 are found",
          "[ptx]") {
  CHECK(found_without(kSm90, "fence.proxy.async.shared::cta;") == 1);
  CHECK(found_without(kSm90, "wgmma.fence.sync.aligned;") == 2);
  CHECK(found_without(kSm90, "wgmma.commit_group.sync.aligned;") == 2);
  CHECK(found_without(kSm90, "wgmma.wait_group.sync.aligned 0;") == 2);
  CHECK(found_without(kSm90, "bar.sync \t0;") == 4);             // of 5
  CHECK(found_without(kSm90, "cp.async.wait_group \t0;") == 1);  // of 2
}

TEST_CASE("a wrong mask in Triton's attention shows", "[ptx]") {
  Attention attention{32, 13};
  std::string broken = testing::text(kSm80.text);
  const std::string masked = "0fFF800000, %p", unmasked = "0f00000000, %p";
  for (std::size_t at = 0; (at = broken.find(masked, at)) != std::string::npos;) {
    broken.replace(at, masked.size(), unmasked);
  }
  attention.run(kSm80, broken, simt::Order::ascending);
  CHECK_FALSE(attention.worst_error() <= 1.0);
}

}  // namespace
}  // namespace attest::ptx
