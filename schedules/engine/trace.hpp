#pragma once

#include "schedules/engine/operations.hpp"

/// The operations word by word, for a recorder: what each element becomes and from which words.
/// Scale, softcap, ALiBi and the division of an accumulator by a constant are part of forming a
/// word. Recordings are of problems without a mask.
namespace attest::schedules {

template <class R, class Tile>
void trace(R& recorder, const Fill&, const Tile& tile) {
  for (std::int64_t i = 0; i < tile.rows(); ++i) {
    for (std::int64_t j = 0; j < tile.columns(); ++j) recorder.clear(tile.word(i, j));
  }
}

template <class R, class Tile>
void trace(R& recorder, const Product& product, const Tile& C, const Tile& A, const Tile& B) {
  // Rows of B outside: of a stream, each word is used once.
  for (std::int64_t r = 0; r < B.rows(); ++r) {
    for (std::int64_t s = 0; s < B.columns(); ++s) {
      const std::int64_t b = B.word(r, s);
      const bool transposed = product.form == Form::first_transposed;
      for (std::int64_t i = 0; i < (transposed ? A.columns() : A.rows()); ++i) {
        const std::int64_t row = product.first + i;
        switch (product.form) {
          case Form::plain:
            recorder.accumulate(C.word(row, s), {A.word(i, r), b});
            break;
          case Form::first_transposed:
            recorder.accumulate(C.word(row, s), {A.word(r, i), b});
            break;
          case Form::second_transposed:
            recorder.accumulate(C.word(row, r), {A.word(i, s), b});
            break;
        }
      }
    }
  }
}

template <class R, class Tile>
void trace(R&, const FinishScores&, const Tile&) {}

template <class R, class Tile>
void trace(R& recorder, const StartRows&, const Tile& m, const Tile& l) {
  trace(recorder, Fill{0}, m);
  trace(recorder, Fill{0}, l);
}

/// word = the maximum of m and the row's scores.
template <class R, class Tile>
void trace_maximum(R& recorder, const Tile& S, const Tile& m, const Tile& word, std::int64_t i) {
  recorder.copy(word.word(0, 0), m.word(i, 0));
  for (std::int64_t j = 0; j < S.columns(); ++j) {
    recorder.accumulate(word.word(0, 0), {S.word(i, j)});
  }
}

template <class R, class Tile>
void trace(R& recorder, const UpdateSoftmax&, const Tile& S, const Tile& m, const Tile& l,
           const Tile& O, const Tile& word) {
  const std::int64_t maximum = word.word(0, 0);
  for (std::int64_t i = 0; i < S.rows(); ++i) {
    trace_maximum(recorder, S, m, word, i);
    recorder.rescale(l.word(i, 0), {m.word(i, 0), maximum});
    for (std::int64_t c = 0; c < O.columns(); ++c) {
      recorder.rescale(O.word(i, c), {m.word(i, 0), maximum});
    }
    recorder.copy(m.word(i, 0), maximum);
    recorder.clear(maximum);
    for (std::int64_t j = 0; j < S.columns(); ++j) {
      recorder.form(S.word(i, j), {S.word(i, j), m.word(i, 0)});
      recorder.accumulate(l.word(i, 0), {S.word(i, j)});
    }
  }
}

template <class R, class Tile>
void trace(R& recorder, const UpdateNormalized&, const Tile& S, const Tile& m, const Tile& l,
           const Tile& O, const Tile& word) {
  const std::int64_t maximum = word.word(0, 0);
  for (std::int64_t i = 0; i < S.rows(); ++i) {
    trace_maximum(recorder, S, m, word, i);
    for (std::int64_t c = 0; c < O.columns(); ++c) {
      recorder.rescale(O.word(i, c), {l.word(i, 0), m.word(i, 0), maximum});
    }
    recorder.rescale(l.word(i, 0), {m.word(i, 0), maximum});
    recorder.copy(m.word(i, 0), maximum);
    recorder.clear(maximum);
    for (std::int64_t j = 0; j < S.columns(); ++j) {
      recorder.form(S.word(i, j), {S.word(i, j), m.word(i, 0)});
      recorder.accumulate(l.word(i, 0), {S.word(i, j)});
    }
    for (std::int64_t c = 0; c < O.columns(); ++c) recorder.rescale(O.word(i, c), {l.word(i, 0)});
    for (std::int64_t j = 0; j < S.columns(); ++j) {
      recorder.form(S.word(i, j), {S.word(i, j), l.word(i, 0)});
    }
  }
}

template <class R, class Tile>
void trace(R& recorder, const UpdateStatistics&, const Tile& m, const Tile& l, const Tile& S,
           const Tile& word) {
  const std::int64_t moment = word.word(0, 0);
  for (std::int64_t i = 0; i < S.rows(); ++i) {
    trace_maximum(recorder, S, m, word, i);
    recorder.rescale(l.word(i, 0), {m.word(i, 0), moment});
    recorder.copy(m.word(i, 0), moment);
    for (std::int64_t j = 0; j < S.columns(); ++j) {
      recorder.form(moment, {S.word(i, j), m.word(i, 0)});
      recorder.accumulate(l.word(i, 0), {moment});
    }
    recorder.clear(moment);
  }
}

template <class R, class Tile>
void trace(R& recorder, const MergeSplit&, const Tile& O, const Tile& m, const Tile& l,
           const Tile& O_split, const Tile& LSE_split, const Tile& word) {
  const std::int64_t moment = word.word(0, 0);
  for (std::int64_t i = 0; i < O.rows(); ++i) {
    const std::int64_t LSE = LSE_split.word(i, 0);
    recorder.copy(moment, m.word(i, 0));
    recorder.accumulate(moment, {LSE});
    recorder.rescale(l.word(i, 0), {m.word(i, 0), moment});
    for (std::int64_t c = 0; c < O.columns(); ++c) {
      recorder.rescale(O.word(i, c), {m.word(i, 0), moment});
    }
    recorder.copy(m.word(i, 0), moment);
    recorder.form(moment, {LSE, m.word(i, 0)});  // the weight of the split
    recorder.accumulate(l.word(i, 0), {moment});
    for (std::int64_t c = 0; c < O.columns(); ++c) {
      recorder.accumulate(O.word(i, c), {O_split.word(i, c), moment});
    }
    recorder.clear(moment);
  }
}

template <class R, class Tile>
void trace(R& recorder, const RaiseMaxima&, const Tile& m, const Tile& S) {
  for (std::int64_t i = 0; i < S.rows(); ++i) {
    for (std::int64_t j = 0; j < S.columns(); ++j) {
      recorder.accumulate(m.word(i, 0), {S.word(i, j)});
    }
  }
}

template <class R, class Tile>
void trace(R& recorder, const CopyTile&, const Tile& to, const Tile& from) {
  for (std::int64_t i = 0; i < to.rows(); ++i) {
    for (std::int64_t j = 0; j < to.columns(); ++j) recorder.copy(to.word(i, j), from.word(i, j));
  }
}

template <class R, class Tile>
void trace(R& recorder, const LogSumExp&, const Tile& m, const Tile& l) {
  for (std::int64_t i = 0; i < m.rows(); ++i) {
    recorder.form(m.word(i, 0), {m.word(i, 0), l.word(i, 0)});
  }
}

template <class R, class Tile>
void trace(R& recorder, const FinishRows&, const Tile& O, const Tile& m, const Tile& l) {
  for (std::int64_t i = 0; i < O.rows(); ++i) {
    for (std::int64_t c = 0; c < O.columns(); ++c) {
      recorder.form(O.word(i, c), {O.word(i, c), l.word(i, 0)});
    }
  }
  trace(recorder, LogSumExp{}, m, l);
}

template <class R, class Tile>
void trace(R& recorder, const SoftmaxRows&, const Tile& S, const Tile& m, const Tile& l) {
  trace(recorder, StartRows{}, m, l);
  for (std::int64_t i = 0; i < S.rows(); ++i) {
    for (std::int64_t j = 0; j < S.columns(); ++j) {
      recorder.accumulate(m.word(i, 0), {S.word(i, j)});
    }
    for (std::int64_t j = 0; j < S.columns(); ++j) {
      recorder.form(S.word(i, j), {S.word(i, j), m.word(i, 0)});
      recorder.accumulate(l.word(i, 0), {S.word(i, j)});
    }
    for (std::int64_t j = 0; j < S.columns(); ++j) {
      recorder.form(S.word(i, j), {S.word(i, j), l.word(i, 0)});
    }
  }
}

template <class R, class Tile>
void trace(R& recorder, const Probabilities&, const Tile& S, const Tile& LSE) {
  for (std::int64_t i = 0; i < S.rows(); ++i) {
    for (std::int64_t j = 0; j < S.columns(); ++j) {
      recorder.form(S.word(i, j), {S.word(i, j), LSE.word(i, 0)});
    }
  }
}

template <class R, class Tile>
void trace(R& recorder, const ProbabilitiesOf&, const Tile& S, const Tile& m, const Tile& l) {
  trace(recorder, Probabilities{}, S, m);
  trace(recorder, Probabilities{}, S, l);
}

template <class R, class Tile>
void trace(R& recorder, const Exponentials&, const Tile& S, const Tile& d) {
  for (std::int64_t i = 0; i < S.rows(); ++i) {
    for (std::int64_t j = 0; j < S.columns(); ++j) {
      recorder.form(S.word(i, j), {S.word(i, j)});
      recorder.accumulate(d.word(i, 0), {S.word(i, j)});
    }
  }
}

template <class R, class Tile>
void trace(R& recorder, const AddRowSums&, const Tile& d, const Tile& P) {
  for (std::int64_t i = 0; i < P.rows(); ++i) {
    for (std::int64_t j = 0; j < P.columns(); ++j) {
      recorder.accumulate(d.word(i, 0), {P.word(i, j)});
    }
  }
}

template <class R, class Tile>
void trace(R& recorder, const DivideRows&, const Tile& O, const Tile& d) {
  trace(recorder, Probabilities{}, O, d);
}

template <class R, class Tile>
void trace(R& recorder, const AddRowDots&, const Tile& D, const Tile& dO, const Tile& O) {
  for (std::int64_t i = 0; i < D.rows(); ++i) {
    for (std::int64_t c = 0; c < O.columns(); ++c) {
      recorder.accumulate(D.word(i, 0), {dO.word(i, c), O.word(i, c)});
    }
  }
}

template <class R, class Tile>
void trace(R& recorder, const ScoreGradients& gradients, const Tile& dP, const Tile& P,
           const Tile& D) {
  for (std::int64_t i = 0; i < P.rows(); ++i) {
    const std::int64_t row = gradients.first + i;
    for (std::int64_t j = 0; j < P.columns(); ++j) {
      recorder.form(dP.word(row, j), {dP.word(row, j), P.word(i, j), D.word(row, 0)});
    }
  }
}

template <class R, class Tile>
void trace(R&, const RowsOut& rows, const Tile& tile, const Tile& out) {
  for (std::int64_t i = 0; i < out.rows(); ++i) {
    for (std::int64_t j = 0; j < out.columns(); ++j) out.send(i, j, tile.word(rows.first + i, j));
  }
}

template <class R, class Tile>
void trace(R& recorder, const SubtractRows&, const Tile& D, const Tile& dLSE) {
  for (std::int64_t i = 0; i < D.rows(); ++i) {
    recorder.accumulate(D.word(i, 0), {dLSE.word(i, 0)});
  }
}

template <class R, class Tile>
void trace(R& recorder, const CappedGradients&, const Tile& dP, const Tile& S, const Tile& LSE,
           const Tile& D) {
  for (std::int64_t i = 0; i < S.rows(); ++i) {
    for (std::int64_t j = 0; j < S.columns(); ++j) {
      recorder.form(dP.word(i, j), {dP.word(i, j), S.word(i, j), D.word(i, 0)});
      recorder.form(S.word(i, j), {S.word(i, j), LSE.word(i, 0)});
      recorder.form(dP.word(i, j), {dP.word(i, j), S.word(i, j)});
    }
  }
}

template <class R, class Tile>
void trace(R& recorder, const CappedGradientsOf&, const Tile& dP, const Tile& S, const Tile& m,
           const Tile& l, const Tile& D) {
  for (std::int64_t i = 0; i < S.rows(); ++i) {
    for (std::int64_t j = 0; j < S.columns(); ++j) {
      recorder.form(dP.word(i, j), {dP.word(i, j), S.word(i, j), D.word(i, 0)});
      recorder.form(S.word(i, j), {S.word(i, j), m.word(i, 0)});
      recorder.form(S.word(i, j), {S.word(i, j), l.word(i, 0)});
      recorder.form(dP.word(i, j), {dP.word(i, j), S.word(i, j)});
    }
  }
}

/// Traces query row i with key row j: pair becomes (P, dS).
template <class R, class Tile>
void trace_pair(R& recorder, const Tile& pair, const Tile& Q, const Tile& K, const Tile& dO,
                const Tile& V, const Tile& LSE, const Tile& D, std::int64_t i, std::int64_t j) {
  const std::int64_t P = pair.word(0, 0), dS = pair.word(0, 1);
  recorder.clear(P);
  recorder.clear(dS);
  for (std::int64_t l = 0; l < Q.columns(); ++l) {
    recorder.accumulate(P, {Q.word(i, l), K.word(j, l)});
  }
  recorder.form(P, {P, LSE.word(i, 0)});
  for (std::int64_t c = 0; c < V.columns(); ++c) {
    recorder.accumulate(dS, {dO.word(i, c), V.word(j, c)});
  }
  recorder.form(dS, {dS, P, D.word(i, 0)});
}

template <class R, class Tile>
void trace(R& recorder, const QueryGradients&, const Tile& dQ, const Tile& Q, const Tile& dO,
           const Tile& LSE, const Tile& D, const Tile& K, const Tile& V, const Tile& pair) {
  for (std::int64_t i = 0; i < Q.rows(); ++i) {
    trace_pair(recorder, pair, Q, K, dO, V, LSE, D, i, 0);
    for (std::int64_t l = 0; l < Q.columns(); ++l) {
      recorder.accumulate(dQ.word(i, l), {pair.word(0, 1), K.word(0, l)});
    }
  }
}

/// Key row j: the pair, and its part of dK and dV.
template <class R, class Tile>
void trace_key(R& recorder, const Tile& dK, const Tile& dV, const Tile& K, const Tile& V,
               const Tile& Q, const Tile& dO, const Tile& LSE, const Tile& D, const Tile& pair,
               std::int64_t j) {
  trace_pair(recorder, pair, Q, K, dO, V, LSE, D, 0, j);
  for (std::int64_t c = 0; c < V.columns(); ++c) {
    recorder.accumulate(dV.word(j, c), {pair.word(0, 0), dO.word(0, c)});
  }
  for (std::int64_t l = 0; l < K.columns(); ++l) {
    recorder.accumulate(dK.word(j, l), {pair.word(0, 1), Q.word(0, l)});
  }
}

template <class R, class Tile>
void trace(R& recorder, const KeyGradients&, const Tile& dK, const Tile& dV, const Tile& K,
           const Tile& V, const Tile& Q, const Tile& dO, const Tile& LSE, const Tile& D,
           const Tile& pair) {
  for (std::int64_t j = 0; j < K.rows(); ++j) {
    trace_key(recorder, dK, dV, K, V, Q, dO, LSE, D, pair, j);
  }
}

template <class R, class Tile>
void trace(R& recorder, const KeyGradientsOut&, const Tile& dK, const Tile& dV, const Tile& K,
           const Tile& V, const Tile& Q, const Tile& dO, const Tile& LSE, const Tile& D,
           const Tile& pair, const Tile& dS) {
  for (std::int64_t j = 0; j < K.rows(); ++j) {
    trace_key(recorder, dK, dV, K, V, Q, dO, LSE, D, pair, j);
    dS.send(0, j, pair.word(0, 1));
  }
}

template <class R, class Tile>
void trace(R& recorder, const PairGradients&, const Tile& dQ, const Tile& dK, const Tile& dV,
           const Tile& Q, const Tile& dO, const Tile& LSE, const Tile& D, const Tile& K,
           const Tile& V, const Tile& pair) {
  trace_key(recorder, dK, dV, K, V, Q, dO, LSE, D, pair, 0);
  for (std::int64_t l = 0; l < Q.columns(); ++l) {
    recorder.accumulate(dQ.word(0, l), {pair.word(0, 1), K.word(0, l)});
  }
}

template <class R, class Tile>
void trace(R& recorder, const RowTimesMatrix&, const Tile& out, const Tile& word, const Tile& a,
           const Tile& B) {
  for (std::int64_t j = 0; j < B.columns(); ++j) {
    recorder.clear(word.word(0, 0));
    for (std::int64_t l = 0; l < B.rows(); ++l) {
      recorder.accumulate(word.word(0, 0), {a.word(0, l), B.word(l, j)});
    }
    out.send(0, j, word.word(0, 0));
  }
}

template <class R, class Tile>
void trace(R& recorder, const Residual&, const Tile& c, const Tile& D, const Tile& E) {
  for (std::int64_t i = 0; i < c.rows(); ++i) {
    for (std::int64_t j = 0; j < c.columns(); ++j) {
      // The difference takes the place of the word that passes.
      const std::int64_t difference = E.word(i, j);
      recorder.form(difference, {difference, c.word(i, j)});
      recorder.accumulate(D.word(i, 0), {difference, c.word(i, j)});
      recorder.copy(c.word(i, j), difference);
    }
  }
}

template <class R, class Tile>
void trace(R& recorder, const WeighGradients&, const Tile& q, const Tile& S, const Tile& LSE,
           const Tile& D) {
  for (std::int64_t i = 0; i < q.rows(); ++i) {
    for (std::int64_t j = 0; j < q.columns(); ++j) {
      const std::int64_t f = S.word(i, j);
      recorder.form(f, {f, LSE.word(i, 0)});
      recorder.form(q.word(i, j), {q.word(i, j), f, D.word(i, 0)});
    }
  }
}

template <class R, class Tile>
void trace(R& recorder, const WeighRows&, const Tile& z, const Tile& A1, const Tile& c,
           const Tile& LSE, const Tile& D, const Tile& y, const Tile& h, const Tile& pair) {
  for (std::int64_t i = 0; i < A1.rows(); ++i) {
    trace_pair(recorder, pair, A1, y, c, h, LSE, D, i, 0);
    for (std::int64_t l = 0; l < z.columns(); ++l) {
      recorder.accumulate(z.word(0, l), {pair.word(0, 1), A1.word(i, l)});
    }
  }
}

}  // namespace attest::schedules
