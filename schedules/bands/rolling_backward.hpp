#pragma once

#include "schedules/engine/backward_step.hpp"
#include "schedules/engine/heads.hpp"
#include "schedules/engine/rolling_buffer.hpp"
#include "schedules/walks/resident_order.hpp"

/// Backward schedules with a rolling buffer, letters as in schedules/bands/rolling_queries.hpp.
namespace attest::schedules {

/// Queries roll through fast memory with dQ, keys visit. dK and dV are made on a key's first visit,
/// read and written between visits but for keys that wait: of bk keys one visits and the others may
/// wait. D is made as a query enters.
///
/// Cost:   reads = ra (dk + 2 dv + 1) + v (dk + dv) + (v - kc - w)(dk + dv),
///         writes = q dk + (k + v - kc - w)(dk + dv);
///         peak = bq (2 dk + dv + 2) + (bk + 1)(dk + dv) + 2  [schedules/backward_test]
/// Source: ours.
struct RollingQueriesBackward {
  using Head = BackwardHead;
  static constexpr const char* kName = "rolling_queries_bwd";
  static constexpr const char* kSummary =
      "queries roll through fast memory with dQ, keys visit; dK and dV are read and written";
  // Rows of an index do not move together where the gradient of a visitor that waits stays alone.
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static constexpr bool kTradesTiles = true;
  static std::vector<Parameter<RollingQueriesBackward>> parameters() {
    return {{"bq", &RollingQueriesBackward::block_q, Extent::queries},
            {"bk", &RollingQueriesBackward::block_k, Extent::keys},
            order_parameter(&RollingQueriesBackward::order),
            dlse_parameter(&RollingQueriesBackward::dlse)};
  }
  std::int64_t block_q, block_k, order = kNatural, dlse = kNoLseGradient;
  std::vector<std::int64_t> query_order{};

  // A visitor that is the only one stays between its visits.
  bool moves_whole_rows(const attest_problem& problem) const {
    return block_k == 1 && !has_single_key(problem);
  }

  void arrange(const attest_problem& problem) {
    if (order == kGrouped) query_order = resident_order(problem, Residents::queries, block_q);
  }

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const RollingVisits visits = visits_of(head);
    {
      RollingBuffer<Query<M>> queries(visits.buffered(), head.Q.rows(), this, &machine, &head,
                                      &visits);
      HeldRows<KeySums<M>> waiting(visits.places(), &machine, &head);
      visits.for_each_step([&](const RollingVisits::Step& step) {
        queries.roll_to(step.resident);
        for (const RollingVisits::Run& run : step.runs) {
          machine.for_tiles(run.visitors, 1, [&](io::Range key) {
            const auto K = machine.load(head.K.block(key), "K");
            const auto V = machine.load(head.V.block(key), "V");
            const auto visit = [&](KeySums<M>& sums) {
              if (!run.waited) sums.begin(key, run.visit);
              machine.for_tiles(visits.met(key.begin, step.resident), 1, [&](io::Range place) {
                queries[place.begin].add(key, K, V, sums.dK, sums.dV);
              });
              if (!run.waits) sums.store(key);
            };
            const std::int64_t place = run.place_of(key.begin);
            if (place != RollingVisits::kNowhere) return visit(waiting[place]);
            KeySums<M> sums(&machine, &head);
            visit(sums);
          });
        }
      });
      queries.finish();
    }
    machine.for_tiles(visits.idle(), 1, [&](io::Range key) {
      KeySums<M> sums(&machine, &head);
      sums.begin(key, RollingVisits::Visit::first);
      sums.store(key);
    });
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  RollingVisits visits_of(const BackwardHead& head) const {
    return {head.rule,  {head.Q.rows(), head.K.rows()}, Residents::queries, block_q, block_k,
            query_order};
  }

  // A query that stays.
  template <class M>
  class Query {
   public:
    Query(const RollingQueriesBackward* schedule, M* machine, const BackwardHead* head,
          const RollingVisits* visits)
        : schedule_(*schedule),
          machine_(*machine),
          head_(*head),
          visits_(*visits),
          Q_(machine->scratch(1, head->Q.columns(), "Q")),
          dO_(machine->scratch(1, head->V.columns(), "dO")),
          LSE_(machine->scratch(1, 1, "LSE")),
          D_(machine->scratch(1, 1, "D")),
          dQ_(machine->scratch(1, head->Q.columns(), "dQ")) {}

    void enter(io::Range place) {
      query_ = visits_.row(place.begin);
      machine_.compute(Fill{0}, dQ_);
      if (!visits_.seen(place.begin)) return;
      machine_.load_into(Q_, head_.Q.block(query_));
      machine_.load_into(dO_, head_.dO.block(query_));
      machine_.load_into(LSE_, head_.LSE.block(query_));
      form_deltas(machine_, head_, schedule_.dlse, query_, dO_, D_);
    }

    template <class Row, class Tile>
    void add(io::Range key, const Row& K, const Row& V, Tile& dK, Tile& dV) {
      auto pair = machine_.scratch(1, 2, "P and dS");
      machine_.compute(PairGradients{head_.rule, query_.begin, key.begin}, dQ_, dK, dV, Q_, dO_,
                       LSE_, D_, K, V, pair);
    }

    void leave() { machine_.store(dQ_, head_.dQ.block(query_)); }

   private:
    const RollingQueriesBackward& schedule_;
    M& machine_;
    const BackwardHead& head_;
    const RollingVisits& visits_;
    io::Range query_{};
    decltype(std::declval<M&>().scratch(1, 1, "")) Q_, dO_, LSE_, D_, dQ_;
  };

  // dK and dV of a key that visits or waits.
  template <class M>
  struct KeySums {
    KeySums(M* to, const BackwardHead* of)
        : machine(*to),
          head(*of),
          dK(to->scratch(1, of->K.columns(), "dK")),
          dV(to->scratch(1, of->V.columns(), "dV")) {}

    void begin(io::Range key, RollingVisits::Visit visit) {
      if (visit == RollingVisits::Visit::first) return begin_sums(machine, head, key, dK, dV);
      machine.load_into(dK, head.dK.block(key));
      machine.load_into(dV, head.dV.block(key));
    }

    void store(io::Range key) {
      machine.store(dK, head.dK.block(key));
      machine.store(dV, head.dV.block(key));
    }

    M& machine;
    const BackwardHead& head;
    decltype(std::declval<M&>().scratch(1, 1, "")) dK, dV;
  };
};

/// Keys roll through fast memory with dK and dV, queries visit. dQ is made on a query's first
/// visit, read and written between visits but for queries that wait: of bq queries one visits and
/// the others may wait. The first visit leaves D for the others. With order=gapped and blocks of a
/// boolean mask that only just do not fit side by side, queries that do not see all of them leave a
/// few keys out (gap_to_blocks), which enter again, e times in all.
///
/// Cost:   reads = ra (dk + 2 dv + 1) + (v - ra)(dk + dv + 2) + (v - ra - w) dk +
///         (kc + 2 e)(dk + dv), writes = ra + (q + v - ra - w) dk + (k + e)(dk + dv);
///         peak = 2 bk (dk + dv) + (bq + 1) dk + dv + 4  [schedules/backward_test]
/// Source: ours.
struct RollingKeys {
  using Head = BackwardHead;
  static constexpr const char* kName = "rolling_keys";
  static constexpr const char* kSummary =
      "keys roll through fast memory with dK and dV, queries visit; dQ is read and written";
  // Rows of an index do not move together where the gradient of a visitor that waits stays alone.
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static constexpr bool kTradesTiles = true;
  static std::vector<Parameter<RollingKeys>> parameters() {
    return {{"bk", &RollingKeys::block_k, Extent::keys},
            {"bq", &RollingKeys::block_q, Extent::queries},
            order_parameter(&RollingKeys::order, kGapped),
            dlse_parameter(&RollingKeys::dlse)};
  }
  std::int64_t block_k, block_q, order = kNatural, dlse = kNoLseGradient;
  std::vector<std::int64_t> key_order{};
  std::int64_t block_of_mask = 0;  // keys; 0: no gaps

  // A visitor that is the only one stays between its visits.
  bool moves_whole_rows(const attest_problem& problem) const {
    return block_q == 1 && !has_single_query(problem);
  }

  void prepare(const attest_problem& problem) {
    if (order == kGapped) block_of_mask = middle_block(problem, Residents::keys);
  }

  void arrange(const attest_problem& problem) {
    if (order != kNatural) key_order = resident_order(problem, Residents::keys, block_k, gap());
  }

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const RollingVisits visits = visits_of(head);
    const auto D = machine.workspace(head.Q.rows(), 1, "D");
    {
      RollingBuffer<Key<M>> keys(visits.buffered(), head.K.rows(), &machine, &head, &visits);
      HeldRows<QuerySum<M>> waiting(visits.places(), &machine, &head);
      visits.for_each_step([&](const RollingVisits::Step& step) {
        if (!visits.on_demand()) keys.roll_to(step.resident);
        for (const RollingVisits::Run& run : step.runs) {
          if (visits.on_demand()) keys.move(run.moves);
          machine.for_tiles(run.visitors, 1, [&](io::Range query) {
            const std::vector<io::Range> met = visits.met(query.begin, step.resident);
            const std::int64_t place = run.place_of(query.begin);
            if (place != RollingVisits::kNowhere) {
              return visit(machine, head, D, run, query, met, keys, waiting[place]);
            }
            QuerySum<M> sum(&machine, &head);
            visit(machine, head, D, run, query, met, keys, sum);
          });
        }
      });
      if (visits.on_demand()) {
        keys.finish_moves();
      } else {
        keys.finish();
      }
    }
    for (const io::Range& idle : visits.idle()) store_zeros(machine, head.dQ, idle, 1);
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  RollingVisits visits_of(const BackwardHead& head) const {
    return {head.rule, {head.Q.rows(), head.K.rows()}, Residents::keys, block_k, block_q, key_order,
            gap()};
  }

  std::int64_t gap() const { return gap_to_blocks(block_k, block_of_mask); }

  // A key that stays.
  template <class M>
  class Key {
   public:
    Key(M* machine, const BackwardHead* head, const RollingVisits* visits)
        : machine_(*machine),
          head_(*head),
          visits_(*visits),
          K_(machine->scratch(1, head->K.columns(), "K")),
          V_(machine->scratch(1, head->V.columns(), "V")),
          dK_(machine->scratch(1, head->K.columns(), "dK")),
          dV_(machine->scratch(1, head->V.columns(), "dV")) {}

    void enter(io::Range place) {
      key_ = visits_.row(place.begin);
      begin_sums(machine_, head_, key_, dK_, dV_);
      if (!visits_.seen(place.begin)) return;
      machine_.load_into(K_, head_.K.block(key_));
      machine_.load_into(V_, head_.V.block(key_));
    }

    void enter_again(io::Range place) {
      key_ = visits_.row(place.begin);
      machine_.load_into(dK_, head_.dK.block(key_));
      machine_.load_into(dV_, head_.dV.block(key_));
      machine_.load_into(K_, head_.K.block(key_));
      machine_.load_into(V_, head_.V.block(key_));
    }

    template <class Tile, class Row>
    void add(io::Range query, Tile& dQ, const Row& Q, const Row& dO, const Row& LSE,
             const Tile& D) {
      auto pair = machine_.scratch(1, 2, "P and dS");
      machine_.compute(PairGradients{head_.rule, query.begin, key_.begin}, dQ, dK_, dV_, Q, dO, LSE,
                       D, K_, V_, pair);
    }

    void leave() {
      machine_.store(dK_, head_.dK.block(key_));
      machine_.store(dV_, head_.dV.block(key_));
    }

   private:
    M& machine_;
    const BackwardHead& head_;
    const RollingVisits& visits_;
    io::Range key_{};
    decltype(std::declval<M&>().scratch(1, 1, "")) K_, V_, dK_, dV_;
  };

  // dQ of a query that visits or waits.
  template <class M>
  struct QuerySum {
    QuerySum(M* machine, const BackwardHead* head)
        : dQ(machine->scratch(1, head->Q.columns(), "dQ")) {}
    decltype(std::declval<M&>().scratch(1, 1, "")) dQ;
  };

  template <class M>
  void visit(M& machine, const BackwardHead& head, const io::MutableSlowMatrix& D_slow,
             const RollingVisits::Run& run, io::Range query, const std::vector<io::Range>& met,
             RollingBuffer<Key<M>>& keys, QuerySum<M>& sum) const {
    const auto Q = machine.load(head.Q.block(query), "Q");
    const auto dO = machine.load(head.dO.block(query), "dO");
    const auto LSE = machine.load(head.LSE.block(query), "LSE");
    auto D = machine.scratch(1, 1, "D");
    if (run.visit == RollingVisits::Visit::first) {
      form_deltas(machine, head, dlse, query, dO, D);
      machine.store(D, D_slow.block(query));
      machine.compute(Fill{0}, sum.dQ);
    } else {
      machine.load_into(D, D_slow.block(query));
      if (!run.waited) {
        machine.load_into(sum.dQ, head.dQ.block(query));
      }
    }
    machine.for_tiles(
        met, 1, [&](io::Range place) { keys[place.begin].add(query, sum.dQ, Q, dO, LSE, D); });
    if (!run.waits) machine.store(sum.dQ, head.dQ.block(query));
  }
};

}  // namespace attest::schedules
