#include <iomanip>
#include <sstream>

#include "core/text/shortest.hpp"
#include "gpu/ptx/program/opcodes.hpp"

namespace attest::ptx {
namespace {

// "2 ulp", "2^-22.9 of the value", "2^-20.5"; the greater where there are two.
std::string text_of(const AllowedError& error) {
  std::vector<std::string> words;
  const auto power = [](double exponent) { return "2^" + shortest(exponent); };
  if (error.ulps > 0) words.push_back(shortest(error.ulps) + " ulp");
  if (error.relative > error.kNone) words.push_back(power(error.relative) + " of the value");
  if (error.absolute > error.kNone) words.push_back(power(error.absolute));
  std::string text;
  for (const std::string& each : words) text += (text.empty() ? "" : " or ") + each;
  return text;
}

std::string line_of(const Form& form) {
  constexpr int kColumn = 32;  // of the errors
  std::ostringstream line;
  const std::string error = text_of(form.error);
  line << std::left << std::setw(error.empty() ? 0 : kColumn) << form.pattern << error << '\n';
  return line.str();
}

}  // namespace

std::string opcode_page() {
  std::string page =
      "# PTX that is carried out\n\n"
      "Written by `ptx_test` from the table that programs are checked against; anything else is "
      "refused with its\nname, its line and the nearest form. An alternative in round brackets "
      "must "
      "be there, one in square brackets may.\nBeside an approximation stands the largest error "
      "that PTX ISA lets a device make.\n\n"
      "`call[.uni]` of a function with a text in the module, which does not call itself, is "
      "carried "
      "out; of\nothers `__assertfail`, a trap, and `vprintf`, which prints nothing.\n";
  for (const Family& family : families()) {
    page += "\n## " + std::string(family.title) + "\n\n```\n";
    for (const Form& form : family.forms) page += line_of(form);
    page += "```\n";
  }
  return page;
}

}  // namespace attest::ptx
