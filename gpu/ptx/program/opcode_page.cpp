#include "gpu/ptx/program/opcodes.hpp"

namespace attest::ptx {

std::string opcode_page() {
  std::string page =
      "# PTX that is carried out\n\n"
      "Written by `ptx_test` from the table that programs are checked against; anything else is "
      "refused with its\nname, its line and the nearest form. An alternative in round brackets "
      "must "
      "be there, one in square brackets may.\n\n"
      "`call[.uni]` of a function with a text in the module, which does not call itself, is "
      "carried "
      "out; of\nothers `__assertfail`, a trap, and `vprintf`, which prints nothing.\n";
  for (const Family& family : families()) {
    page += "\n## " + std::string(family.title) + "\n\n```\n";
    for (const Form& form : family.forms) page += std::string(form.pattern) + "\n";
    page += "```\n";
  }
  return page;
}

}  // namespace attest::ptx
