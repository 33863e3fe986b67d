#include "certify/report/html/frame.hpp"

#include <fmt/format.h>

#include "certify/report/html/markup.hpp"
#include "certify/report/html/page_script.hpp"
#include "certify/report/html/page_style.hpp"

namespace attest::certify {

std::string framed(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>{}</title><style>{}</style></head>"
      "<body><main>{}</main><script>{}</script></body></html>\n",
      escaped(title), kPageStyle, body, kPageScript);
}

std::string open_data_table(const std::string& id) {
  return "<div class=\"scroll\"><table class=\"data\"" +
         (id.empty() ? "" : " id=\"" + escaped(id) + "\"") + ">";
}

std::string close_data_table() { return "</table></div>"; }

}  // namespace attest::certify
