#pragma once

namespace attest::certify {

/// The script of every page: tables of class "data" sort by a click on a column, and those of more
/// than a few rows get a field that filters them; buttons of class "count" show the rows of one
/// outcome. It loads nothing, and without it every row is shown. It is well-formed XML.
extern const char* const kPageScript;

}  // namespace attest::certify
