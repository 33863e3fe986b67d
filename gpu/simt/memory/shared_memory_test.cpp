#include "gpu/simt/memory/shared_memory.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "core/testing/catch.hpp"

namespace attest::simt {
namespace {

using Access = SharedMemory::Access;

std::optional<Fault> fault_of(const std::optional<Finding>& finding) {
  if (!finding) return std::nullopt;
  return finding->fault;
}

constexpr std::uint32_t kAllLanes = ~std::uint32_t{0};

// Two warps of a block with 64 words.
class Checked {
 public:
  Checked() { memory_.begin(256, 1024, SharedChecks::on, 2); }

  std::optional<Fault> access(Access how, std::uint32_t lane, std::size_t word = 0) {
    return fault_of(memory_.check(at(word), 4, how, lane));
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

TEST_CASE("writes of the value that is there are no race with one another", "[shared]") {
  Checked shared;
  CHECK_FALSE(shared.write(5));
  CHECK_FALSE(shared.access(Access::rewrite, 37));
  CHECK(shared.read(5) == Fault::race);  // with lane 37's
  CHECK(shared.read(37) == Fault::race);
  shared.memory().block_barrier();
  CHECK_FALSE(shared.read(5));
  CHECK(shared.access(Access::rewrite, 6) == Fault::race);  // with the read
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
    CHECK_FALSE(add_read.write(5));
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
  shared.memory().warp_barrier(0, kAllLanes);
  CHECK_FALSE(shared.read(6));
  CHECK(shared.read(40) == Fault::race);
  shared.memory().block_barrier();
  CHECK_FALSE(shared.read(40));
  shared.memory().warp_barrier(1, kAllLanes);
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
  ordered.memory().warp_barrier(0, kAllLanes);
  CHECK_FALSE(ordered.write(7));
}

// Also when the readers are kept apart from the last writer's own reading.
TEST_CASE("readers of several warps are all waited for", "[shared]") {
  for (const std::uint32_t writer : {5U, 40U, 70U}) {
    SharedMemory memory;
    memory.begin(256, 1024, SharedChecks::on, 3);
    const auto check = [&](Access how, std::uint32_t lane) {
      return !memory.check(memory.dynamic(), 4, how, lane).has_value();
    };
    CHECK(check(Access::write, 0));
    memory.block_barrier();
    CHECK(check(Access::read, 5));
    CHECK(check(Access::read, 40));
    memory.warp_barrier(0, kAllLanes);
    memory.warp_barrier(1, kAllLanes);
    CHECK_FALSE(check(Access::write, writer));
  }
}

// Lanes 5 and 7 wait for one another, 5 and 6 do not.
TEST_CASE("a barrier of some lanes orders those lanes only", "[shared]") {
  constexpr std::uint32_t kPair = 1U << 5 | 1U << 7;
  Checked shared;
  CHECK_FALSE(shared.write(5));
  shared.memory().warp_barrier(0, kPair);
  CHECK_FALSE(shared.read(7));
  CHECK(shared.read(6) == Fault::race);
  shared.memory().block_barrier();
  CHECK_FALSE(shared.read(6));
  shared.memory().warp_barrier(0, kPair);
  CHECK(shared.write(7) == Fault::race);
}

// Accesses of others that a lane has seen go on with it to its next barrier; later ones do not.
TEST_CASE("order is handed on by barriers of some lanes", "[shared]") {
  Checked shared;
  CHECK_FALSE(shared.write(1));
  shared.memory().warp_barrier(0, 0b0110);
  CHECK_FALSE(shared.access(Access::write, 1, 1));
  shared.memory().warp_barrier(0, 0b1100);
  CHECK_FALSE(shared.read(3));
  CHECK(shared.access(Access::read, 3, 1) == Fault::race);
  shared.memory().warp_barrier(0, 0b1010);
  CHECK_FALSE(shared.access(Access::read, 3, 1));
  CHECK(shared.access(Access::read, 2, 1) == Fault::race);
}

// Each reader has to come before the write, whenever it read.
TEST_CASE("readers at different times are kept apart", "[shared]") {
  for (const bool all : {true, false}) {
    Checked shared;
    CHECK_FALSE(shared.write(3));
    shared.memory().block_barrier();
    CHECK_FALSE(shared.read(1));
    shared.memory().warp_barrier(0, 0b1010);
    CHECK_FALSE(shared.read(2));
    if (all) shared.memory().warp_barrier(0, 0b1100);
    CHECK(shared.write(3) == (all ? std::nullopt : std::optional(Fault::race)));
  }
}

TEST_CASE("each of several atomic additions races with a plain access", "[shared]") {
  for (const std::uint32_t other : {6U, 37U}) {
    for (const Access plain : {Access::read, Access::write}) {
      Checked shared, ordered;
      for (Checked* each : {&shared, &ordered}) {
        CHECK_FALSE(each->write(0));
        each->memory().block_barrier();
        CHECK_FALSE(each->add(other));
        CHECK_FALSE(each->add(5));
      }
      CHECK(shared.access(plain, 5) == Fault::race);
      ordered.memory().block_barrier();
      CHECK_FALSE(ordered.access(plain, 5));
    }
  }
}

// The second lane's addition comes after the write, the third's does not.
TEST_CASE("an atomic addition does not hide the write before it", "[shared]") {
  Checked shared;
  CHECK_FALSE(shared.write(1));
  shared.memory().warp_barrier(0, 0b0110);
  CHECK_FALSE(shared.add(2));
  CHECK(shared.add(3) == Fault::race);
}

TEST_CASE("words that nothing wrote", "[shared]") {
  Checked shared;
  CHECK(shared.read(0) == Fault::uninitialised);
  CHECK(shared.access(Access::atomic, 0, 1) == Fault::uninitialised);
  CHECK_FALSE(shared.access(Access::exchange, 0, 2));  // takes what is there and does not use it
  CHECK_FALSE(shared.access(Access::read, 0, 2));
}

TEST_CASE("bytes of a word are told apart", "[shared]") {
  Checked shared;
  const auto check = [&](std::size_t byte, std::size_t bytes, Access how, std::uint32_t lane) {
    return fault_of(shared.memory().check(shared.at(10) + byte, bytes, how, lane));
  };
  for (const std::uint32_t lane : {0U, 1U, 2U}) CHECK_FALSE(check(lane, 1, Access::write, lane));
  CHECK(check(1, 1, Access::write, 5) == Fault::race);
  CHECK(check(0, 4, Access::read, 0) == Fault::race);
  shared.memory().block_barrier();
  CHECK(check(0, 4, Access::read, 0) == Fault::uninitialised);  // the last byte
  CHECK_FALSE(check(0, 3, Access::read, 0));
  // A word that was written as a whole, then in parts.
  CHECK_FALSE(shared.access(Access::write, 3, 20));
  CHECK(fault_of(shared.memory().check(shared.at(20) + 2, 2, Access::read, 4)) == Fault::race);
  CHECK_FALSE(fault_of(shared.memory().check(shared.at(20) + 2, 2, Access::read, 3)));
}

TEST_CASE("bytes beyond", "[shared]") {
  Checked shared;
  CHECK_FALSE(shared.access(Access::write, 0, 63));
  CHECK(shared.access(Access::write, 0, 64) == Fault::out_of_bounds);
  const auto finding = shared.memory().check(shared.at(63), 8, Access::read, 3);
  REQUIRE(finding);
  CHECK(finding->text ==
        "lane 3 reads 8 bytes at byte 252 of 'dynamic shared memory', which has 256");
  // Before it, and a megabyte to either side.
  for (const std::ptrdiff_t bytes :
       {std::ptrdiff_t{-4}, std::ptrdiff_t{-1} << 20, std::ptrdiff_t{1} << 20}) {
    CHECK(shared.memory().contains(shared.at(0) + bytes));
    CHECK(fault_of(shared.memory().check(shared.at(0) + bytes, 4, Access::write, 0)) ==
          Fault::out_of_bounds);
  }
}

TEST_CASE("beyond one variable is not the next", "[shared]") {
  SharedMemory memory;
  memory.begin(64, 4096, SharedChecks::on, 1);
  const char first = 0, second = 0;
  auto* const a = static_cast<std::byte*>(memory.variable(&first, "first", 1024, 4));
  auto* const b = static_cast<std::byte*>(memory.variable(&second, "second", 1024, 4));
  CHECK_FALSE(memory.check(a + 1020, 4, Access::write, 0));
  const auto finding = memory.check(a + 1024, 4, Access::write, 0);
  REQUIRE(finding);
  CHECK(finding->text == "lane 0 writes 4 bytes at byte 1024 of 'first', which has 1024");
  CHECK(fault_of(memory.check(b - 4, 4, Access::write, 0)) == Fault::out_of_bounds);
  CHECK(fault_of(memory.check(a - 4, 4, Access::write, 0)) == Fault::out_of_bounds);
  a[4096] = b[-4096] = std::byte{1};               // reported, but nobody's
  CHECK(memory.used_bytes() == 64 + 1024 + 1024);  // as on a device
}

// Without hooks, the program ends; in a process of its own.
TEST_CASE("closed pages lie around shared memory", "[shared]") {
  for (const std::ptrdiff_t miss :
       {std::ptrdiff_t{-1}, std::ptrdiff_t{256} << 10, std::ptrdiff_t{16} << 20}) {
    SharedMemory memory;
    memory.begin(256, 1024, SharedChecks::off, 1);
    auto* const byte = static_cast<volatile std::byte*>(memory.dynamic());
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      std::signal(SIGSEGV, SIG_DFL);
      byte[255] = std::byte{1};
      byte[miss] = std::byte{1};
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
  }
}

TEST_CASE("an asynchronous copy is not to be touched before its end", "[shared]") {
  Checked shared;
  CHECK_FALSE(shared.memory().begin_copy(shared.at(0), 16, 5));
  CHECK(shared.read(5) == Fault::async_pending);
  CHECK(shared.write(5) == Fault::async_pending);
  shared.memory().block_barrier();
  CHECK(shared.read(6) == Fault::async_pending);
  shared.memory().end_copy(shared.at(0), 16, 5);
  CHECK_FALSE(shared.read(5));
  CHECK(shared.read(6) == Fault::race);  // the copy counts as lane 5's write
  CHECK(fault_of(shared.memory().begin_copy(shared.at(62), 16, 5)) == Fault::out_of_bounds);
}

TEST_CASE("a variable that is met later leaves an odd neighbour alone", "[shared]") {
  SharedMemory memory;
  memory.begin(0, 128, SharedChecks::on, 1);
  const char first = 0, second = 0;
  auto* const odd = static_cast<std::byte*>(memory.variable(&first, "first", 3, 1));
  CHECK_FALSE(memory.check(odd, 3, Access::write, 0));
  CHECK(memory.variable(&second, "second", 4, 4) != nullptr);
  CHECK_FALSE(memory.check(odd, 3, Access::read, 0));
}

TEST_CASE("variables have their place by tag, aligned, within the limits", "[shared]") {
  SharedMemory memory;
  memory.begin(4, 128, SharedChecks::off, 1);
  const char first = 0, second = 0, third = 0;
  void* const a = memory.variable(&first, "first", 4, 4);
  void* const b = memory.variable(&second, "second", 8, 32);
  CHECK(memory.variable(&first, "first", 4, 4) == a);
  CHECK(static_cast<std::byte*>(a) - static_cast<std::byte*>(memory.dynamic()) == 16);
  CHECK(static_cast<std::byte*>(b) - static_cast<std::byte*>(memory.dynamic()) == 32);
  CHECK(memory.used_bytes() == 40);
  CHECK(memory.variable(&third, "third", 128, 4) == nullptr);
  CHECK(memory.contains(b));
  CHECK_FALSE(memory.contains(&first));
  memory.begin(100000, 200000, SharedChecks::off, 1);
  CHECK(memory.variable(&first, "first", SharedMemory::kMostStaticBytes - 16, 4) != nullptr);
  CHECK(memory.variable(&second, "second", 20, 4) == nullptr);
  CHECK(memory.taken() == "49136 of 49152 static ones are taken, 149136 of 200000 in all");
}

}  // namespace
}  // namespace attest::simt
