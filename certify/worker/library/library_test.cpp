#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "certify/campaign/campaign.hpp"
#include "certify/campaign/code_content.hpp"
#include "certify/campaign/journal.hpp"
#include "certify/digest.hpp"
#include "certify/worker/library/description.hpp"
#include "certify/worker/library/loaded_files.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "certify/worker/testing/plugins.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "gpu/register.hpp"
#include "gpu/watch.hpp"

namespace attest::certify::worker {
namespace {

namespace fs = std::filesystem;

using testing::limits;
using testing::plugin;

// The message with which a library is refused; "" when it is not.
std::string refusal(const std::string& path) {
  try {
    isolate_library(path, limits());
  } catch (const InvalidProblem& error) {
    return error.what();
  }
  return "";
}

struct TemporaryDirectory {
  TemporaryDirectory() {
    std::string pattern = (fs::temp_directory_path() / "attest-library-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() { fs::remove_all(path); }
  fs::path path;
};

// A copy of a good library with one byte of its header replaced.
std::string patched(const TemporaryDirectory& directory, std::streamoff at, char value) {
  const fs::path copy = directory.path / "libpatched.so";
  fs::copy_file(plugin("nonsense_good"), copy, fs::copy_options::overwrite_existing);
  std::fstream file(copy, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(at);
  file.put(value);
  return copy.string();
}

struct Refused {
  const char* file;
  const char* needed;  // in the message
};

}  // namespace

TEST_CASE("a good library is loaded and named by its path") {
  const IsolatedKernels kernels = isolate_library(plugin("nonsense_good"), limits());
  REQUIRE(kernels.size() == 1);
  const attest_description& description = kernels.front()->kernel().description;
  CHECK(description.name == plugin("nonsense_good") + ":nonsense");
  CHECK(description.directions == ATTEST_FORWARD);
  CHECK(description.dtypes == 1u << ATTEST_F32);
  CHECK(kernels.front()->kernel().backward == nullptr);
  CHECK(library_of(kernels.front()->kernel()) == fs::canonical(plugin("nonsense_good")).string());
  CHECK_FALSE(library_of(isolate_builtin("cpu/standard", limits())->kernel()));
}

TEST_CASE("a library that is written again is another file") {
  const TemporaryDirectory directory;
  const fs::path copy = directory.path / "libmine.so", other = directory.path / "libother.so";
  fs::copy_file(plugin("nonsense_good"), copy);
  const auto written = fs::last_write_time(copy);
  const IsolatedKernels kernels = isolate_library(copy.string(), limits());
  const attest_kernel& kernel = kernels.front()->kernel();
  CHECK(content_of_code(kernel) == sha256_of_file(copy.string()));
  const auto refused = [&](const char* why) {
    INFO(why);
    const std::string words = "'" + copy.string() + ":nonsense' was written again";
    CHECK_THROWS_WITH(require_same_file(kernel), Catch::Contains(words));
    CHECK_THROWS_WITH(content_of_code(kernel), Catch::Contains(words));
  };
  fs::copy_file(copy, other);
  fs::last_write_time(other, written);
  fs::rename(copy, directory.path / "libkept.so");
  refused("it is gone");
  fs::rename(other, copy);
  refused("another file of the same bytes and time");
  fs::rename(directory.path / "libkept.so", copy);
  CHECK_NOTHROW(require_same_file(kernel));
  std::ofstream(copy, std::ios::app) << "more";
  fs::last_write_time(copy, written);
  refused("longer");
  fs::resize_file(copy, fs::file_size(copy) - 4);
  fs::last_write_time(copy, written);
  CHECK_NOTHROW(require_same_file(kernel));
  fs::last_write_time(copy, written + std::chrono::seconds(1));
  refused("later");
}

TEST_CASE("no campaign takes results of a library that is written again") {
  const TemporaryDirectory directory;
  const fs::path copy = directory.path / "libmine.so";
  fs::copy_file(plugin("nonsense_good"), copy);
  const IsolatedKernels kernels = isolate_library(copy.string(), limits());
  CampaignOptions options;
  options.cases = 1;
  options.shapes = Shapes::none;
  Journal journal;
  const auto run = [&](const Progress& progress) {
    return run_campaign(kernels.front()->kernel(), options, progress, {{}, &journal});
  };
  const Progress replace = [&](std::uint64_t done, std::uint64_t) {
    if (done == 1) fs::last_write_time(copy, fs::last_write_time(copy) + std::chrono::seconds(1));
  };
  CHECK_THROWS_WITH(run(replace), Catch::Contains("was written again while it was certified"));
  CHECK(journal.records().size() == 1);
}

TEST_CASE("built-in kernels have no file that could change") {
  const auto builtin = isolate_builtin("cpu/standard", limits());
  CHECK_NOTHROW(require_same_file(builtin->kernel()));
  CHECK(content_of_code(builtin->kernel()).empty());
}

TEST_CASE("a library that one is linked with belongs to it") {
  const TemporaryDirectory directory;
  const fs::path copy = directory.path / "libmine.so",
                 other = directory.path / fs::path(plugin("nonsense_good")).filename();
  fs::copy_file(plugin("linked"), copy);
  fs::copy_file(plugin("nonsense_good"), other);
  const IsolatedKernels kernels = isolate_library(copy.string(), limits());
  const attest_kernel& kernel = kernels.front()->kernel();
  REQUIRE(needed_by(kernel) == std::vector<std::string>{fs::canonical(other).string()});
  CHECK(needed_content(kernel).front().sha256 == sha256_of_file(other.string()));
  CampaignOptions options;
  const nlohmann::json header = campaign_header({&kernel}, options);
  CHECK_NOTHROW(require_same_campaign(header, header, "j"));
  std::ofstream(other, std::ios::app) << "more";
  CHECK_THROWS_WITH(require_same_file(kernel),
                    Catch::Contains("is linked with, was written again"));
  const IsolatedKernels again = isolate_library(copy.string(), limits());
  CHECK(content_of_code(again.front()->kernel()) == sha256_of_file(copy.string()));
  CHECK_THROWS_WITH(
      require_same_campaign(header, campaign_header({&again.front()->kernel()}, options), "j"),
      Catch::Contains("another build of a library linked with '"));
  const IsolatedKernels alone = isolate_library(plugin("nonsense_good"), limits());
  CHECK(needed_by(alone.front()->kernel()).empty());
}

TEST_CASE("a library of version 1 is loaded as it is") {
  const IsolatedKernels kernels = isolate_library(plugin("nonsense_version_1"), limits());
  REQUIRE(kernels.size() == 1);
  CHECK(kernels.front()->kernel().description.features == 0);
}

TEST_CASE("a library that calls another is seen to") {
  const IsolatedKernels kernels = isolate_library(plugin("another"), limits());
  const attest_kernel& kernel = kernels.front()->kernel();
  const proptest::Case c{Problem::parse("sq=4,d=2"), proptest::Values::normal, 1, 1};
  const auto called = [&](const attest_kernel& one) {
    proptest::run(one, c.problem, proptest::make_values(c.problem, c.values, c.seed),
                  Direction::forward, c);
    return loaded_in_calls(one);
  };
  CHECK(loaded_in_calls(kernel).empty());
  const std::vector<std::string> loaded = called(kernel);
  REQUIRE(loaded.size() == 1);
  CHECK(fs::canonical(loaded.front()) == fs::canonical(plugin("nonsense_good")));
  CHECK(called(kernel) == loaded);  // told once
  const IsolatedKernels alone = isolate_library(plugin("nonsense_good"), limits());
  CHECK(called(alone.front()->kernel()).empty());
}

TEST_CASE("names of files that do not fit are left out, and it is said") {
  LoadedFiles files;
  char none[1] = "", some[4096] = "";
  CHECK(files.append_new(none, sizeof none));  // nothing was loaded
  void* const library = dlopen(plugin("nonsense_good").c_str(), RTLD_NOW);
  REQUIRE(library != nullptr);
  CHECK_FALSE(files.append_new(none, sizeof none));
  CHECK(std::string(none).empty());
  dlclose(library);
  LoadedFiles again;
  void* const loaded_again = dlopen(plugin("nonsense_good").c_str(), RTLD_NOW);
  REQUIRE(loaded_again != nullptr);
  CHECK(again.append_new(some, sizeof some));
  CHECK(std::string(some).find("nonsense_good") != std::string::npos);
  dlclose(loaded_again);
}

TEST_CASE("descriptions that are nonsense") {
  const Refused cases[] = {
      {"nonsense_other_abi", "abi_version is 99, this program speaks versions 1 to 2"},
      {"nonsense_sinks_of_version_1",
       "abi_version is 1, but description.features has bits of version 2"},
      {"nonsense_negative_head_dim", "description.max_head_dim is -1; it must be 0 (any) or"},
      {"nonsense_unknown_dtype", "description.dtypes is 0x200; unknown bits 0x200"},
      {"nonsense_unknown_feature", "description.features is 0x80000000; unknown bits"},
      {"nonsense_small_struct", "attest_kernel.struct_size is 8; it must be sizeof"},
      {"nonsense_no_kernel", "attest_get_kernel(0) is NULL"},
      {"nonsense_no_function", "has ATTEST_FORWARD, but forward is NULL"},
      {"nonsense_empty_name", "description.name is empty"},
      {"nonsense_same_names", "description.name is 'nonsense', as of an earlier kernel"},
      {"nonsense_never_null", "attest_get_kernel never returns NULL"},
      {"nonsense_crashing_initialiser", "died of signal 6"},
      {"nonsense_wild_pointer", "died of signal 11"},
  };
  for (const Refused& refused : cases) {
    CAPTURE(refused.file);
    const std::string message = refusal(plugin(refused.file));
    CAPTURE(message);
    CHECK(message.find(plugin(refused.file)) != std::string::npos);
    CHECK(message.find(refused.needed) != std::string::npos);
  }
}

TEST_CASE("a library without the symbol") {
  CHECK(refusal(plugin("nonsense_no_symbol")).find("does not export attest_get_kernel") !=
        std::string::npos);
  CHECK(refusal(plugin("mangled")).find("with a C++ name") != std::string::npos);
}

TEST_CASE("a library for a CUDA device is loaded where there is one, else refused and told why") {
  Registry registry;
  register_gpu(registry);
  const std::vector<std::string> names = registry.names();
  if (std::find(names.begin(), names.end(), "gpu/flash2@device") != names.end()) {
    const IsolatedKernels kernels = isolate_library(plugin("nonsense_on_device"), limits());
    CHECK(std::string(kernels.front()->kernel().description.summary).find("on device ") == 0);
    return;
  }
  const std::string message = refusal(plugin("nonsense_on_device"));
  CAPTURE(message);
  CHECK(message.find("kernel 0: 'nonsense' needs a CUDA device: ") != std::string::npos);
}

TEST_CASE("every emulated kernel is certified on a device, where there is one") {
  Registry emulated;
  register_emulated(emulated);
  std::vector<std::string> tested;
  std::istringstream words(ATTEST_DEVICE_KERNELS);
  for (std::string word; words >> word;) tested.push_back("gpu/" + word);
  CHECK(tested == emulated.names());
}

TEST_CASE("a missing dependency is named") {
  const std::string message = refusal(plugin("nonsense_missing_dependency"));
  CAPTURE(message);
  CHECK(message.find("does not load: libneeded.so: cannot open") != std::string::npos);
}

TEST_CASE("not a library") {
  const TemporaryDirectory directory;
  const auto refused = [](const std::string& path, const std::string& needed) {
    const std::string message = refusal(path);
    CAPTURE(path, message);
    CHECK(message.find(needed) != std::string::npos);
  };
  refused((directory.path / "absent.so").string(), "cannot be read: No such file");
  refused(directory.path.string(), "is not a file");
  const fs::path text = directory.path / "text.so";
  std::ofstream(text) << "INPUT(libm.so.6)\n";
  refused(text.string(), "no ELF header");
  const fs::path empty = directory.path / "empty.so";
  std::ofstream(empty).flush();
  refused(empty.string(), "no ELF header");
  constexpr std::streamoff kClass = 4, kOrder = 5, kType = 16, kMachine = 18;
  constexpr char kClass32 = 1, kBigEndian = 2, kRelocatable = 1, kRiscV = char(243);
  refused(patched(directory, kMachine, kRiscV), "is built for RISC-V, this machine is");
  refused(patched(directory, kClass, kClass32), "another word size");
  refused(patched(directory, kOrder, kBigEndian), "another byte order");
  refused(patched(directory, kType, kRelocatable), "not a shared library");
  const fs::path cut = directory.path / "cut.so";
  fs::copy_file(plugin("nonsense_good"), cut);
  constexpr std::uintmax_t kPage = 4096;  // less than what is loaded, whatever debugging adds
  fs::resize_file(cut, kPage);
  refused(cut.string(), "is cut off: it has ");
  fs::resize_file(cut, 70);
  refused(cut.string(), "is cut off: it has 70 bytes");
}

// attest_description before it had a field for the backward schedule.
struct EarlierDescription {
  std::size_t struct_size;
  const char *name, *summary;
  attest_device device;
  std::uint32_t directions, dtypes, features;
  std::int64_t max_head_dim, head_dim_multiple;
  attest_empty_row empty_row;
  attest_numerics numerics;
  const char* schedule;
  std::int64_t fast_memory_bytes;
  std::uint64_t reserved[8];
};

TEST_CASE("a library that knows no backward schedule and no limits loads and names none") {
  static_assert(sizeof(EarlierDescription) == sizeof(attest_description));
  static_assert(offsetof(EarlierDescription, reserved) ==
                offsetof(attest_description, schedule_backward));
  EarlierDescription earlier{};
  earlier.struct_size = sizeof earlier;
  earlier.name = "test/kernel";
  earlier.device = ATTEST_CPU;
  earlier.directions = ATTEST_FORWARD;
  earlier.dtypes = 1u << ATTEST_F32;
  earlier.numerics.struct_size = sizeof earlier.numerics;
  earlier.schedule = "flash2";
  attest_kernel kernel{};
  kernel.struct_size = sizeof kernel;
  kernel.abi_version = ATTEST_ABI_VERSION;
  std::memcpy(&kernel.description, &earlier, sizeof earlier);
  kernel.forward = [](const void*, const attest_forward_args*) { return ATTEST_OK; };
  CHECK(objection(kernel).empty());
  CHECK(kernel.description.schedule == std::string("flash2"));
  CHECK(kernel.description.schedule_backward == nullptr);
  CHECK(kernel.description.limits == nullptr);
  CHECK(kernel.description.may_change == 0);
}

TEST_CASE("objections to numerics") {
  attest_kernel kernel{};
  kernel.struct_size = sizeof kernel;
  kernel.abi_version = ATTEST_ABI_VERSION;
  kernel.description.struct_size = sizeof kernel.description;
  kernel.description.name = "test/kernel";
  kernel.description.device = ATTEST_CPU;
  kernel.description.directions = ATTEST_FORWARD;
  kernel.description.dtypes = 1u << ATTEST_F32;
  kernel.description.numerics.struct_size = sizeof kernel.description.numerics;
  kernel.forward = [](const void*, const attest_forward_args*) { return ATTEST_OK; };
  CHECK(objection(kernel).empty());
  attest_kernel backward = kernel;
  backward.description.directions |= ATTEST_BACKWARD;
  backward.backward = [](const void*, const attest_backward_args*) { return ATTEST_OK; };
  const auto refused = [&](const auto& spoil, const std::string& field) {
    attest_kernel spoilt = kernel;
    spoil(spoilt.description);
    const std::string message = objection(spoilt);
    CAPTURE(field, message);
    CHECK(message.find(field) != std::string::npos);
  };
  refused([](auto& d) { d.numerics.exp_ulps = -1; }, "numerics.exp_ulps");
  refused([](auto& d) { d.numerics.exp_ulps = std::numeric_limits<double>::quiet_NaN(); },
          "numerics.exp_ulps");
  refused([](auto& d) { d.numerics.input_roundoff = 2; }, "numerics.input_roundoff");
  refused([](auto& d) { d.numerics.operand_roundoff = -1; }, "numerics.operand_roundoff");
  refused([](auto& d) { d.numerics.dkv_accumulator = 5; }, "numerics.dkv_accumulator is 5");
  refused([](auto& d) { d.numerics.dp_cast = 7; }, "numerics.dp_cast is 7");
  refused([](auto& d) { d.numerics.score_cast = 7; }, "numerics.score_cast is 7");
  refused([](auto& d) { d.numerics.gqa_accumulator = -2; }, "numerics.gqa_accumulator is -2");
  refused([](auto& d) { d.numerics.exp_ulps_of[ATTEST_BF16] = -1; },
          "numerics.exp_ulps_of[ATTEST_BF16]");
  refused([](auto& d) { d.numerics.exp_ulps_of[ATTEST_F16] = 0x1p18f; },
          "numerics.exp_ulps_of[ATTEST_F16] is 262144");
  refused([](auto& d) { d.numerics.p_cast = 5; }, "numerics.p_cast is 5");
  refused([](auto& d) { d.numerics.accumulator = -2; }, "numerics.accumulator is -2");
  refused([](auto& d) { d.numerics.summation_depth = -3; }, "numerics.summation_depth");
  refused([](auto& d) { d.numerics.lse_base_two = 2; }, "numerics.lse_base_two");
  refused([](auto& d) { d.numerics.lse_split_keys = -1; }, "numerics.lse_split_keys");
  refused([](auto& d) { d.numerics.delta_from_p = 2; }, "numerics.delta_from_p");
  refused([](auto& d) { d.numerics.flushes_subnormals = -1; }, "numerics.flushes_subnormals");
  refused([](auto& d) { d.numerics.accumulation = ATTEST_FUSED_BLOCKS; }, "fused_block");
  refused([](auto& d) { d.numerics.struct_size = 0; }, "attest_numerics.struct_size is 0");
  refused([](auto& d) { ++d.struct_size; }, "attest_description.struct_size is ");
  refused([](auto& d) { d.schedule_backward = "two\npass"; },
          "description.schedule_backward has the character 0xa");
  refused([](auto& d) { d.reserved[3] = 1; }, "a reserved field is not 0");
  refused([](auto& d) { d.more_reserved_bits = 1; }, "a reserved field is not 0");
  refused([](auto& d) { d.numerics.reserved[0] = 1; }, "a reserved field is not 0");
  refused([](auto& d) { d.numerics.reserved[1] = 1; }, "a reserved field is not 0");
  refused([](auto& d) { d.numerics.reserved_bits = 1; }, "a reserved field is not 0");
  refused([](auto& d) { d.numerics.exp_ulps = 0x1p18; }, "numerics.exp_ulps is 262144");
  refused([](auto& d) { d.numerics.lse_splits = 1 << 17; }, "numerics.lse_splits is 131072");
  refused([](auto& d) { d.device = static_cast<attest_device>(3); }, "description.device is 3");
  refused([](auto& d) { d.directions = 64; }, "directions");
  refused([](auto& d) { d.directions = ATTEST_BACKWARD; }, "ATTEST_BACKWARD");
  CHECK(objection(backward).empty());
  refused([](auto& d) { d.directions = 0; }, "description.directions is 0");
  refused([](auto& d) { d.dtypes = 0; }, "description.dtypes is 0");
  for (const std::uint32_t fp8 : {4u, 5u}) {
    refused([&](auto& d) { d.dtypes |= 1u << fp8; }, "this version does not have fp8, bits 0x10");
  }
  refused([](auto& d) { d.dtypes = 1u << 6; }, "dtypes is 0x40; unknown bits 0x40, this program");
  refused([](auto& d) { d.head_dim_multiple = -8; }, "head_dim_multiple is -8");
  refused([](auto& d) { d.name = "two words"; }, "description.name has the character 0x20");
  refused([](auto& d) { d.summary = "line\nbreak"; }, "description.summary has the character 0xa");
  refused(
      [](auto& d) {
        const int none = 4;  // no attest_empty_row
        std::memcpy(&d.empty_row, &none, sizeof none);
      },
      "empty_row is 4");
  refused(
      [](auto& d) {
        const int none = 2;  // no attest_past_length
        std::memcpy(&d.past_length, &none, sizeof none);
      },
      "past_length is 2");
  refused([](auto& d) { d.may_change = 1 << 4; }, "may_change is 0x10; unknown bits 0x10");
  refused([](auto& d) { d.reserved_bits = 1; }, "a reserved field is not 0");
}

}  // namespace attest::certify::worker
