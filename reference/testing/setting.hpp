#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/rng.hpp"
#include "reference/exact/attention.hpp"
#include "reference/exact/oracle.hpp"

/// Inputs that the tests of this room share.
namespace attest::reference {

inline Tensor random_tensor(const char* name, std::vector<Axis> axes, std::uint64_t seed,
                            double factor) {
  Tensor tensor(name, DType::f64, std::move(axes));
  Rng rng(seed);
  double* values = tensor.doubles();
  for (std::int64_t e = 0; e < tensor.view().size(); ++e) values[e] = factor * rng.normal();
  return tensor;
}

/// A problem with normal random values; Q and V scaled.
struct Setting {
  Problem problem;
  Tensor Q, K, V, dO, dLSE;

  Setting(const std::string& text, double q_factor, double v_factor, std::uint64_t seed)
      : problem(Problem::parse(text)),
        Q(random_tensor("Q", problem.q_axes(), seed, q_factor)),
        K(random_tensor("K", problem.k_axes(), seed + 1, 1)),
        V(random_tensor("V", problem.v_axes(), seed + 2, v_factor)),
        dO(random_tensor("dO", problem.o_axes(), seed + 3, 1)),
        dLSE(random_tensor("dLSE", problem.lse_axes(), seed + 4, 1)) {}

  Cotangents cotangents() const { return {dO.view(), &dLSE.view()}; }
};

/// The same inputs for the oracle.
struct ExactInputs {
  oracle::Array Q, K, V, dO, dLSE;

  explicit ExactInputs(const Setting& in)
      : Q(in.Q.view()), K(in.K.view()), V(in.V.view()), dO(in.dO.view()), dLSE(in.dLSE.view()) {}
};

/// One small problem for every feature, and some of them together.
inline const std::vector<std::string>& feature_problems() {
  static const std::vector<std::string> problems{
      "b=2,hq=4,hkv=2,sq=7,sk=9,d=5,dv=3", "hq=3,hkv=1,sq=9,sk=7,d=4,dv=6,mask=causal_br",
      "hq=2,sq=6,sk=9,d=4,mask=causal_tl,scale=-0.7",
      "b=2,sq=6,sk=8,d=4,mask=lengths_5_8+window_2_1",
      "b=2,hq=2,sq=5,sk=7,d=3,mask=lengths_0_4+causal_br",
      "hq=2,hkv=1,d=4,mask=cu_3x5_0x4_4x2_2x0+causal_br", "sq=9,sk=6,d=3,mask=window_tl_2_inf",
      "sq=8,sk=8,d=3,mask=random_40_3,softcap=2",
      "hq=4,sq=6,sk=10,d=4,mask=causal_br,alibi=standard",
      "hq=2,hkv=1,d=3,mask=cu_4x6_3x3,alibi=standard",
      "hq=4,hkv=2,sq=6,sk=6,d=4,softcap=1.5,alibi=standard,scale=0.9",
      "hq=2,sq=4,sk=7,d=3,softcap=30,scale=-1.1,mask=causal_br", "sq=5,sk=6,d=4,scale=0",
      "sq=1,sk=33,d=8", "sq=1,sk=1,d=1", "sq=64,sk=40,d=2,dv=1",
      // 300 stacked rows: three row blocks, whose shares of dK and dV are added up.
      "hq=3,hkv=1,sq=100,sk=3,d=2,dv=1",
      // Seed 3: sinks of usual size, one of -inf and one above all scores.
      "b=2,hq=6,hkv=2,sq=5,sk=7,d=3,sinks=drawn_3",
      "hq=4,sq=9,sk=6,d=4,mask=causal_br,sinks=drawn_3,softcap=2,alibi=standard,scale=-0.7",
      "hq=6,hkv=3,d=3,mask=cu_4x6_0x3_3x0,sinks=drawn_3", "hq=2,sq=3,sk=4,d=2,sinks=off",
      // Biases of each axis and of none, with holes, beside all else.
      "b=2,hq=4,hkv=2,sq=5,sk=7,d=3,bias=bhqk_drawn_2", "b=2,hq=2,sq=5,sk=6,d=3,bias=k_drawn_3",
      "b=2,hq=2,sq=5,sk=6,d=3,mask=causal_br,bias=hq_drawn_4",
      "b=2,hq=4,hkv=2,sq=6,sk=5,d=3,bias=hqk_holes_2,softcap=2,alibi=standard,scale=-0.7",
      "b=3,hq=2,sq=4,sk=5,d=2,bias=bk_holes_3,sinks=drawn_3",
      "hq=2,hkv=1,d=3,mask=cu_4x6_0x3_3x0_2x5+causal_br,bias=bhk_drawn_5",
      "hq=2,sq=4,sk=5,d=2,bias=1_drawn_6",
      // Masks of heads, query lengths of several entries beside sinks, windows on one side.
      "b=2,hq=4,hkv=2,sq=5,sk=7,d=3,mask=causal_br,head_mask=bhqk_60_7,sinks=drawn_3",
      "hq=2,hkv=1,d=3,mask=cu_4x6_0x3_2x5,head_mask=bhk_60_2,bias=hk_holes_2",
      "b=5,hq=2,sq=5,sk=6,d=3,mask=causal_br,sinks=drawn_3,query_lengths=drawn_3",
      "hq=2,sq=5,sk=7,d=3,mask=window_-1_3", "hq=2,sq=5,sk=5,d=3,mask=window_tl_inf_-1"};
  return problems;
}

}  // namespace attest::reference
