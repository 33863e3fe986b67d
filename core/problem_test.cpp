#include "core/problem.hpp"

#include <limits>
#include <set>

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest {
namespace {

TEST_CASE("omitted keys have the documented defaults", "[problem]") {
  CHECK(Problem::parse("sq=17,d=64").to_string() ==
        "b=1,hq=1,hkv=1,sq=17,sk=17,d=64,dv=64,mask=none,dtype=f32,layout=bshd,scale=1/sqrt(d)");
  const Problem problem = Problem::parse("hq=8,hkv=2,sq=3,d=16");
  CHECK(problem.scale() == 0.25);
  CHECK(problem.group_size() == 4);
  CHECK(problem.alibi_slopes().empty());
}

TEST_CASE("canonical problems round trip", "[problem]") {
  for (const char* text :
       {"b=2,hq=8,hkv=2,sq=17,sk=33,d=64,dv=32,mask=causal_br,dtype=bf16,layout=bhsd,scale=-0.125",
        "b=1,hq=2,hkv=1,sq=4,sk=4,d=3,dv=3,mask=none,dtype=f16,layout=bshd,scale=0,softcap=30",
        "b=3,hq=1,hkv=1,sq=5,sk=7,d=2,dv=2,mask=cu_3x5_0x7_5x0+causal_br,dtype=f64,layout=thd,"
        "scale=1/sqrt(d),alibi=standard",
        "b=1,hq=3,hkv=3,sq=4,sk=4,d=64,dv=64,mask=none,dtype=f32,layout=bshd,"
        "scale=1/sqrt(d),alibi=drawn_18446744073709551615",
        "b=2,hq=1,hkv=1,sq=4,sk=9,d=2,dv=2,mask=lengths_9_0,dtype=f32,layout=bshd,"
        "scale=0.1,strides=huge",
        "b=1,hq=1,hkv=1,sq=4,sk=9,d=2,dv=2,mask=none,dtype=f32,layout=bshd,scale=0.1,"
        "paged_kv=3_18446744073709551615_70000,strides=padded"}) {
    CHECK(Problem::parse(text).to_string() == text);
    CHECK(Problem::parse("v1;" + std::string(text)).to_string() == text);
  }
}

TEST_CASE("packed sequences determine batch, sizes and layout", "[problem]") {
  const Problem problem = Problem::parse("d=8,mask=cu_3x5_2x7");
  CHECK(problem.batch == 2);
  CHECK(problem.seqlen_q == 3);
  CHECK(problem.seqlen_k == 7);
  CHECK(problem.layout == Layout::thd);
  CHECK(problem.tensor_batch() == 1);
  CHECK(problem.tensor_seqlen_q() == 5);
  CHECK(problem.tensor_seqlen_k() == 12);
  const auto sequences = problem.sequences();
  REQUIRE(sequences.size() == 2);
  CHECK(sequences[1].q_begin == 3);
  CHECK(sequences[1].k_begin == 5);
  CHECK(sequences[1].visible_keys == 7);
  CHECK(problem.visible_pairs() == 3 * 5 + 2 * 7);
}

TEST_CASE("visible pairs of masks", "[problem]") {
  CHECK(Problem::parse("sq=4,d=1,mask=causal_br").visible_pairs() == 10);
  CHECK(Problem::parse("b=2,sq=4,d=1,mask=lengths_1_3").visible_pairs() == 16);
  CHECK(Problem::parse("sq=4,d=1,mask=random_0_1").visible_pairs() == 0);
}

TEST_CASE("ALiBi slopes are the geometric sequence", "[problem]") {
  const auto slopes = Problem::parse("hq=8,sq=1,d=1,alibi=standard").alibi_slopes();
  REQUIRE(slopes.size() == 8);
  CHECK(slopes[0] == 0.5f);
  CHECK(slopes[7] == 0x1p-8f);
}

TEST_CASE("drawn ALiBi slopes have all bits of a float", "[problem]") {
  const Problem problem = Problem::parse("hq=8,sq=1,d=1,alibi=drawn_7");
  CHECK(Problem::parse(problem.to_string()).alibi_slopes() == problem.alibi_slopes());
  CHECK(Problem::parse("hq=8,sq=1,d=1,alibi=drawn_8").alibi_slopes() != problem.alibi_slopes());
  constexpr float kLeast = 0x1p-8f, kMost = 1;
  for (const float slope : problem.alibi_slopes()) {
    CHECK((slope >= kLeast && slope <= kMost));
    const auto exact = static_cast<double>(slope);
    for (const DType dtype : {DType::bf16, DType::f16}) CHECK(round_to(dtype, exact) != exact);
  }
}

TEST_CASE("sinks differ in every head", "[problem]") {
  CHECK(Problem::parse("hq=8,sq=1,d=1").sink_scores().empty());
  constexpr float kOff = -std::numeric_limits<float>::infinity();
  CHECK(Problem::parse("hq=3,sq=1,d=1,sinks=off").sink_scores() == std::vector<float>(3, kOff));
  std::set<float> finite;
  bool off = false, above = false;
  for (int seed = 0; seed < 20; ++seed) {
    const Problem problem = Problem::parse("hq=8,sq=1,d=1,sinks=drawn_" + std::to_string(seed));
    CHECK(Problem::parse(problem.to_string()).sink_scores() == problem.sink_scores());
    for (const float sink : problem.sink_scores()) {
      off = off || sink == kOff;
      above = above || sink > 8;
      if (sink != kOff) CHECK(finite.insert(sink).second);
    }
  }
  CHECK((off && above));
}

TEST_CASE("impossible problems are refused with the remedy", "[problem]") {
  const auto refused = [](const std::string& text, const std::string& message) {
    INFO(text);
    CHECK_THROWS_WITH(Problem::parse(text), Catch::Contains(message));
    CHECK_THROWS_AS(Problem::parse(text), InvalidProblem);
  };
  refused("hq=6,hkv=4,sq=1,d=1", "not a multiple of num_heads_kv=4");
  refused("b=0,sq=1,d=1", "batch (b) is 0");
  refused("sq=-1,d=1", "seqlen_q (sq) is -1");
  refused("sq=1,d=0", "head_dim_qk (d) is 0");
  refused("sq=1,d=1,splits=-1", "num_splits (splits) is -1");
  refused("sq=1,d=1,dv=0", "head_dim_v (dv) is 0");
  refused("sq=4294967296,sk=4294967296,d=1", "overflow");
  refused("sq=9223372036854775808,d=1", "not an integer below 2^63");
  refused("sq=1,d=1,scale=nan", "scale is not finite");
  refused("sq=1,d=1,scale=big", "scale=big is not a number");
  refused("sq=1,d=1,softcap=-1", "softcap is -1; it must be finite and >= 0");
  refused("sq=1,d=1,scale=1e39", "scale is 1e+39, which is infinite in float32");
  refused("sq=1,d=1,scale=-1e308,dtype=bf16", "scale is -1e+308, which is infinite in float32");
  refused("sq=1,d=1,scale=1e-39", "scale is 1e-39, which is not normal in float32");
  refused("sq=1,d=1,softcap=1e39,dtype=f16", "softcap is 1e+39, which is infinite in float32");
  refused("sq=1,d=1,softcap=1e-300", "softcap is 1e-300, which is not normal in float32");
  refused("v2;sq=1,d=1", "format 'v2' is unknown; this program reads format v1 only");
  refused("v;sq=1,d=1", "format 'v' is unknown");
  refused("v1;v1;sq=1,d=1", "unknown key 'v1;sq'");
  refused("sq=1,d=1,dtype=fp32", "did you mean 'f32'");
  refused("sq=1,d=1,layout=bsdh", "did you mean 'bshd'");
  refused("sq=1,d=1,alibi=standart", "did you mean 'standard'");
  refused("sq=1,d=1,alibi=drawn_x", "needs a seed below 2^64 after drawn_");
  refused("sq=1,d=1,alibi=3", "alibi=3 is unknown (choices: none standard drawn_SEED)");
  refused("sq=1,d=1,sinks=3", "sinks=3 is unknown (choices: none off drawn_SEED)");
  refused("sq=1,d=1,sinks=drawn", "did you mean 'drawn_SEED'");
  refused("sq=1,d=1,sinks=drawn_SEED", "needs a seed below 2^64 after drawn_");
  refused("sq=1,d=1,heads=2", "unknown key 'heads'");
  refused("seq=1,d=1", "did you mean 'sq'");
  refused("SQ=1,d=1", "did you mean 'sq'");
  for (const char* key : {"dropout", "dropout_p", "p_dropout"}) {
    refused(std::string("sq=1,d=1,") + key + "=0.1",
            "does not have dropout; a mask of the kept pairs");
  }
  for (const char* type : {"fp8", "e4m3", "e4m3fn", "e5m2", "fp8_e4m3", "fp8_e5m2", "float8_e4m3fn",
                           "float8_e5m2", "f8"}) {
    refused(std::string("sq=1,d=1,dtype=") + type, "does not have fp8");
  }
  refused("sq=1,d=1,fp8=1", "does not have fp8");
  refused("sq=1,d=1,dtype=f6", "dtype=f6 is unknown");
  for (const char* key : {"descale", "q_descale", "k_descale", "v_descale"}) {
    refused(std::string("sq=1,d=1,") + key + "=2", "does not have descales, which come with fp8");
  }
  for (const char* key : {"kv_dtype", "k_dtype", "v_dtype"}) {
    refused(std::string("sq=1,d=1,") + key + "=bf16",
            "does not have K and V of another type than Q");
  }
  for (const char* key : {"o_dtype", "out_dtype"}) {
    refused(std::string("sq=1,d=1,") + key + "=f32", "does not have O of another type than Q");
  }
  refused("sq=1,d=1,page_size=16", "does not have this key; pages of 16 keys");
  for (const char* pages : {"0", "x", "16_", "16_x", "16_7_", "16_7_8_9", "2147483648", "-1"}) {
    refused(std::string("sq=1,d=1,paged_kv=") + pages, "needs a page size from 1 on");
  }
  refused("sq=1,d=4294967296,paged_kv=2147483647_0_2147483647", "K in pages");
  refused("sq=1,sq=2,d=1", "given twice");
  refused("sq", "is not key=value");
  refused("sq=1,=2,d=1", "'=2' is not key=value");
  refused("sq=1,d=1,mask=causal_br+file_a,b.txt", "a path in a mask cannot hold a comma");
  refused("sq=1,d=1,mask=file_a+causal_br,b.txt", "write for example");
  for (const char* text : {"sq=1,d=1,", ",sq=1,d=1", "sq=1,,d=1", ",", "v1;sq=1,d=1,"}) {
    refused(text, "nothing stands before, between or after commas");
  }
  refused("d=4", "problem: sq is needed; write for example sq=128,d=64");
  refused("sq=-3", "problem: d is needed");
  refused("hq=2", "sq and d are needed");
  refused("", "sq and d are needed");
  refused("sq=2,d=1,layout=thd", "needs packed sequences");
  refused("d=1,mask=cu_2x2,layout=bshd", "layout is bshd");
  refused("d=1,sq=3,mask=cu_2x2", "leave sq and sk out");
  refused("d=1,b=3,mask=cu_2x2", "batch is 3");
  refused("b=3,sq=2,d=1,mask=lengths_1_2", "pass b=2");
  refused("b=1,sq=2,d=1,mask=lengths_3", "exceeds seqlen_k=2");
  refused("sq=100000,d=1,mask=random_50_1", "boolean masks are limited");
}

TEST_CASE("extreme scales and softcaps are problems where the dtype can hold them", "[problem]") {
  for (const char* text :
       {"sq=1,d=1,scale=1e39,dtype=f64", "sq=1,d=1,softcap=1e308,dtype=f64", "sq=1,d=1,scale=-1e38",
        "sq=1,d=1,softcap=1e-37,dtype=f16", "sq=1,d=1,scale=0"}) {
    INFO(text);
    CHECK_NOTHROW(Problem::parse(text));
  }
}

TEST_CASE("a modified ABI problem is noticed", "[problem]") {
  const Problem padded = Problem::parse("b=2,hq=2,sq=3,sk=3,d=4,mask=lengths_3_2,alibi=standard"),
                masked = Problem::parse("hq=2,sq=3,sk=3,d=4,mask=random_50_1"),
                packed = Problem::parse("d=4,mask=cu_3x5_2x2"),
                paged = Problem::parse("b=2,sq=3,d=4,paged_kv=2_1");
  const auto finding = [](const Problem& problem, const auto& modify) {
    const std::string spelling = problem.to_string();
    const std::int64_t pairs = problem.visible_pairs();
    const AbiProblem form(problem, 1);
    CHECK(form.changed().empty());
    modify(*const_cast<attest_problem*>(form.get()));
    CHECK(problem.to_string() == spelling);
    CHECK(problem.visible_pairs() == pairs);  // the caller's own arrays are safe
    return form.changed();
  };
  const auto write = [](const auto* list, std::size_t index) -> auto& {
    return const_cast<std::remove_const_t<std::remove_pointer_t<decltype(list)>>&>(list[index]);
  };
  CHECK(finding(padded, [&](attest_problem& p) { --write(p.mask.key_lengths, 1); }) ==
        "input key_lengths was modified");
  CHECK(finding(padded, [&](attest_problem& p) { write(p.alibi_slopes, 1) *= -1; }) ==
        "input alibi_slopes was modified");
  CHECK(finding(paged, [&](attest_problem& p) { ++write(p.paged_kv->block_table, 1); }) ==
        "input block_table was modified");
  CHECK(finding(paged, [&](attest_problem& p) {
          ++const_cast<attest_paged_kv*>(p.paged_kv)->page_size;
        }) == "input paged_kv was modified");
  CHECK(finding(packed, [&](attest_problem& p) { --write(p.mask.cu_seqlens_q, 1); }) ==
        "input cu_seqlens_q was modified");
  CHECK(finding(packed, [&](attest_problem& p) { --write(p.mask.cu_seqlens_k, 1); }) ==
        "input cu_seqlens_k was modified");
  CHECK(finding(masked, [&](attest_problem& p) { write(p.mask.boolean, 8) ^= 1; }) ==
        "input boolean mask was modified");
  CHECK(finding(masked, [&](attest_problem& p) { p.softmax_scale = 1; }) ==
        "the problem was modified");
  CHECK(finding(masked, [&](attest_problem& p) { p.mask.boolean = nullptr; }) ==
        "the problem was modified");
}

TEST_CASE("the ABI form says the same", "[problem]") {
  const Problem problem = Problem::parse(
      "b=2,hq=4,hkv=2,sq=3,sk=5,d=8,dv=6,mask=lengths_4_5+window_2_1,dtype=bf16,scale=-0.5,"
      "softcap=20,alibi=standard,splits=4");
  const AbiProblem form(problem, 3);
  const attest_problem& abi_form = *form.get();
  CHECK(abi_form.num_splits == 4);
  CHECK(abi_form.struct_size == sizeof(attest_problem));
  CHECK(abi_form.batch == 2);
  CHECK(abi_form.num_heads_q == 4);
  CHECK(abi_form.num_heads_kv == 2);
  CHECK(abi_form.seqlen_q == 3);
  CHECK(abi_form.seqlen_k == 5);
  CHECK(abi_form.head_dim_qk == 8);
  CHECK(abi_form.head_dim_v == 6);
  CHECK(abi_form.dtype == ATTEST_BF16);
  CHECK(abi_form.softmax_scale == -0.5);
  CHECK(abi_form.softcap == 20);
  CHECK(abi_form.alibi_slopes[3] == 0x1p-8f);
  CHECK(abi_form.mask.window_left == 2);
  CHECK(abi_form.mask.window_right == 1);
  CHECK(abi_form.mask.align == ATTEST_BOTTOM_RIGHT);
  CHECK(abi_form.mask.key_lengths[1] == 5);
  CHECK(abi_form.mask.cu_seqlens_q == nullptr);
  CHECK(abi_form.mask.boolean == nullptr);
  CHECK(abi_form.num_threads == 3);
}

}  // namespace
}  // namespace attest
