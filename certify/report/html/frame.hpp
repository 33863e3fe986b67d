#pragma once

#include <string>

/// Parts that all pages share: one style sheet, tables that are sorted and filtered by the reader,
/// one frame.
namespace attest::certify {

/// Returns a whole page around `body`, which is HTML; `title` is text. The page needs no other
/// file. [certify/report/html/frame_test "nothing beside it"]
std::string framed(const std::string& title, const std::string& body);

/// Returns the tag that opens a table whose columns sort and whose rows filter in a browser with
/// scripts:
/// "<div class=\"scroll\"><table class=\"data\"…>". The rows that follow are a thead and a tbody.
/// `id` is the name that buttons refer to.
std::string open_data_table(const std::string& id = "");

/// Returns the tags that close it.
std::string close_data_table();

}  // namespace attest::certify
