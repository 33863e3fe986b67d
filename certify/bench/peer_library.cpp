#include "certify/bench/peer_library.hpp"

#include <deque>
#include <exception>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "certify/bench/eigen_attention.hpp"
#include "certify/bench/peers/library_products.hpp"
#include "certify/bench/read_bandwidth.hpp"
#include "certify/bench/timing/timing.hpp"
#include "core/error.hpp"
#include "core/registry.hpp"
#include "cpu/register.hpp"
#include "schedules/register.hpp"
#include "sparse/register.hpp"

namespace attest::certify {
namespace {

struct Peer {
  std::string name;
  int (*call)(const attest_peer_call*);
  attest_kernel kernel;
};

void* data(const attest_tensor* tensor) {
  return tensor == nullptr ? nullptr : static_cast<char*>(tensor->data) + tensor->byte_offset;
}

template <class Arguments>
attest_peer_call call_of(const Arguments& args) {
  const attest_problem& p = *args.problem;
  attest_peer_call call{};
  call.Q = data(args.Q), call.K = data(args.K), call.V = data(args.V), call.O = data(args.O);
  call.LSE = data(args.LSE);
  call.batch = p.batch, call.heads_q = p.num_heads_q, call.heads_kv = p.num_heads_kv;
  call.seqlen_q = p.seqlen_q, call.seqlen_k = p.seqlen_k;
  call.head_dim_qk = p.head_dim_qk, call.head_dim_v = p.head_dim_v;
  call.dtype = static_cast<std::int32_t>(p.dtype);
  call.causal = p.mask.window_right == 0 ? 1 : 0, call.threads = p.num_threads;
  return call;
}

attest_status status_of(int result) { return result == 0 ? ATTEST_OK : ATTEST_FAILED; }

attest_status forward(const void* self, const attest_forward_args* args) {
  const attest_peer_call call = call_of(*args);
  return status_of(static_cast<const Peer*>(self)->call(&call));
}

attest_status backward(const void* self, const attest_backward_args* args) {
  attest_peer_call call = call_of(*args);
  call.dO = data(args->dO), call.dQ = data(args->dQ), call.dK = data(args->dK);
  call.dV = data(args->dV), call.backward = 1;
  return status_of(static_cast<const Peer*>(self)->call(&call));
}

std::deque<Peer>& peers() {  // they do not move
  static std::deque<Peer> all;
  return all;
}

// The peers over products of libraries.
const std::vector<attest_kernel>& product_kernels() {
  static const std::vector<attest_kernel> all = [] {
    std::vector<attest_kernel> made;
    for (PeerLibrary& library : peer_libraries()) made.push_back(flash_on(library));
    return made;
  }();
  return all;
}

Registry& registry() {
  static Registry all = [] {
    Registry made;
    register_cpu(made);
    register_dense_schedule_kernels(made);
    register_sparse(made);
    made.add(&eigen_kernel());
    for (const attest_kernel& kernel : product_kernels()) made.add(&kernel);
    return made;
  }();
  return all;
}

nlohmann::json timed(const std::string& names, const Problem& problem, const Problem& smaller,
                     Direction direction, std::int32_t threads, int rounds, std::uint64_t seed) {
  std::vector<const attest_kernel*> kernels;
  nlohmann::json refused = nlohmann::json::object(), times = nlohmann::json::object();
  std::istringstream words(names);
  for (std::string name; words >> name;) {
    const attest_kernel& kernel = registry().find(name);
    try {
      verify({&kernel}, smaller, seed);
      kernels.push_back(&kernel);
    } catch (const InvalidProblem& error) {
      refused[name] = error.what();
    }
  }
  nlohmann::json peak = nlohmann::json::array(), bandwidth = nlohmann::json::array();
  if (!kernels.empty()) {
    const Measurement m = measure(kernels, problem, direction, threads, rounds, seed);
    for (const KernelTiming& timing : m.timings) times[timing.kernel] = timing.seconds;
    peak = m.peak_flops;
    for (int round = 0; round < rounds; ++round) bandwidth.push_back(read_bandwidth(threads));
  }
  return {{"problem", problem.to_string()},
          {"cpu_target", cpu_target()},
          {"useful_flops", useful_flops(problem, direction)},
          {"times", times},
          {"refused", refused},
          {"peak_flops", peak},
          {"read_bandwidth", bandwidth}};
}

}  // namespace
}  // namespace attest::certify

extern "C" __attribute__((visibility("default"))) int attest_bench_add_peer(
    const char* name, uint32_t directions, uint32_t dtypes, int has_lse, float narrow_exp_ulps,
    int (*call)(const attest_peer_call*)) {
  using namespace attest::certify;
  for (const Peer& known : peers()) {
    if (known.name == name) return 0;
  }
  Peer& peer = peers().emplace_back(Peer{name, call, {}});
  attest_kernel& k = peer.kernel;
  k.struct_size = sizeof k;
  k.abi_version = ATTEST_ABI_VERSION;
  k.self = &peer;
  k.description.struct_size = sizeof k.description;
  k.description.name = peer.name.c_str();
  k.description.summary = "a peer that is timed beside the kernels";
  k.description.device = ATTEST_CPU;
  k.description.directions = directions;
  k.description.dtypes = dtypes;
  k.description.features = ATTEST_CAUSAL_TOP_LEFT | ATTEST_CAUSAL_BOTTOM_RIGHT | ATTEST_GQA |
                           ATTEST_CROSS_LENGTHS | (has_lse != 0 ? ATTEST_LSE : 0);
  k.description.numerics.struct_size = sizeof k.description.numerics;
  k.description.numerics.p_cast = ATTEST_INPUT_DTYPE;  // as their products take bf16 and f16
  for (const attest_dtype narrow : {ATTEST_BF16, ATTEST_F16}) {
    k.description.numerics.exp_ulps_of[narrow] = narrow_exp_ulps;
  }
  k.description.numerics.exp_zero_not_one = narrow_exp_ulps > 0 ? 1 : 0;
  k.workspace_bytes = [](const void*, const attest_problem*, std::uint32_t) {
    return std::size_t{0};
  };
  k.forward = forward;
  k.backward = backward;
  registry().add(&k);
  return 1;
}

extern "C" __attribute__((visibility("default"))) const char* attest_bench_peers() {
  static const std::string names = [] {
    std::string all;
    for (const attest_kernel& kernel : attest::certify::product_kernels()) {
      all += (all.empty() ? "" : " ") + std::string(kernel.description.name);
    }
    return all;
  }();
  return names.c_str();
}

extern "C" __attribute__((visibility("default"))) const char* attest_bench_run(
    const char* names, const char* problem, const char* smaller, int backward, int32_t threads,
    int32_t rounds, uint64_t seed) {
  using namespace attest;
  static std::string text;
  try {
    text = certify::timed(names, Problem::parse(problem), Problem::parse(smaller),
                          backward != 0 ? Direction::backward : Direction::forward, threads, rounds,
                          seed)
               .dump();
  } catch (const std::exception& error) {
    text = nlohmann::json{{"error", error.what()}}.dump();
  }
  return text.c_str();
}
