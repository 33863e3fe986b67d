#pragma once

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/rolling_buffer.hpp"
#include "schedules/engine/score_step.hpp"
#include "schedules/walks/resident_order.hpp"

/// Schedules with a rolling buffer: rows stay as in flash2_row and key_stationary, but leave one by
/// one, and those that pass by come when a row leaves that they must still meet; some of them wait
/// in fast memory for their next visit (RollingVisits). Without a mask that is blocks of rows. The
/// rows of a boolean mask may come in another order (resident_order).
///
/// Letters: ra and kc the queries and keys that see or are seen, v all visits, w the waits between
/// two of them; without a mask v = ceil(q/bq) k where queries stay, ceil(k/bk) q where keys do, and
/// w = (bk - 1)(ceil(q/bq) - 1) or (bq - 1)(ceil(k/bk) - 1), without -1 where bk = k or bq = q. In
/// the peaks bq and bk are at most q and k.
namespace attest::schedules {

/// Queries roll through fast memory with their sums, keys visit. One of the bk keys in fast memory
/// visits, and the others wait.
///
/// Cost:   reads = ra dk + (v - w)(dk + dv), writes = q (dv + 1);
///         peak = bq (dk + dv + 2) + bk (dk + dv) + 2  [schedules/forward_test]
/// Source: ours.
struct RollingQueries {
  using Head = ForwardHead;
  static constexpr const char* kName = "rolling_queries";
  static constexpr const char* kSummary =
      "queries roll through fast memory with their sums, keys visit; for bands and blocks";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static constexpr bool kTradesTiles = true;
  static std::vector<Parameter<RollingQueries>> parameters() {
    return {{"bq", &RollingQueries::block_q, Extent::queries},
            {"bk", &RollingQueries::block_k, Extent::keys},
            order_parameter(&RollingQueries::order)};
  }
  std::int64_t block_q, block_k, order = kNatural;
  std::vector<std::int64_t> query_order{};

  void arrange(const attest_problem& problem) {
    if (order == kGrouped) query_order = resident_order(problem, Residents::queries, block_q);
  }

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const RollingVisits visits = visits_of(head);
    RollingBuffer<Query<M>> queries(visits.buffered(), head.Q.rows(), &machine, &head, &visits);
    HeldRows<Key<M>> waiting(visits.places(), &machine, &head);
    visits.for_each_step([&](const RollingVisits::Step& step) {
      queries.roll_to(step.resident);
      const auto meet = [&](io::Range key, const auto& K, const auto& V) {
        machine.for_tiles(visits.met(key.begin, step.resident), 1,
                          [&](io::Range place) { queries[place.begin].attend(key, K, V); });
      };
      for (const RollingVisits::Run& run : step.runs) {
        machine.for_tiles(run.visitors, 1, [&](io::Range key) {
          const std::int64_t place = run.place_of(key.begin);
          if (place == RollingVisits::kNowhere) {
            const auto K = machine.load(head.K.block(key), "K");
            const auto V = machine.load(head.V.block(key), "V");
            return meet(key, K, V);
          }
          Key<M>& row = waiting[place];
          if (!run.waited) row.enter(key);
          meet(key, row.K, row.V);
        });
      }
    });
    queries.finish();
  }

  io::Traffic cost(const ForwardHead& head) const;

 private:
  RollingVisits visits_of(const ForwardHead& head) const {
    return {head.rule,  {head.Q.rows(), head.K.rows()}, Residents::queries, block_q, block_k,
            query_order};
  }

  // A query that stays.
  template <class M>
  class Query {
   public:
    Query(M* machine, const ForwardHead* head, const RollingVisits* visits)
        : machine_(*machine),
          head_(*head),
          visits_(*visits),
          Q_(machine->scratch(1, head->Q.columns(), "Q")),
          O_(machine->scratch(1, head->V.columns(), "O")),
          m_(machine->scratch(1, 1, "m")),
          l_(machine->scratch(1, 1, "l")) {}

    void enter(io::Range place) {
      query_ = visits_.row(place.begin);
      if (visits_.seen(place.begin)) machine_.load_into(Q_, head_.Q.block(query_));
      machine_.compute(Fill{0}, O_);
      machine_.compute(StartRows{}, m_, l_);
    }

    template <class Row>
    void attend(io::Range key, const Row& K, const Row& V) {
      auto S = machine_.scratch(1, 1, "S");
      compute_scores(machine_, S, Q_, K, head_.rule, query_, key);
      update_softmax(machine_, S, m_, l_, O_);
      machine_.compute(Product{}, O_, S, V);
    }

    void leave() {
      machine_.compute(FinishRows{}, O_, m_, l_);
      machine_.store(O_, head_.O.block(query_));
      machine_.store(m_, head_.LSE.block(query_));
    }

   private:
    M& machine_;
    const ForwardHead& head_;
    const RollingVisits& visits_;
    io::Range query_{};
    decltype(std::declval<M&>().scratch(1, 1, "")) Q_, O_, m_, l_;
  };

  // A key that waits.
  template <class M>
  struct Key {
    Key(M* to, const ForwardHead* of)
        : machine(*to),
          head(*of),
          K(to->scratch(1, of->K.columns(), "K")),
          V(to->scratch(1, of->V.columns(), "V")) {}

    void enter(io::Range key) {
      machine.load_into(K, head.K.block(key));
      machine.load_into(V, head.V.block(key));
    }

    M& machine;
    const ForwardHead& head;
    decltype(std::declval<M&>().scratch(1, 1, "")) K, V;
  };
};

}  // namespace attest::schedules
