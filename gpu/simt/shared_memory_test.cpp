#include "gpu/simt/shared_memory.hpp"

#include <optional>

#include "core/testing/catch.hpp"

namespace attest::simt {
namespace {

using Access = SharedMemory::Access;

// Two warps of a block with 64 words.
class Checked {
 public:
  Checked() { memory_.begin(256, 1024, SharedChecks::on, 2); }

  std::optional<Fault> access(Access how, std::uint32_t lane, std::size_t word = 0) {
    Fault fault = Fault::deadlock;
    const std::string text = memory_.check(at(word), 4, how, lane, lane / 32, fault);
    if (text.empty()) return std::nullopt;
    return fault;
  }
  std::optional<Fault> read(std::uint32_t lane) { return access(Access::read, lane); }
  std::optional<Fault> write(std::uint32_t lane) { return access(Access::write, lane); }
  std::optional<Fault> add(std::uint32_t lane) { return access(Access::atomic, lane); }
  std::byte* at(std::size_t word) { return static_cast<std::byte*>(memory_.dynamic()) + 4 * word; }
  SharedMemory& memory() { return memory_; }

 private:
  SharedMemory memory_;
};

TEST_CASE("accesses of one lane are ordered", "[shared]") {
  Checked shared;
  for (int k = 0; k < 3; ++k) {
    CHECK_FALSE(shared.write(5));
    CHECK_FALSE(shared.read(5));
    CHECK_FALSE(shared.add(5));
  }
}

TEST_CASE("what nothing orders is a race", "[shared]") {
  for (const std::uint32_t other : {6U, 37U}) {  // of the same warp, of another
    INFO("lane " << other);
    Checked write_read, write_write, read_write, write_add, add_read;
    CHECK_FALSE(write_read.write(5));
    CHECK(write_read.read(other) == Fault::race);
    CHECK_FALSE(write_write.write(5));
    CHECK(write_write.write(other) == Fault::race);
    CHECK_FALSE(read_write.write(5));
    read_write.memory().block_barrier();
    CHECK_FALSE(read_write.read(5));
    CHECK(read_write.write(other) == Fault::race);
    CHECK_FALSE(write_add.write(5));
    CHECK(write_add.add(other) == Fault::race);
    CHECK_FALSE(add_read.add(5));
    CHECK(add_read.read(other) == Fault::race);
  }
}

TEST_CASE("atomic additions and reads do not race with one another", "[shared]") {
  Checked shared;
  CHECK_FALSE(shared.write(0));
  shared.memory().block_barrier();
  for (const std::uint32_t lane : {3U, 4U, 40U, 3U}) CHECK_FALSE(shared.add(lane));
  shared.memory().block_barrier();
  for (const std::uint32_t lane : {3U, 4U, 40U, 3U}) CHECK_FALSE(shared.read(lane));
}

TEST_CASE("a plain read and another lane's atomic addition race", "[shared]") {
  for (const std::uint32_t other : {6U, 37U}) {
    INFO("lane " << other);
    Checked shared;
    CHECK_FALSE(shared.write(5));
    shared.memory().block_barrier();
    CHECK_FALSE(shared.read(5));
    CHECK(shared.add(other) == Fault::race);
  }
}

TEST_CASE("a barrier of the warp orders its lanes only", "[shared]") {
  Checked shared;
  CHECK_FALSE(shared.write(5));
  shared.memory().warp_barrier(0);
  CHECK_FALSE(shared.read(6));
  CHECK(shared.read(40) == Fault::race);
  shared.memory().block_barrier();
  CHECK_FALSE(shared.read(40));
  shared.memory().warp_barrier(1);
  CHECK(shared.write(6) == Fault::race);  // lane 40's read is of another warp
  shared.memory().block_barrier();
  CHECK_FALSE(shared.write(40));
}

TEST_CASE("a write races with each of several readers", "[shared]") {
  for (const std::uint32_t writer : {5U, 6U, 7U}) {
    Checked shared;
    CHECK_FALSE(shared.write(0));
    shared.memory().block_barrier();
    CHECK_FALSE(shared.read(5));
    CHECK_FALSE(shared.read(6));
    CHECK(shared.write(writer) == Fault::race);
  }
  Checked ordered;
  CHECK_FALSE(ordered.write(0));
  ordered.memory().block_barrier();
  CHECK_FALSE(ordered.read(5));
  CHECK_FALSE(ordered.read(6));
  ordered.memory().warp_barrier(0);
  CHECK_FALSE(ordered.write(7));
}

// Also when the readers are kept apart from the last writer's own reading.
TEST_CASE("readers of several warps are all waited for", "[shared]") {
  for (const std::uint32_t writer : {5U, 40U, 70U}) {
    SharedMemory memory;
    memory.begin(256, 1024, SharedChecks::on, 3);
    Fault fault = Fault::deadlock;
    const auto check = [&](Access how, std::uint32_t lane) {
      return memory.check(memory.dynamic(), 4, how, lane, lane / 32, fault).empty();
    };
    CHECK(check(Access::write, 0));
    memory.block_barrier();
    CHECK(check(Access::read, 5));
    CHECK(check(Access::read, 40));
    memory.warp_barrier(0);
    memory.warp_barrier(1);
    CHECK_FALSE(check(Access::write, writer));
  }
}

TEST_CASE("words that nothing wrote and bytes beyond", "[shared]") {
  Checked shared;
  CHECK(shared.read(0) == Fault::uninitialised);
  CHECK_FALSE(shared.access(Access::write, 0, 63));
  CHECK(shared.access(Access::write, 0, 64) == Fault::out_of_bounds);
  Fault fault = Fault::deadlock;
  CHECK_THAT(shared.memory().check(shared.at(63), 8, Access::read, 3, 0, fault),
             Catch::Contains("lane 3 reads 8 bytes at shared offset 252 of 256"));
  // A variable of two bytes does not touch its neighbour.
  CHECK(shared.memory().check(shared.at(10), 2, Access::write, 1, 0, fault).empty());
  CHECK(shared.memory().check(shared.at(10) + 2, 2, Access::write, 2, 0, fault).empty());
  CHECK_FALSE(shared.memory().check(shared.at(10), 4, Access::read, 2, 0, fault).empty());
}

TEST_CASE("an asynchronous copy is not to be touched before its end", "[shared]") {
  Checked shared;
  Fault fault = Fault::deadlock;
  CHECK(shared.memory().begin_copy(shared.at(0), 16, 5, fault).empty());
  CHECK(shared.read(5) == Fault::async_pending);
  CHECK(shared.write(5) == Fault::async_pending);
  shared.memory().block_barrier();
  CHECK(shared.read(6) == Fault::async_pending);
  shared.memory().end_copy(shared.at(0), 16, 5, 0);
  CHECK_FALSE(shared.read(5));
  CHECK(shared.read(6) == Fault::race);  // the copy counts as lane 5's write
  CHECK_FALSE(shared.memory().begin_copy(shared.at(62), 16, 5, fault).empty());
  CHECK(fault == Fault::out_of_bounds);
}

TEST_CASE("a variable that is met later leaves an odd neighbour alone", "[shared]") {
  SharedMemory memory;
  memory.begin(0, 128, SharedChecks::on, 1);
  const char first = 0, second = 0;
  auto* const odd = static_cast<std::byte*>(memory.variable(&first, 3, 1));
  Fault fault = Fault::deadlock;
  CHECK(memory.check(odd, 3, Access::write, 0, 0, fault).empty());
  CHECK(memory.variable(&second, 4, 4) != nullptr);
  CHECK(memory.check(odd, 3, Access::read, 0, 0, fault).empty());
}

TEST_CASE("variables have their place by tag, aligned, within the limit", "[shared]") {
  SharedMemory memory;
  memory.begin(4, 128, SharedChecks::off, 1);
  const char first = 0, second = 0, third = 0;
  void* const a = memory.variable(&first, 4, 4);
  void* const b = memory.variable(&second, 8, 32);
  CHECK(memory.variable(&first, 4, 4) == a);
  CHECK(static_cast<std::byte*>(a) - static_cast<std::byte*>(memory.dynamic()) == 16);
  CHECK(static_cast<std::byte*>(b) - static_cast<std::byte*>(memory.dynamic()) == 32);
  CHECK(memory.used_bytes() == 40);
  CHECK(memory.variable(&third, 128, 4) == nullptr);
  CHECK(memory.contains(b));
  CHECK_FALSE(memory.contains(&first));
}

}  // namespace
}  // namespace attest::simt
