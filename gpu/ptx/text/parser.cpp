#include "gpu/ptx/text/parser.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "gpu/ptx/text/cursor.hpp"
#include "gpu/ptx/text/declarations.hpp"
#include "gpu/ptx/text/statements.hpp"

namespace attest::ptx {
namespace {

constexpr std::array kLinkages{".visible", ".extern", ".weak", ".common"};
// Directives of a function that say how it should be compiled, with how many numbers.
struct Tuning {
  const char* name;
  int most_numbers;
};
constexpr std::array kTunings{Tuning{".maxntid", 3},         Tuning{".minnctapersm", 1},
                              Tuning{".maxnreg", 1},         Tuning{".maxnctapersm", 1},
                              Tuning{".explicitcluster", 0}, Tuning{".maxclusterrank", 1},
                              Tuning{".noreturn", 0}};

class ModuleParser {
 public:
  explicit ModuleParser(std::string_view text) : cursor_(text) {}

  Module run() {
    header();
    while (!cursor_.at_end()) directive();
    return std::move(module_);
  }

 private:
  void header() {
    cursor_.take(".version");
    version();
    cursor_.take(".target");
    module_.target = cursor_.take_name("a target such as sm_80");
    while (cursor_.skip(",")) cursor_.take_name("an option of the target");
    const Position at = cursor_.at();
    cursor_.take(".address_size");
    if (cursor_.take_integer("64") != 64) refuse(at, "addresses of 64 bits alone are carried out");
  }

  void version() {
    const Token token = cursor_.peek();
    constexpr int kOldest = 7, kNewest = 9;
    const char* const end = token.text.data() + token.text.size();
    const auto major = std::from_chars(token.text.data(), end, module_.version_major);
    const bool has_minor = major.ec == std::errc{} && major.ptr != end && *major.ptr == '.';
    const bool whole =
        has_minor && std::from_chars(major.ptr + 1, end, module_.version_minor).ptr == end;
    if (!whole || module_.version_major < kOldest || module_.version_major > kNewest) {
      cursor_.refuse_here("a PTX version from 7.0 to 9.x");
    }
    cursor_.take_number();
  }

  void directive() {
    const bool is_extern = cursor_.peek().is(".extern");
    while (std::any_of(kLinkages.begin(), kLinkages.end(),
                       [&](const char* each) { return cursor_.peek().is(each); })) {
      cursor_.take_word("a linkage");
    }
    const Position at = cursor_.at();
    if (cursor_.skip(".entry")) {
      function(at, true);
    } else if (cursor_.skip(".func")) {
      function(at, false);
    } else if (cursor_.skip(".file")) {
      file();
    } else if (cursor_.skip(".section")) {
      section();
    } else if (cursor_.skip(".pragma")) {
      cursor_.take_string();
      cursor_.take(";");
    } else if (const auto space = space_named(cursor_.peek().text);
               space && *space != Space::param && *space != Space::local) {
      cursor_.take_word("a state space");
      variables(*space, is_extern);
    } else {
      cursor_.refuse_here(
          "a directive of a module (.entry, .func, .global, .const, .shared, .file)");
    }
  }

  void variables(Space space, bool is_extern) {
    for (Variable& variable : take_variables(cursor_, space, 0)) {
      if (is_extern && space != Space::shared) {
        refuse(variable.at, "'" + variable.name + "' is defined in no module; link it in");
      }
      if (variable.elements == 0 && !is_extern) {
        refuse(variable.at, "'" + variable.name + "' has no size");
      }
      module_.variables.push_back(std::move(variable));
    }
  }

  // ".file 1 "path" [, time, size]"
  void file() {
    const auto number = static_cast<int>(cursor_.take_integer("a file's number", 1U << 30));
    module_.files.emplace_back(number, cursor_.take_string());
    if (!cursor_.skip(",")) return;
    cursor_.take_integer("a time");
    cursor_.take(",");
    cursor_.take_integer("a size");
  }

  // Debug information: nothing in it is executed.
  void section() {
    const Position at = cursor_.at();
    if (!cursor_.take_word("a section").text.starts_with(".debug_")) {
      refuse(at, "sections of debug information alone are skipped");
    }
    cursor_.take("{");
    for (int depth = 1; depth > 0;) {
      if (cursor_.at_end()) refuse(at, "the section has no '}'");
      if (cursor_.skip("{")) {
        ++depth;
      } else if (cursor_.skip("}")) {
        --depth;
      } else {
        cursor_.take_any();
      }
    }
  }

  void function(Position at, bool is_entry) {
    Function function;
    function.at = at;
    function.is_entry = is_entry;
    if (cursor_.peek().is("(")) function.results = take_parameters(cursor_);
    function.name = cursor_.take_name("a function's name");
    if (cursor_.peek().is("(")) function.parameters = take_parameters(cursor_);
    tunings(function);
    if (!cursor_.skip(";")) {
      function.has_body = true;
      take_body(cursor_, function);
    }
    module_.functions.push_back(std::move(function));
  }

  void tunings(Function& function) {
    const auto numbers = [&](int most) {
      std::vector<std::uint64_t> all;
      if (most == 0) return all;
      do {
        all.push_back(cursor_.take_integer("a number"));
      } while (--most > 0 && cursor_.skip(","));
      return all;
    };
    for (;;) {
      if (cursor_.skip(".reqntid")) {
        function.required_threads = numbers(3);
        continue;
      }
      if (cursor_.skip(".reqnctapercluster")) {
        function.required_cluster = numbers(3);
        continue;
      }
      const auto tuning = std::find_if(kTunings.begin(), kTunings.end(), [&](const Tuning& each) {
        return cursor_.peek().is(each.name);
      });
      if (tuning == kTunings.end()) return;
      cursor_.take_word("a directive");
      numbers(tuning->most_numbers);
    }
  }

  Cursor cursor_;
  Module module_;
};

}  // namespace

Module parse(std::string_view text) { return ModuleParser(text).run(); }

}  // namespace attest::ptx
