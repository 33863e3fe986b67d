#include "certify/cli/python_function.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "certify/cli/commands.hpp"
#include "certify/cli/kernels.hpp"
#include "certify/count/program.hpp"
#include "certify/files.hpp"
#include "certify/temporary_folder.hpp"
#include "core/error.hpp"

namespace attest::certify::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPackage = "the Python package attest (docs/how-to/install.md)";

struct TextOption {
  const char *flag, *keyword, *help;
  std::string FunctionOptions::*value;
};

constexpr std::array<TextOption, 8> kTexts{{
    {"--like", "like", "calling convention (attest.CONVENTIONS), default: by its signature",
     &FunctionOptions::like},
    {"--device", "device", "device of torch or jax where its arrays lie, default: the host",
     &FunctionOptions::device},
    {"--autotune", "autotune",
     "configuration of kernels in Triton on an emulated device (BLOCK_M=64,num_warps=4; "
     "kernel.BLOCK_M=64), or each in turn: each; default: the one that moves the fewest words",
     &FunctionOptions::autotune},
    {"--backward", "backward", "function of its gradients, default: autograd or jax.vjp",
     &FunctionOptions::backward},
    {"--numerics", "numerics", "preset or fields of the arithmetic, default f32",
     &FunctionOptions::numerics},
    {"--empty-row", "empty_row", "values of rows without a visible key; claims such rows",
     &FunctionOptions::empty_row},
    {"--past-length", "past_length",
     "rows past a query length: empty_row (default), or not_written: not judged",
     &FunctionOptions::past_length},
    {"--lse-base", "lse_base", "base of the logarithm in LSE", &FunctionOptions::lse_base},
}};

struct ListOption {
  const char *flag, *keyword, *help;
  std::vector<std::string> FunctionOptions::*value;
};

constexpr std::array<ListOption, 3> kLists{{
    {"--dtypes", "dtypes", "f64,f32,bf16,f16; default: those that a first call takes",
     &FunctionOptions::dtypes},
    {"--claims", "claims", "features that are certified; default: those that first calls take",
     &FunctionOptions::claims},
    {"--limits", "limits",
     "sizes that it serves: seqlen_q%128,seqlen_k<=4096,head_dim=64|128,batch<=4,num_heads_q<=8",
     &FunctionOptions::limits},
}};

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool can_run(const std::string& path) {
  std::error_code none;
  return fs::is_regular_file(path, none) && access(path.c_str(), X_OK) == 0;
}

std::string python_of_environment() {
  if (const std::string own = variable("ATTEST_PYTHON"); !own.empty()) {
    if (can_run(own)) return own;
    throw InvalidProblem("ATTEST_PYTHON: '" + own + "' is no program; name a Python's file");
  }
  for (const char* prefix : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string folder = variable(prefix);
    if (!folder.empty() && can_run(folder + "/bin/python")) return folder + "/bin/python";
  }
  std::istringstream folders(variable("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (can_run(folder + "/python3")) return folder + "/python3";
  }
  throw InvalidProblem("no python3 in the PATH; set ATTEST_PYTHON to the Python that has attest");
}

// Python's identifiers may have other letters too: bytes beyond ASCII.
bool is_dotted_name(std::string_view text) {
  bool begins = true;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = std::isalpha(byte) != 0 || c == '_' || byte >= 0x80;
    if (c == '.' ? begins : !letter && (begins || std::isdigit(byte) == 0)) return false;
    begins = c == '.';
  }
  return !begins;
}

// "file.py:function[BLOCK_M=64]": the function, and the configuration of its autotuned kernels.
struct FunctionWord {
  std::string function, configuration;
};

FunctionWord split_function(const std::string& word) {
  const std::size_t bracket = word.find('[');
  if (bracket == std::string::npos || word.back() != ']') return {word, ""};
  return {word.substr(0, bracket), word.substr(bracket + 1, word.size() - bracket - 2)};
}

// The function, called with the configuration that its word or the options name.
struct NamedFunction {
  std::string function;
  FunctionOptions options;
};

NamedFunction named_function(const std::string& word, const FunctionOptions& options) {
  const auto [function, configuration] = split_function(word);
  NamedFunction named{function, options};
  if (configuration.empty()) return named;
  if (!options.autotune.empty()) {
    throw InvalidProblem("--autotune " + options.autotune + ": '" + word +
                         "' names a configuration, too; give one of them");
  }
  named.options.autotune = configuration;
  return named;
}

// As JSON, the keywords of attest.certify.
std::string keywords_of(const FunctionOptions& options) {
  nlohmann::json given = nlohmann::json::object();
  for (const TextOption& option : kTexts) {
    if (!(options.*option.value).empty()) given[option.keyword] = options.*option.value;
  }
  for (const ListOption& option : kLists) {
    if (!(options.*option.value).empty()) given[option.keyword] = options.*option.value;
  }
  return given.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

bool FunctionOptions::given() const {
  bool any = false;
  for (const TextOption& option : kTexts) any = any || !(this->*option.value).empty();
  for (const ListOption& option : kLists) any = any || !(this->*option.value).empty();
  return any;
}

void add_function_options(CLI::App& command, FunctionOptions& options) {
  const std::string group = "Functions in Python";
  for (const TextOption& option : kTexts) {
    command.add_option(option.flag, options.*option.value, option.help)
        ->check(not_empty())
        ->group(group);
  }
  for (const ListOption& option : kLists) {
    command.add_option(option.flag, options.*option.value, option.help)
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(not_empty())
        ->group(group);
  }
}

bool names_function(const std::string& given) {
  const std::string word = split_function(given).function;
  const std::size_t colon = word.rfind(':');
  if (colon == std::string::npos || !is_dotted_name(std::string_view(word).substr(colon + 1))) {
    return false;
  }
  const std::string place = word.substr(0, colon);
  if (place.size() > 3 && place.compare(place.size() - 3, 3, ".py") == 0) return true;
  return !names_library(word) && is_dotted_name(place);
}

worker::Source function_source(const std::string& word, const FunctionOptions& options) {
  const auto [function, called] = named_function(word, options);
  worker::Source source;
  for (const TextOption& option : kTexts) {
    const std::string& text = options.*option.value;
    if (text.empty()) continue;
    source.options += fmt::format(" {} '{}'", option.flag, text);
  }
  for (const ListOption& option : kLists) {
    const std::vector<std::string>& list = options.*option.value;
    if (list.empty()) continue;
    const std::string words = fmt::format("{}", fmt::join(list, ","));
    const char* const quote = words.find_first_of("|<>") == std::string::npos ? "" : "'";
    source.options += fmt::format(" {} {}{}{}", option.flag, quote, words, quote);
  }
  source.program = python_of_environment();
  source.words = {"-u",
                  "-m",
                  "attest._worker",
                  word.substr(function.rfind(':') + 1),
                  function,
                  keywords_of(called),
                  "[]"};
  source.again = {"--described"};
  source.subject = "function '" + function + "'";
  source.loading = "its interpreter " + source.program + ", which needs " + kPackage + ",";
  return source;
}

std::vector<std::string> function_configurations(const std::string& word,
                                                 const FunctionOptions& options) {
  const std::string python = python_of_environment();
  const TemporaryFolder folder;
  const std::string output = folder.file("configurations");
  const int status =
      run_program({{python, "-m", "attest._commands.configurations", word, keywords_of(options)},
                   "python3",
                   {}},
                  output);
  std::istringstream lines(read_file(output));
  nlohmann::json told;  // beside what imports print
  std::string last;
  for (std::string line; std::getline(lines, line); last = line) {
    nlohmann::json parsed = nlohmann::json::parse(line, nullptr, false);
    if (parsed.is_array() || parsed.is_string()) told = std::move(parsed);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && told.is_array()) return told;
  throw InvalidProblem("--autotune each: " + (told.is_string() ? told.get<std::string>()
                                                               : "'" + python + "', which needs " +
                                                                     kPackage + ", says: " + last));
}

void become_function_count(const std::string& word, const FunctionOptions& options,
                           const std::string& problem, const std::vector<std::string>& flags) {
  // A Python without the package would end with 1, which says that a kernel is refused.
  constexpr const char* kRun = R"(import sys
try:
    from attest._commands.count import main
except ImportError as error:
    print(f"attest: {sys.executable} needs the Python package attest (docs/how-to/install.md) "
          f"and numpy: {error}", file=sys.stderr)
    sys.exit(2)
sys.exit(main(sys.argv[1:])))";
  const std::string python = python_of_environment();
  const auto [function, called] = named_function(word, options);
  std::vector<std::string> words{python, "-c", kRun, function, keywords_of(called), problem};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> arguments;
  for (std::string& one : words) arguments.push_back(one.data());
  arguments.push_back(nullptr);
  execv(python.c_str(), arguments.data());
  throw InvalidProblem("'" + python + "' cannot be run: " + std::strerror(errno));
}

}  // namespace attest::certify::cli
