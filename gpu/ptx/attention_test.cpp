#include "gpu/ptx/testing/attention.hpp"

#include <tuple>

#include "core/testing/catch.hpp"

/// Flash attention as Triton compiled it; seeded_mistakes_test.cpp has what is broken in it.
namespace attest::ptx {
namespace {

using testing::Attention;
using testing::kDepth;
using testing::kSm80;
using testing::kSm90;

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
