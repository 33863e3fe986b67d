#include "io/machine/meter.hpp"

#include "core/testing/catch.hpp"

namespace attest::io {
namespace {

TEST_CASE("a tile that does not fit is refused by name", "[io]") {
  Meter meter(FastMemory::of_words(200));
  meter.take("Q", 16, 8, 4);
  CHECK_THROWS_WITH(meter.take("O", 16, 8, 4), "tile 'O' needs 128 words, but 128 of 200 are live");
  CHECK_THROWS_AS(meter.take("O", 1, 73, 4), CapacityExceeded);
  CHECK_NOTHROW(meter.take("O", 1, 72, 4));
  CHECK(meter.traffic().peak == Amount{200, 800});
}

TEST_CASE("fast memory in bytes counts each tile at its own width", "[io]") {
  Meter meter(FastMemory::of_bytes(800));
  meter.take("Q", 16, 8, 2);  // 256 bytes
  meter.take("O", 16, 8, 4);  // 512 bytes
  CHECK_THROWS_WITH(meter.take("S", 3, 3, 4), "tile 'S' needs 36 bytes, but 768 of 800 are live");
  meter.take("S", 2, 4, 4);
  CHECK(meter.traffic().peak == Amount{264, 800});
}

TEST_CASE("capacity", "[io]") {
  CHECK_THROWS_WITH(FastMemory::of_words(0), "fast_words: 0 is no fast memory; give at least 1");
  CHECK_THROWS_AS(FastMemory::of_bytes(-1), InvalidProblem);
}

TEST_CASE("words and bytes read and written", "[io]") {
  Meter meter(FastMemory{});
  meter.read(10, 2);
  meter.write(3, 4);
  {
    const auto outer = meter.repeat(1000);
    meter.read(1, 4);
    const auto inner = meter.repeat(7);
    meter.write(1, 2);
  }
  meter.read(1, 8);
  CHECK(meter.traffic().reads == Amount{1011, 4028});
  CHECK(meter.traffic().writes == Amount{7003, 14012});
  CHECK(meter.traffic().peak == Amount{});
}

TEST_CASE("out of order", "[io]") {
  Meter meter(FastMemory{});
  const Meter::Piece first = meter.take("A", 2, 2, 4), second = meter.take("B", 1, 3, 4);
  meter.release(first);
  meter.release(second);
  CHECK_THROWS_AS(meter.traffic(), InternalError);
}

TEST_CASE("parallel blocks", "[io]") {
  Meter meter(FastMemory{});
  {
    const auto three = meter.repeat(3);
    const Meter::Block block(meter);
    meter.read(5, 4);
  }
  {
    const Meter::Block block(meter);
    meter.write(7, 4);
  }
  CHECK(meter.blocks().count == 4);
  CHECK(meter.blocks().busiest_words == 7);
  meter.take("Q", 1, 2, 4);
  CHECK_THROWS_WITH(Meter::Block(meter),
                    "a parallel block begins while 2 words are live; another block's fast memory "
                    "does not hold them");
}

}  // namespace
}  // namespace attest::io
