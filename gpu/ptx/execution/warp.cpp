#include "gpu/ptx/execution/warp.hpp"

#include <algorithm>
#include <limits>

#include "gpu/ptx/execution/block_run.hpp"
#include "gpu/ptx/execution/special_registers.hpp"

namespace attest::ptx {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

}  // namespace

void Warp::begin(BlockRun& block, std::uint32_t number, std::uint32_t lanes) {
  block_ = &block;
  number_ = number;
  live_ = lanes;
  carries_ = 0;
  group_ = {0, lanes};
  others_.clear();
  stop_ = kNever;
  state_ = lanes == 0 ? State::ended : State::running;
  registers_ = block.program().registers;
  late_values_.begin(block.follows_late_values(), registers_.size());
  for (const Program::SpecialSlot& each : block.program().specials) {
    auto& values = at<std::uint32_t>(each.slot);
    for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
      values[lane] = special_value(each.special, block.place(number, lane));
    }
  }
}

void Warp::run() {
  const Instruction* const code = block_->program().code.data();
  while (state_ == State::running) {
    if (group_.pc >= stop_ || group_.lanes == 0) next_group();
    const Instruction& in = code[group_.pc++];
    mask_ = group_.lanes;
    if (in.has_predicate) {
      const std::uint32_t bits = predicate_at(in.predicate);
      mask_ &= in.is_predicate_negated ? ~bits : bits;
    }
    if (!block_->count_instruction()) return block_->give_up_endless(in);
    if (late_values_.is_on()) {
      execute_followed(in);
    } else if (mask_ != 0) {
      in.execute(*this, in);
    }
  }
  if (state_ == State::yielding) state_ = State::running;
}

// With a look at values that were read late, and at what is done with them.
void Warp::execute_followed(const Instruction& in) {
  if (late_values_.pass_on(*this, in)) block_->note_late_matters();
  if (mask_ == 0) return;
  in.execute(*this, in);
  const std::uint32_t lanes = block_->take_late_lanes();
  if (lanes == 0) return;
  late_values_.add(in, lanes);
  if (in.results == 0) block_->note_late_matters();
}

void Warp::note_others() {
  stop_ = kNever;
  for (const Group& each : others_) stop_ = std::min(stop_, each.pc);
}

void Warp::next_group() {
  if (group_.lanes != 0) others_.push_back(group_);
  group_ = {stop_, 0};
  for (const Group& each : others_) group_.lanes |= each.pc == stop_ ? each.lanes : 0;
  std::erase_if(others_, [this](const Group& each) { return each.pc == group_.pc; });
  note_others();
}

void Warp::branch(std::size_t target) {
  if ((group_.lanes & ~mask_) == 0) {
    group_ = {target, mask_};
    return;
  }
  branch(target, mask_);
}

void Warp::branch(std::size_t target, std::uint32_t lanes) {
  group_.lanes &= ~lanes;
  others_.push_back({target, lanes});
  stop_ = std::min(stop_, target);
}

void Warp::exit() {
  live_ &= ~mask_;
  group_.lanes &= ~mask_;
  if (group_.lanes == 0 && others_.empty()) state_ = State::ended;
}

}  // namespace attest::ptx
