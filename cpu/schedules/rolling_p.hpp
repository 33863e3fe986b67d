#pragma once

#include "cpu/schedules/backward_step.hpp"
#include "cpu/schedules/rolling_buffer.hpp"
#include "cpu/schedules/rolling_visits.hpp"

namespace attest::cpu {

/// P and dS are stored pair by pair, in three passes of a rolling buffer of queries: P from rows of
/// Q, dS from rows of dO, dQ; then dK and dV in two passes of a rolling buffer of keys. A row stays
/// with little beside it in each, so that as many stay as in no schedule that holds the rows of
/// more than one matrix: for bands and blocks of fewer than d rows and little more.
///
/// Cost:   letters as in cpu/schedules/rolling.hpp, v', w' of the passes of keys, z the visible
///         pairs: reads = ra (dk + 2 dv + 1) + (v - w)(2 dk + dv) + (v' - w')(dk + dv) + 4 z,
///         writes = q dk + k (dk + dv) + 2 z;
///         peak = max(bq (dk + 1) + bk dk + 1, bq (dv + 1) + bk dv + 2, ck dk + cq dk + 1,
///                    ck dv + cq dv + 1)  [cpu/schedules/backward_test]
/// Source: ours.
struct RollingP {
  using Head = BackwardHead;
  static constexpr const char* kName = "rolling_p";
  static constexpr const char* kSummary =
      "P and dS stored pair by pair, queries and then keys roll through fast memory";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once};
  static constexpr bool kNoSoftcap = true, kTradesTiles = true;
  static std::vector<Parameter<RollingP>> parameters() {
    return {{"bq", &RollingP::block_q, Extent::queries},
            {"bk", &RollingP::block_k, Extent::keys},
            {"ck", &RollingP::pass_k, Extent::keys},
            {"cq", &RollingP::pass_q, Extent::queries},
            dlse_parameter(&RollingP::dlse)};
  }
  std::int64_t block_q, block_k;  // of the passes where queries stay
  std::int64_t pass_k, pass_q;    // of those where keys do
  std::int64_t dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const auto P = machine.workspace(q, k, "P"), dS = machine.workspace(q, k, "dS");
    const RollingVisits of_keys = visits_of(head, Residents::queries);
    {
      RollingBuffer<ScoreQuery<M>> queries(of_keys.buffered(), q, &machine, &head, &of_keys);
      roll(machine, of_keys, head.K, queries,
           [&](const ScoreQuery<M>& row, io::Range query, io::Range key, const auto& K) {
             auto pair = machine.scratch(1, 1, "P");
             compute_scores(machine, pair, row.Q, K, head.rule, query, key);
             machine.compute(Probabilities{}, pair, row.LSE);
             machine.store(pair, P.block(query, key));
           });
    }
    {
      RollingBuffer<GradientQuery<M>> queries(of_keys.buffered(), q, &machine, &head, &of_keys,
                                              dlse);
      roll(machine, of_keys, head.V, queries,
           [&](const GradientQuery<M>& row, io::Range query, io::Range key, const auto& V) {
             auto pair = machine.scratch(1, 1, "dS");
             machine.compute(Fill{0}, pair);
             machine.compute(Product{Form::second_transposed}, pair, row.dO, V);
             {
               const auto word = machine.stream(P.block(query, key), "P");
               machine.compute(ScoreGradients{softmax_scale(head.rule)}, pair, word, row.D);
             }
             machine.store(pair, dS.block(query, key));
           });
    }
    add_queries(machine, of_keys, head, dS);
    const RollingVisits of_queries = visits_of(head, Residents::keys);
    add_keys(machine, of_queries, dS, head.Q, {head.dK, head.sums, head.dK_before});
    add_keys(machine, of_queries, P, head.dO, {head.dV, head.sums, head.dV_before});
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  RollingVisits visits_of(const BackwardHead& head, Residents residents) const {
    const bool queries = residents == Residents::queries;
    return {head.rule,
            {head.Q.rows(), head.K.rows()},
            residents,
            queries ? block_q : pass_k,
            queries ? block_k : pass_q};
  }

  // A query while its row of P is made.
  template <class M>
  struct ScoreQuery {
    ScoreQuery(M* to, const BackwardHead* of, const RollingVisits* who)
        : machine(*to),
          head(*of),
          visits(*who),
          Q(to->scratch(1, of->Q.columns(), "Q")),
          LSE(to->scratch(1, 1, "LSE")) {}

    void enter(io::Range query) {
      if (!visits.seen(query.begin)) return;
      machine.load_into(Q, head.Q.block(query));
      machine.load_into(LSE, head.LSE.block(query));
    }
    void leave() {}

    M& machine;
    const BackwardHead& head;
    const RollingVisits& visits;
    decltype(std::declval<M&>().scratch(1, 1, "")) Q, LSE;
  };

  // A query while its row of dS is made.
  template <class M>
  struct GradientQuery {
    GradientQuery(M* to, const BackwardHead* of, const RollingVisits* who, std::int64_t given)
        : machine(*to),
          head(*of),
          visits(*who),
          dlse(given),
          dO(to->scratch(1, of->V.columns(), "dO")),
          D(to->scratch(1, 1, "D")) {}

    void enter(io::Range query) {
      if (!visits.seen(query.begin)) return;
      machine.load_into(dO, head.dO.block(query));
      form_delta(machine, head, dlse, query, dO, D);
    }
    void leave() {}

    M& machine;
    const BackwardHead& head;
    const RollingVisits& visits;
    std::int64_t dlse;
    decltype(std::declval<M&>().scratch(1, 1, "")) dO, D;
  };

  // Where sums of rows go, and where they begin.
  struct Target {
    io::MutableSlowMatrix to;
    Sums sums = Sums::fresh;
    io::SlowMatrix before{};
  };

  // A row of dQ, dK or dV.
  template <class M>
  struct SumRow {
    SumRow(M* machine_of, const Target* target_of)
        : machine(*machine_of),
          target(*target_of),
          sum(machine_of->scratch(1, target_of->to.columns(), target_of->to.name())) {}

    void enter(io::Range entering) {
      row = entering;
      begin_sum(machine, sum, target.sums, target.before, row, all_columns(target.to));
    }
    void leave() { machine.store(sum, target.to.block(row)); }

    M& machine;
    const Target& target;
    io::Range row{};
    decltype(std::declval<M&>().scratch(1, 1, "")) sum;
  };

  // dQ = dS K.
  template <class M>
  static void add_queries(M& machine, const RollingVisits& visits, const BackwardHead& head,
                          const io::SlowMatrix& dS) {
    const Target target{head.dQ};
    RollingBuffer<SumRow<M>> queries(visits.buffered(), head.Q.rows(), &machine, &target);
    roll(machine, visits, head.K, queries,
         [&](SumRow<M>& row, io::Range query, io::Range key, const auto& K) {
           const auto word = machine.load(dS.block(query, key), "dS");
           machine.compute(Product{}, row.sum, word, K);
         });
  }

  // dK = dS^T Q and dV = P^T dO.
  template <class M>
  static void add_keys(M& machine, const RollingVisits& visits, const io::SlowMatrix& pairs,
                       const io::SlowMatrix& rows, const Target& target) {
    RollingBuffer<SumRow<M>> keys(visits.buffered(), target.to.rows(), &machine, &target);
    roll(machine, visits, rows, keys,
         [&](SumRow<M>& row, io::Range key, io::Range query, const auto& visitor) {
           const auto word = machine.load(pairs.block(query, key), pairs.name());
           machine.compute(Product{}, row.sum, word, visitor);
         });
  }

  // A visitor that waits.
  template <class M>
  struct WaitingRow {
    WaitingRow(M* machine, const io::SlowMatrix* matrix)
        : row(machine->scratch(1, matrix->columns(), matrix->name())) {}
    decltype(std::declval<M&>().scratch(1, 1, "")) row;
  };

  // body(resident, its row, the visitor's row, the visitor) for every pair; rows of `visitors`.
  template <class M, class Resident, class Body>
  static void roll(M& machine, const RollingVisits& visits, const io::SlowMatrix& visitors,
                   RollingBuffer<Resident>& residents, const Body& body) {
    HeldRows<WaitingRow<M>> waiting(visits.places(), &machine, &visitors);
    visits.for_each_step([&](const RollingVisits::Step& step) {
      residents.roll_to(step.resident);
      for (const RollingVisits::Run& run : step.runs) {
        machine.for_tiles(visits.alike(run), 1, [&](io::Range visitor) {
          const auto meet = [&](const auto& row) {
            machine.for_tiles(visits.met(visitor.begin, step.resident), 1, [&](io::Range met) {
              body(residents[met.begin], met, visitor, row);
            });
          };
          const std::int64_t place = run.place_of(visitor.begin);
          if (place == RollingVisits::kNowhere) {
            return meet(machine.load(visitors.block(visitor), visitors.name()));
          }
          if (!run.waited) machine.load_into(waiting[place].row, visitors.block(visitor));
          meet(waiting[place].row);
        });
      }
    });
    residents.finish();
  }

  // Words of a pass in which rows of `resident` words stay and rows of `columns` visit, with as
  // many words for a pair.
  static io::Traffic pass_cost(const HeadShape& s, const RollingVisits& visits,
                               const RollingVisits::Sums& sums, io::Words resident,
                               io::Words columns, io::Words pair);
};

}  // namespace attest::cpu
