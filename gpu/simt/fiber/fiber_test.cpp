#include "gpu/simt/fiber/fiber.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"

namespace attest::simt {
namespace {

// State that the fibers of a test share: entries take no arguments.
struct Stage {
  Stage(std::size_t count, Fiber::Entry entry) : stacks(count) {
    for (std::size_t k = 0; k < count; ++k) {
      fibers.push_back(std::make_unique<Fiber>(stacks.lowest(k)));
      fibers.back()->restart(entry);
    }
  }

  Fiber thread;
  FiberStacks stacks;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::string said;
  std::size_t current = 0;
  double sum = 0;
};
Stage* stage = nullptr;

void back_to_thread() { Fiber::change(*stage->fibers[stage->current], stage->thread); }

void speak() {
  for (char letter = 'a';; ++letter) {
    stage->said += letter;
    stage->said += std::to_string(stage->current);
    back_to_thread();
  }
}

TEST_CASE("fibers go on where they were left", "[fiber]") {
  Stage here(3, speak);
  stage = &here;
  const auto enter = [&](std::size_t k) {
    here.current = k;
    Fiber::change(here.thread, *here.fibers[k]);
  };
  for (const std::size_t k : {0U, 1U, 0U, 2U, 1U, 0U}) enter(k);
  CHECK(here.said == "a0a1b0a2b1c0");
  here.said.clear();
  here.fibers[1]->restart(speak);
  for (const std::size_t k : {1U, 0U}) enter(k);
  CHECK(here.said == "a1d0");
}

// Values in registers that a call preserves, floating-point ones too, and an aligned vector.
void compute() {
  alignas(16) std::array<double, 8> values{};
  double a = 0.25, b = 0.5, c = 0.625;  // of logistic maps, which stay within 0 and 1
  CHECK(reinterpret_cast<std::uintptr_t>(values.data()) % 16 == 0);
  for (int step = 0; step < 100; ++step) {
    a = 3.5 * a * (1 - a);
    b = 3.75 * b * (1 - b);
    c = 3.875 * c * (1 - c);
    values[static_cast<std::size_t>(step) % values.size()] += a;
    back_to_thread();
  }
  stage->sum = a + b + c + values[0];
  for (;;) back_to_thread();
}

TEST_CASE("each fiber keeps its registers and its stack", "[fiber]") {
  std::vector<double> sums;
  for (const std::size_t count : {1U, 5U}) {
    Stage here(count, compute);
    stage = &here;
    for (int step = 0; step <= 100; ++step) {
      for (std::size_t k = 0; k < here.fibers.size(); ++k) {
        here.current = k;
        Fiber::change(here.thread, *here.fibers[k]);
      }
    }
    sums.push_back(here.sum);
  }
  CHECK(sums[0] != 0);
  CHECK(sums[0] == sums[1]);
}

void catch_own() {
  for (int k = 0;; ++k) {
    try {
      throw int{k};
    } catch (int caught) {
      stage->sum += caught;
    }
    back_to_thread();
  }
}

TEST_CASE("exceptions stay on the fiber that throws", "[fiber]") {
  Stage here(2, catch_own);
  stage = &here;
  for (int round = 0; round < 4; ++round) {
    for (std::size_t k = 0; k < 2; ++k) {
      here.current = k;
      Fiber::change(here.thread, *here.fibers[k]);
    }
  }
  CHECK(here.sum == 2 * (0 + 1 + 2 + 3));
}

void speak_once() {
  stage->said += "once ";
  Fiber::finish(*stage->fibers[stage->current], stage->thread);
}

TEST_CASE("a fiber that has finished may be restarted", "[fiber]") {
  Stage here(1, speak_once);
  stage = &here;
  for (int k = 0; k < 3; ++k) {
    here.fibers[0]->restart(speak_once);
    Fiber::change(here.thread, *here.fibers[0]);
  }
  CHECK(here.said == "once once once ");
}

// More than a process may have mappings for, were each page below a stack closed: as many blocks at
// a time as a large machine has threads, of as many lanes as a block may have.
TEST_CASE("stacks of many blocks", "[fiber]") {
  constexpr int kBlocks = 36;
  std::vector<std::unique_ptr<Stage>> stages;
  stages.reserve(kBlocks);
  for (int block = 0; block < kBlocks; ++block)
    stages.push_back(std::make_unique<Stage>(1024, speak));
  for (auto& each : stages) {
    stage = each.get();
    for (const std::size_t k : {std::size_t{0}, std::size_t{31}, std::size_t{1023}}) {
      stage->current = k;
      Fiber::change(stage->thread, *stage->fibers[k]);
    }
    CHECK(stage->said == "a0a31a1023");
  }
}

}  // namespace
}  // namespace attest::simt
