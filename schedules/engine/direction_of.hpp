#pragma once

#include "io/schedule/schedule.hpp"
#include "schedules/dense/saved_forward.hpp"
#include "schedules/engine/heads.hpp"
#include "schedules/loss/loss.hpp"

/// How a direction calls a schedule on all heads.
namespace attest::schedules {

/// The arguments of a direction, its heads, and how a schedule runs on one of them.
template <class Head>
struct DirectionOf;

/// Tells whether a machine closes slow memory between loads and stores.
template <class M>
io::SlowGuard guard_of(M& machine) {
  if constexpr (requires { machine.backend().guard(); }) return machine.backend().guard();
  return io::SlowGuard::open;
}

template <>
struct DirectionOf<ForwardHead> {
  static constexpr attest::Direction kDirection = attest::Direction::forward;
  using Arguments = attest_forward_args;
  static ForwardHead head(const Arguments& args, HeadIndex index) {
    return forward_head(args, index);
  }
  /// Heads that are run one by one: of a batch entry, so many.
  static std::int64_t count(const attest_problem& problem) { return problem.num_heads_q; }

  template <class S>
  static io::Traffic cost(const S& schedule, const Arguments& args, HeadIndex index) {
    return schedule.cost(head(args, index));
  }

  template <class M, class S>
  static void run_head(M& machine, const S& schedule, const Arguments& args, HeadIndex index) {
    ForwardHead one = head(args, index);
    if (args.LSE == nullptr) one.LSE = machine.workspace(one.Q.rows(), 1, "LSE");
    schedule.run(machine, one);
  }
};

template <>
struct DirectionOf<BackwardHead> {
  static constexpr attest::Direction kDirection = attest::Direction::backward;
  using Arguments = attest_backward_args;
  static BackwardHead head(const Arguments& args, HeadIndex index) {
    return backward_head(args, index);
  }
  /// The query heads that share a K/V head are one after another.
  static std::int64_t count(const attest_problem& problem) { return problem.num_heads_kv; }

  template <class S>
  static io::Traffic cost(const S& schedule, const Arguments& args, HeadIndex index) {
    const attest_problem& problem = *args.problem;
    const std::int64_t group = problem.num_heads_q / problem.num_heads_kv;
    const Batch batch = batch_of(problem, index.batch);
    const auto matrix = [&](const char* name, std::int64_t columns) {
      return io::MutableSlowMatrix(name, batch.k_length, columns, DType::f32, nullptr, columns);
    };
    const Group sums{group, matrix("dK", problem.head_dim_qk), matrix("dV", problem.head_dim_v)};
    io::Traffic total = schedule.cost(sums.member(args, index, 0));
    if (group > 2) {  // those between the first and the last are alike
      total = then(total, times(group - 2, schedule.cost(sums.member(args, index, 1))));
    }
    return group == 1 ? total : then(total, schedule.cost(sums.member(args, index, group - 1)));
  }

  template <class M, class S>
  static void run_head(M& machine, const S& schedule, const Arguments& args, HeadIndex index) {
    const attest_problem& problem = *args.problem;
    Group sums{problem.num_heads_q / problem.num_heads_kv, {}, {}};
    if (sums.heads > 1) {
      const std::int64_t keys = batch_of(problem, index.batch).k_length;
      sums.dK = machine.workspace(keys, problem.head_dim_qk, "dK");
      sums.dV = machine.workspace(keys, problem.head_dim_v, "dV");
    }
    for (std::int64_t member = 0; member < sums.heads; ++member) {
      run_member(machine, schedule, args, {index.batch, index.head * sums.heads + member},
                 sums.member(args, index, member));
    }
  }

 private:
  /// The query heads of one K/V head, and where they leave dK and dV for each other.
  struct Group {
    std::int64_t heads;
    io::MutableSlowMatrix dK, dV;

    BackwardHead member(const Arguments& args, HeadIndex of, std::int64_t which) const {
      BackwardHead one = head(args, {of.batch, of.head * heads + which});
      if (which > 0) {
        one.sums = Sums::continued;
        one.dK_before = dK;
        one.dV_before = dV;
      }
      if (which < heads - 1) {
        one.dK = dK;
        one.dV = dV;
      }
      return one;
    }
  };

  template <class M, class S>
  static void run_member(M& machine, const S& schedule, const Arguments& args, HeadIndex index,
                         BackwardHead one) {
    if constexpr (requires { S::kReadsSaved; }) {
      if (args.Q != nullptr) {
        const SavedForward saved(args, index, guard_of(machine));
        saved.attach(one);
        return schedule.run(machine, one);
      }
    }
    schedule.run(machine, one);
  }
};

template <>
struct DirectionOf<LossHead> {
  static constexpr attest::Direction kDirection = attest::Direction::loss_gradient;
  using Arguments = attest_loss_args;
  static LossHead head(const Arguments& args, HeadIndex) { return loss_head(args); }
  static std::int64_t count(const attest_problem&) { return 1; }

  template <class S>
  static io::Traffic cost(const S& schedule, const Arguments& args, HeadIndex index) {
    return schedule.cost(head(args, index));
  }

  template <class M, class S>
  static void run_head(M& machine, const S& schedule, const Arguments& args, HeadIndex index) {
    schedule.run(machine, head(args, index));
  }
};

/// Throws InvalidProblem for what the schedule does not count.
template <class S>
void require_countable_by(const attest_problem& problem) {
  if constexpr (DirectionOf<typename S::Head>::kDirection == attest::Direction::loss_gradient) {
    require_countable_loss(problem);
  } else {
    require_countable(problem);
  }
  if constexpr (requires { S::kNoSoftcap; }) require_no_softcap(problem);
}

/// Runs a schedule on every head.
template <class M, class S>
void run_heads(M& machine, const S& schedule,
               const typename DirectionOf<typename S::Head>::Arguments& args) {
  using Direction = DirectionOf<typename S::Head>;
  for_each_head(machine, *args.problem, Direction::count(*args.problem),
                [&](HeadIndex index) { Direction::run_head(machine, schedule, args, index); });
}

/// The closed form over every head.
template <class S>
io::Traffic heads_cost(const S& schedule, const attest_problem& problem) {
  using Direction = DirectionOf<typename S::Head>;
  typename Direction::Arguments args{};
  args.problem = &problem;
  return sum_over_heads(problem, Direction::count(problem),
                        [&](HeadIndex index) { return Direction::cost(schedule, args, index); });
}

}  // namespace attest::schedules
