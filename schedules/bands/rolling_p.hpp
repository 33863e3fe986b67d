#pragma once

#include "schedules/engine/backward_step.hpp"
#include "schedules/engine/rolling_buffer.hpp"
#include "schedules/walks/resident_order.hpp"

namespace attest::schedules {

/// P and dS are stored pair by pair, in four passes: P while rows of Q roll and keys visit; dS and
/// dV while rows of V and dV roll and rows of dO visit; dQ while its rows roll; dK while its rows
/// do. A row stays with little beside it in each, so that as many stay as in no schedule that holds
/// the rows of more matrices: for bands and blocks of fewer than d rows and little more.
///
/// Cost:   letters as in schedules/bands/rolling_queries.hpp, v', w' of the pass of dK, v'', w'' of
///         that of dV, z the visible pairs: reads = ra (dk + dv + 1) + 2 (v - w) dk + kc dv
///         + (v'' - w'') dv + (v'' - ra - w'') + (v' - w') dk + 3 z,
///         writes = ra + q dk + k (dk + dv) + 2 z;
///         peak = max(bq (dk + 1) + bk dk + 1, 2 gk dv + gq (dv + 1) + 2, ck dk + cq dk + 1)
///         [schedules/backward_test]
/// Source: ours.
struct RollingP {
  using Head = BackwardHead;
  static constexpr const char* kName = "rolling_p";
  static constexpr const char* kSummary =
      "P and dS stored pair by pair while rows roll through fast memory; best from 0.4 d^2 to 1.3 "
      "d^2 words, and on blocks";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static constexpr bool kNoSoftcap = true, kTradesTiles = true;
  static std::vector<Parameter<RollingP>> parameters() {
    return {
        {"bq", &RollingP::block_q, Extent::queries}, {"bk", &RollingP::block_k, Extent::keys},
        {"gk", &RollingP::value_k, Extent::keys},    {"gq", &RollingP::value_q, Extent::queries},
        {"ck", &RollingP::pass_k, Extent::keys},     {"cq", &RollingP::pass_q, Extent::queries},
        order_parameter(&RollingP::order),           dlse_parameter(&RollingP::dlse)};
  }
  std::int64_t block_q, block_k;  // of the passes where queries stay
  std::int64_t value_k, value_q;  // of the pass of dS and dV, where keys do
  std::int64_t pass_k, pass_q;    // of the pass of dK
  std::int64_t order = kNatural, dlse = kNoLseGradient;
  std::vector<std::int64_t> query_order{}, value_order{}, key_order{};

  void arrange(const attest_problem& problem) {
    if (order != kGrouped) return;
    query_order = resident_order(problem, Residents::queries, block_q);
    value_order = resident_order(problem, Residents::keys, value_k);
    key_order = resident_order(problem, Residents::keys, pass_k);
  }

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const auto P = machine.workspace(q, k, "P"), dS = machine.workspace(q, k, "dS");
    const RollingVisits of_keys = visits_of_keys(head);
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
    add_values(machine, head, P, dS);
    add_queries(machine, of_keys, head, dS);
    add_keys(machine, head, dS);
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  RollingVisits visits_of_keys(const BackwardHead& head) const {
    return {head.rule,  {head.Q.rows(), head.K.rows()}, Residents::queries, block_q, block_k,
            query_order};
  }
  RollingVisits visits_of_outputs(const BackwardHead& head) const {
    return {head.rule,  {head.Q.rows(), head.K.rows()}, Residents::keys, value_k, value_q,
            value_order};
  }
  RollingVisits visits_of_queries(const BackwardHead& head) const {
    return {head.rule, {head.Q.rows(), head.K.rows()}, Residents::keys, pass_k, pass_q, key_order};
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

    void enter(io::Range place) {
      if (!visits.seen(place.begin)) return;
      const io::Range query = visits.row(place.begin);
      machine.load_into(Q, head.Q.block(query));
      machine.load_into(LSE, head.LSE.block(query));
    }
    void leave() {}

    M& machine;
    const BackwardHead& head;
    const RollingVisits& visits;
    decltype(std::declval<M&>().scratch(1, 1, "")) Q, LSE;
  };

  // A key while its rows of dS are made and dV is summed.
  template <class M>
  struct ValueKey {
    ValueKey(M* to, const BackwardHead* of, const RollingVisits* who)
        : machine(*to),
          head(*of),
          visits(*who),
          V(to->scratch(1, of->V.columns(), "V")),
          dV(to->scratch(1, of->V.columns(), "dV")) {}

    void enter(io::Range place) {
      key = visits.row(place.begin);
      begin_sum(machine, dV, head.sums, head.dV_before, key, all_columns(head.V));
      if (visits.seen(place.begin)) machine.load_into(V, head.V.block(key));
    }
    void leave() { machine.store(dV, head.dV.block(key)); }

    M& machine;
    const BackwardHead& head;
    const RollingVisits& visits;
    io::Range key{};
    decltype(std::declval<M&>().scratch(1, 1, "")) V, dV;
  };

  // A row of dO that visits, and its delta.
  template <class M>
  struct OutputGradient {
    OutputGradient(M* machine, const BackwardHead* head)
        : dO(machine->scratch(1, head->dO.columns(), "dO")), D(machine->scratch(1, 1, "D")) {}
    decltype(std::declval<M&>().scratch(1, 1, "")) dO, D;
  };

  // dS = scale P o (dO V^T - D) and dV = P^T dO. The first visit of a query leaves D for the
  // others.
  template <class M>
  void add_values(M& machine, const BackwardHead& head, const io::SlowMatrix& P,
                  const io::MutableSlowMatrix& dS) const {
    const RollingVisits visits = visits_of_outputs(head);
    const auto D_slow = machine.workspace(head.Q.rows(), 1, "D");
    RollingBuffer<ValueKey<M>> keys(visits.buffered(), head.V.rows(), &machine, &head, &visits);
    HeldRows<OutputGradient<M>> waiting(visits.places(), &machine, &head);
    visits.for_each_step([&](const RollingVisits::Step& step) {
      keys.roll_to(step.resident);
      for (const RollingVisits::Run& run : step.runs) {
        machine.for_tiles(visits.alike(run), 1, [&](io::Range query) {
          const auto meet = [&](const auto& dO, auto& D) {
            if (run.visit == RollingVisits::Visit::first) {
              form_deltas(machine, head, dlse, query, dO, D);
              machine.store(D, D_slow.block(query));
            } else if (!run.waited) {
              machine.load_into(D, D_slow.block(query));
            }
            machine.for_tiles(visits.met(query.begin, step.resident), 1, [&](io::Range place) {
              ValueKey<M>& key = keys[place.begin];
              const auto word = machine.load(P.block(query, key.key), "P");
              machine.compute(Product{}, key.dV, word, dO);
              auto pair = machine.scratch(1, 1, "dS");
              machine.compute(Fill{0}, pair);
              machine.compute(Product{Form::second_transposed}, pair, dO, key.V);
              machine.compute(ScoreGradients{softmax_scale(head.rule)}, pair, word, D);
              machine.store(pair, dS.block(query, key.key));
            });
          };
          const std::int64_t place = run.place_of(query.begin);
          if (place == RollingVisits::kNowhere) {
            const auto dO = machine.load(head.dO.block(query), "dO");
            auto D = machine.scratch(1, 1, "D");
            return meet(dO, D);
          }
          OutputGradient<M>& row = waiting[place];
          if (!run.waited) machine.load_into(row.dO, head.dO.block(query));
          meet(row.dO, row.D);
        });
      }
    });
    keys.finish();
  }

  // Where sums of rows go, and where they begin.
  struct Target {
    io::MutableSlowMatrix to;
    Sums sums = Sums::fresh;
    io::SlowMatrix before{};
  };

  // A row of dQ or dK.
  template <class M>
  struct SumRow {
    SumRow(M* machine_of, const Target* target_of, const RollingVisits* who)
        : machine(*machine_of),
          target(*target_of),
          visits(*who),
          sum(machine_of->scratch(1, target_of->to.columns(), target_of->to.name())) {}

    void enter(io::Range place) {
      row = visits.row(place.begin);
      begin_sum(machine, sum, target.sums, target.before, row, all_columns(target.to));
    }
    void leave() { machine.store(sum, target.to.block(row)); }

    M& machine;
    const Target& target;
    const RollingVisits& visits;
    io::Range row{};
    decltype(std::declval<M&>().scratch(1, 1, "")) sum;
  };

  // dQ = dS K.
  template <class M>
  static void add_queries(M& machine, const RollingVisits& visits, const BackwardHead& head,
                          const io::SlowMatrix& dS) {
    const Target target{head.dQ};
    RollingBuffer<SumRow<M>> queries(visits.buffered(), head.Q.rows(), &machine, &target, &visits);
    roll(machine, visits, head.K, queries,
         [&](SumRow<M>& row, io::Range query, io::Range key, const auto& K) {
           const auto word = machine.load(dS.block(query, key), "dS");
           machine.compute(Product{}, row.sum, word, K);
         });
  }

  // dK = dS^T Q.
  template <class M>
  void add_keys(M& machine, const BackwardHead& head, const io::SlowMatrix& dS) const {
    const RollingVisits visits = visits_of_queries(head);
    const Target target{head.dK, head.sums, head.dK_before};
    RollingBuffer<SumRow<M>> keys(visits.buffered(), head.K.rows(), &machine, &target, &visits);
    roll(machine, visits, head.Q, keys,
         [&](SumRow<M>& row, io::Range key, io::Range query, const auto& Q) {
           const auto word = machine.load(dS.block(query, key), "dS");
           machine.compute(Product{}, row.sum, word, Q);
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
            machine.for_tiles(visits.met(visitor.begin, step.resident), 1, [&](io::Range place) {
              body(residents[place.begin], visits.row(place.begin), visitor, row);
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

}  // namespace attest::schedules
