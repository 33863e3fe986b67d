#include "gpu/testing/call.hpp"

#include <algorithm>
#include <cstring>

namespace attest::gpu::testing {
namespace {

std::size_t count_of(const std::vector<Axis>& axes) {
  std::int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.extent;
  return static_cast<std::size_t>(count);
}

}  // namespace

Values::Values(const char* name, const std::vector<Axis>& axes)
    : count_(count_of(axes)), tensor_(name, DType::f32, axes), form_(tensor_.view()) {
  std::memset(tensor_.view().data(), 0xFF, count_ * sizeof(float));
}

void Values::fill(Rng& rng) {
  auto* const values = static_cast<float*>(tensor_.view().data());
  for (std::size_t k = 0; k < count_; ++k) values[k] = static_cast<float>(rng.normal());
}

std::vector<std::uint32_t> Values::bits() const {
  std::vector<std::uint32_t> bits(count_);
  std::memcpy(bits.data(), tensor_.view().data(), count_ * sizeof(float));
  return bits;
}

Call::Call(const std::string& text)
    : problem(Problem::parse(text)),
      form(problem, 1),
      Q("Q", problem.q_axes()),
      K("K", problem.k_axes()),
      V("V", problem.v_axes()),
      O("O", problem.o_axes()),
      LSE("LSE", problem.lse_axes()),
      dO("dO", problem.o_axes()),
      dLSE("dLSE", problem.lse_axes()),
      dQ("dQ", problem.q_axes()),
      dK("dK", problem.k_axes()),
      dV("dV", problem.v_axes()) {
  Rng rng(1);
  for (Values* input : {&Q, &K, &V, &dO, &dLSE}) input->fill(rng);
}

attest_forward_args Call::forward_arguments() const {
  attest_forward_args args{};
  args.struct_size = sizeof args;
  args.problem = form.get();
  args.Q = Q.abi(), args.K = K.abi(), args.V = V.abi();
  args.O = O.abi(), args.LSE = LSE.abi();
  return args;
}

attest_backward_args Call::backward_arguments() {
  attest_backward_args args{};
  args.struct_size = sizeof args;
  args.problem = form.get();
  args.Q = Q.abi(), args.K = K.abi(), args.V = V.abi();
  args.O = O.abi(), args.LSE = LSE.abi(), args.dO = dO.abi(), args.dLSE = dLSE.abi();
  args.dQ = dQ.abi(), args.dK = dK.abi(), args.dV = dV.abi();
  workspace_.resize(count_of(problem.lse_axes()));
  args.workspace = workspace_.data();
  args.workspace_bytes = workspace_.size() * sizeof(float);
  return args;
}

std::vector<std::uint32_t> bits_of(const std::vector<const Values*>& tensors) {
  std::vector<std::uint32_t> all;
  for (const Values* tensor : tensors) {
    const std::vector<std::uint32_t> bits = tensor->bits();
    all.insert(all.end(), bits.begin(), bits.end());
  }
  return all;
}

const std::vector<const char*>& problems() {
  static const std::vector<const char*> all{"sq=33,d=8",
                                            "b=2,hq=4,hkv=2,sq=40,sk=70,d=24,dv=40,mask=causal_br",
                                            "sq=65,sk=65,d=5,mask=window_tl_7_3",
                                            "sq=100,sk=40,d=8,mask=window_tl_7_3",
                                            "b=3,hq=2,sq=20,sk=50,d=16,mask=lengths_50_0_13",
                                            "hq=3,sq=37,d=33,dv=129,softcap=3,alibi=standard"};
  return all;
}

const std::vector<const char*>& backward_problems() {
  static const std::vector<const char*> all = [] {
    std::vector<const char*> more = problems();
    for (const char* text :
         {"hq=4,hkv=2,d=8,mask=cu_3x5_0x7_40x33_9x0+causal_br", "sq=50,sk=20,d=8,mask=causal_br",
          "b=2,hq=2,sq=70,sk=90,d=8,mask=random_1_5", "sq=17,sk=33,d=264,dv=512",
          "sq=1,sk=17,d=576"}) {
      more.push_back(text);
    }
    return more;
  }();
  return all;
}

std::vector<simt::Emulation> checked_orders() {
  std::vector<simt::Emulation> all(4);
  for (simt::Emulation& emulation : all) emulation.shared_checks = simt::SharedChecks::on;
  all[1].order = simt::Order::descending;
  all[2].order = all[3].order = simt::Order::shuffled;
  all[3].seed = 7;
  all[3].threads = 2;
  return all;
}

TileWords visited_tiles(const Problem& problem, std::int64_t block_q, std::int64_t block_k) {
  TileWords words;
  for (const Sequence& sequence : problem.sequences()) {
    const std::int64_t q_length = sequence.q_length, k_length = sequence.k_length;
    std::vector<std::int64_t> keys_of(static_cast<std::size_t>(k_length / block_k + 1));
    for (std::int64_t q = 0; q < q_length; q += block_q) {
      const std::int64_t rows = std::min(block_q, q_length - q);
      bool any = false;
      for (std::int64_t k = 0; k < k_length; k += block_k) {
        const std::int64_t keys = std::min(block_k, k_length - k);
        bool seen = false;
        for (std::int64_t i = q; i < q + rows; ++i) {
          for (std::int64_t j = k; j < k + keys; ++j) seen |= problem.mask.visible(sequence, i, j);
        }
        if (!seen) continue;
        any = true;
        words.tile_queries += rows;
        words.tile_keys += keys;
        keys_of[static_cast<std::size_t>(k / block_k)] = keys;
      }
      words.queries += any ? rows : 0;
    }
    for (const std::int64_t keys : keys_of) words.keys += keys;
    words.all_keys += k_length;
  }
  return words;
}

}  // namespace attest::gpu::testing
