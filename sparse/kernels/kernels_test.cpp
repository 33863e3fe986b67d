// The kernels of this room against the definition, written out in cpu/testing/naive.
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "cpu/kernels/tiles/geometry.hpp"
#include "cpu/testing/judged_call.hpp"
#include "sparse/kernels/input_rows.hpp"
#include "sparse/kernels/kernel.hpp"

namespace attest::sparse {
namespace {

using attest::testing::Call;
using attest::testing::Dlse;
using attest::testing::for_each_element;
using attest::testing::Memory;
using attest::testing::StoredTensor;
using cpu::testing::judge;
using cpu::testing::Ratios;
using cpu::testing::run_both;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const std::vector<const attest_kernel*>& kernels() {
  static const std::vector<const attest_kernel*> list{&block_flash2_kernel(), &csr_gather_kernel()};
  return list;
}

Call::Options options_for(const attest_kernel& kernel) {
  Call::Options options;
  options.features = kernel.description.features;
  return options;
}

// Blocks below, at and above a tile of 64, ragged at the ends, with each feature.
const std::vector<std::string>& block_problems() {
  static const std::vector<std::string> list{
      "sq=130,sk=200,d=8,mask=block_64_40_1",
      "sq=256,sk=192,d=5,dv=9,mask=block_64_20_2",
      "sq=150,sk=230,d=4,mask=block_100x70_50_3",
      "sq=150,sk=90,d=4,mask=block_65x1_30_1",
      "b=2,hq=4,hkv=2,sq=31,sk=29,d=4,mask=block_3x5_40_2",
      "hq=3,sq=17,sk=33,d=8,mask=blockband_4x8_1,alibi=standard",
      "sq=70,sk=70,d=4,mask=butterfly_8x8,softcap=2",
      "sq=20,sk=30,d=4,mask=block_8_0_1",
      "sq=40,sk=30,d=4,mask=block_8_100_1,scale=-0.5",
      "sq=40,sk=50,d=4,mask=causal_br+block_8_60_1",
      "b=2,sq=40,sk=70,d=4,mask=lengths_66_20+block_16x8_50_4",
      "hq=2,hkv=1,d=4,mask=cu_3x5_0x7_70x66_4x0+block_16_50_4",
      "sq=9,sk=7,d=3,mask=block_100_100_1",
      "sq=70,sk=150,d=4,mask=causal_br",
      "b=2,sq=9,sk=70,d=4,mask=window_5_1+lengths_64_1",
      "sq=66,sk=130,d=4"};
  return list;
}

const std::vector<std::string>& pair_problems() {
  static const std::vector<std::string> list{
      "sq=130,sk=200,d=8,mask=pairs_40_1",
      "b=2,hq=4,hkv=2,sq=31,sk=29,d=4,mask=nm_2_4_3",
      "hq=3,sq=17,sk=33,d=8,mask=global_2_3_1,alibi=standard",
      "sq=70,sk=70,d=4,mask=dilated_inf_0_8,softcap=2",
      "sq=20,sk=30,d=4,mask=rows_40_2",
      "sq=20,sk=30,d=4,mask=columns_40_2",
      "hq=2,hkv=1,d=4,mask=cu_3x5_0x7_70x66_4x0+pairs_30_4",
      "b=2,hq=4,hkv=2,sq=31,sk=70,d=4,mask=random_30_1",
      "sq=40,sk=30,d=4,mask=causal_br+random_60_2",
      "sq=9,sk=7,d=4,mask=random_0_1"};
  return list;
}

TEST_CASE("kernels compute their definition", "[sparse]") {
  for (const attest_kernel* kernel : kernels()) {
    std::vector<std::string> texts = block_problems();
    if (kernel == &csr_gather_kernel()) {
      texts.insert(texts.end(), pair_problems().begin(), pair_problems().end());
    }
    for (const std::string dtype : {"f32", "bf16", "f16"}) {
      Ratios worst;
      std::uint64_t seed = 0;
      for (const std::string& text : texts) {
        const Problem problem = Problem::parse(text + ",dtype=" + dtype);
        for (const Memory memory : {Memory::spelled, Memory::scattered}) {
          ++seed;
          if (dtype != "f32" && !attest::testing::is_turn(seed, 2)) continue;
          INFO(kernel->description.name << " " << problem.to_string() << " seed " << seed);
          Call::Options options = options_for(*kernel);
          options.memory = memory;
          options.threads = 1 + static_cast<std::int32_t>(seed % 3);
          options.dlse = seed % 4 < 2 ? Dlse::given : Dlse::absent;
          Call call(problem, seed, options);
          const bool drawn = problem.mask.boolean && problem.mask.sparsity() == nullptr;
          REQUIRE((call.form.get()->mask.boolean != nullptr) == drawn);
          run_both(call, *kernel);
          const Ratios ratios = judge(call);
          CHECK(ratios.O <= 1);
          CHECK(ratios.LSE <= 1);
          CHECK(ratios.dQ <= 1);
          CHECK(ratios.dK <= 1);
          CHECK(ratios.dV <= 1);
          worst.include(ratios);
        }
      }
      CHECK(worst.worst() > 0);  // something was computed
      std::printf("%s %s: worst error / bound: O %.2f LSE %.2f dQ %.2f dK %.2f dV %.2f\n",
                  kernel->description.name, dtype.c_str(), worst.O, worst.LSE, worst.dQ, worst.dK,
                  worst.dV);
    }
  }
}

TEST_CASE("rows without a listed key are zero and give no gradient", "[sparse]") {
  const Problem problem = Problem::parse("b=2,hq=2,sq=20,sk=30,d=4,mask=block_8_0_1");
  for (const attest_kernel* kernel : kernels()) {
    INFO(kernel->description.name);
    Call call(problem, 5, options_for(*kernel));
    run_both(call, *kernel);
    const auto all_zero = [](const TensorView& view) {
      bool zero = true;
      for_each_element(view, [&](auto... index) { zero = zero && view(index...) == 0; });
      return zero;
    };
    CHECK(all_zero(call.O.view()));
    CHECK(all_zero(call.dQ.view()));
    CHECK(all_zero(call.dK.view()));
    CHECK(all_zero(call.dV.view()));
    for_each_element(call.LSE.view(),
                     [&](auto... index) { CHECK(call.LSE.view()(index...) == -kInfinity); });
  }
}

TEST_CASE("the number of threads changes no bit", "[sparse]") {
  const auto check = [](const attest_kernel& kernel, const std::string& mask) {
    const Problem problem = Problem::parse("b=2,hq=4,hkv=2,sq=140,sk=150,d=8,mask=" + mask);
    Call first(problem, 7, options_for(kernel));
    run_both(first, kernel);
    for (const std::int32_t threads : {2, 3, 5}) {  // backward in one pass, then in two
      INFO(kernel.description.name << " " << mask << " threads " << threads);
      Call::Options options = options_for(kernel);
      options.threads = threads;
      Call other(problem, 7, options);
      run_both(other, kernel);
      CHECK(first.output_bits() == other.output_bits());
    }
  };
  for (const attest_kernel* kernel : kernels()) check(*kernel, "causal_br+block_16_50_1");
  check(csr_gather_kernel(), "pairs_5_1");
  check(csr_gather_kernel(), "pairs_15_1");  // some tiles, some single pairs
}

TEST_CASE("where tensors lie changes no bit", "[sparse]") {
  std::uint64_t seed = 0;  // of values and memory
  const auto check = [&seed](const attest_kernel& kernel, const std::string& text) {
    ++seed;
    INFO(kernel.description.name << " " << text << " seed " << seed);
    const Problem problem = Problem::parse(text);
    Call::Options options = options_for(kernel);
    Call packed(problem, seed, options);
    options.memory = Memory::scattered;
    Call scattered(problem, seed, options);
    run_both(packed, kernel);
    run_both(scattered, kernel);
    CHECK(packed.output_bits() == scattered.output_bits());
  };
  for (const std::string& text : block_problems()) check(block_flash2_kernel(), text);
  for (const std::string& text : pair_problems()) check(csr_gather_kernel(), text);
  check(csr_gather_kernel(), "sq=130,sk=200,d=8,mask=block_64_40_1");
}

// Poisons the rows of K and V with is_poisoned(batch entry, key); how many.
template <class IsPoisoned>
std::int64_t poison(const Call& call, const IsPoisoned& is_poisoned) {
  const attest_problem& form = *call.form.get();
  std::int64_t rows = 0;
  for (std::int64_t b = 0; b < form.batch; ++b) {
    const cpu::Batch batch = cpu::batch_of(form, b);
    for (std::int64_t j = 0; j < batch.k_length; ++j) {
      if (!is_poisoned(b, j)) continue;
      ++rows;
      for (const StoredTensor* input : {&call.K, &call.V}) {
        for (std::int64_t head = 0; head < form.num_heads_kv; ++head) {
          for (std::int64_t c = 0; c < input->view().extent(3); ++c) {
            input->view().set(std::numeric_limits<double>::quiet_NaN(), batch.tensor_batch,
                              batch.k_begin + j, head, c);
          }
        }
      }
    }
  }
  return rows;
}

// Poisoned rows change no bit of what the kernel writes, whatever the memory and the type.
template <class IsPoisoned>
void check_poisoned(const attest_kernel& kernel, const std::string& text,
                    const IsPoisoned& is_poisoned) {
  for (const std::string dtype : {"f32", "bf16", "f16"}) {
    for (const Memory memory : {Memory::spelled, Memory::scattered}) {
      const Problem problem = Problem::parse(text + ",dtype=" + dtype);
      INFO(kernel.description.name << " " << problem.to_string());
      Call::Options options = options_for(kernel);
      options.memory = memory;
      Call clean(problem, 9, options), poisoned(problem, 9, options);
      REQUIRE(poison(poisoned, [&](std::int64_t b, std::int64_t j) {
                return is_poisoned(problem, b, j);
              }) > 0);
      run_both(clean, kernel);
      run_both(poisoned, kernel);
      CHECK(clean.output_bits() == poisoned.output_bits());
    }
  }
}

TEST_CASE("keys that no query sees change no bit", "[sparse]") {
  const auto is_unseen = [](const Problem& problem, std::int64_t b, std::int64_t j) {
    const Sequence sequence = problem.sequences()[static_cast<std::size_t>(b)];
    for (std::int64_t i = 0; i < sequence.q_length; ++i) {
      if (problem.mask.visible(sequence, i, j)) return false;
    }
    return true;
  };
  // Unseen keys: of no list; beyond the band; of no list but in dense tiles; beyond the band in
  // dense tiles; of queries alone that a packed entry does not have; beyond the band, and the
  // length, of one entry.
  for (const std::string text :
       {"sq=24,sk=24,d=4,mask=documents_8x8_0x8_16x8", "sq=8,sk=24,d=4,mask=causal_tl+pairs_9_1",
        "sq=70,sk=24,d=4,mask=columns_70_3", "sq=24,sk=48,d=4,mask=causal_tl+pairs_60_1",
        "d=4,mask=cu_64x64_3x64+pairs_30_1",
        "b=3,hq=4,hkv=2,sq=24,sk=48,d=4,mask=causal_br+lengths_48_20_3+pairs_60_1"}) {
    check_poisoned(csr_gather_kernel(), text, is_unseen);
  }
}

TEST_CASE("keys that do not exist are never read", "[sparse]") {
  const auto is_absent = [](const Problem& problem, std::int64_t b, std::int64_t j) {
    return j >= problem.sequences()[static_cast<std::size_t>(b)].visible_keys;
  };
  for (const std::string pattern : {"block_16x8_50_4", "block_64_100_1", "pairs_5_1"}) {
    for (const attest_kernel* kernel : kernels()) {
      if (kernel == &block_flash2_kernel() && pattern == "pairs_5_1") continue;
      check_poisoned(*kernel, "b=2,hq=4,hkv=2,sq=40,sk=70,d=4,mask=lengths_66_20+" + pattern,
                     is_absent);
    }
  }
}

TEST_CASE("one head may stand for all through stride zero", "[sparse]") {
  for (const attest_kernel* kernel : kernels()) {
    INFO(kernel->description.name);
    const Problem problem = Problem::parse("hq=3,sq=20,sk=70,d=4,mask=block_8_50_1");
    Call copied(problem, 13, options_for(*kernel)), repeated(problem, 13, options_for(*kernel));
    for (const StoredTensor* input : {&copied.K, &copied.V}) {
      for_each_element(input->view(),
                       [&](std::int64_t b, std::int64_t j, std::int64_t head, std::int64_t c) {
                         input->view().set(input->view()(b, j, 0, c), b, j, head, c);
                       });
    }
    repeated.K.abi()->strides[2] = 0;
    repeated.V.abi()->strides[2] = 0;
    run_both(copied, *kernel);
    run_both(repeated, *kernel);
    CHECK(copied.output_bits() == repeated.output_bits());
  }
}

TEST_CASE("rows of float32 are read where they lie", "[sparse]") {
  const auto is_packed = [](const std::string& dtype, std::int64_t stride) {
    const Problem problem = Problem::parse("b=2,hq=2,sq=3,sk=5,d=4,dtype=" + dtype);
    Call call(problem, 1, {});
    attest_tensor V = *call.V.abi();
    std::vector<std::int64_t> strides(V.strides, V.strides + 4);
    strides[3] = stride;
    V.strides = strides.data();
    const StoredRows stored = stored_keys(*call.form.get());
    std::vector<float> space(static_cast<std::size_t>(InputRows::floats(stored, 4)));
    Pieces pieces(space.data());
    const InputRows rows(V, stored, pieces);
    CHECK((pieces.rest() != space.data()) == rows.is_packed());
    if (!rows.is_packed()) {
      const float* const third = rows.at(1, 2, 1)[1];
      CHECK(*third == static_cast<float>(call.V.view()(1, 3, 1, 0)));
    }
    return rows.is_packed();
  };
  CHECK_FALSE(is_packed("f32", 1));
  CHECK(is_packed("f32", 2));
  CHECK(is_packed("bf16", 1));
  CHECK(is_packed("f16", 1));
}

TEST_CASE("what is not claimed is refused", "[sparse]") {
  for (const attest_kernel* kernel : kernels()) {
    Call call(Problem::parse("sq=5,d=4,dtype=f64"), 1, {});
    CHECK(call.forward(*kernel) == ATTEST_UNSUPPORTED);
    CHECK(call.backward(*kernel) == ATTEST_UNSUPPORTED);
  }
}

}  // namespace
}  // namespace attest::sparse
