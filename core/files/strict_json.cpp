#include "core/files/strict_json.hpp"

#include <set>
#include <vector>

#include "core/text/shortened.hpp"

namespace attest {

nlohmann::json parse_strict_json(std::string_view text,
                                 const std::function<void(const std::string&)>& refuse) {
  using nlohmann::json;
  std::vector<std::set<std::string>> seen;
  std::string twice;
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    constexpr int kDeepest = 64;  // to print what is deeper would overflow the stack
    if (depth > kDeepest) refuse("is nested more than 64 deep");
    if (event == json::parse_event_t::object_start) seen.emplace_back();
    if (event == json::parse_event_t::object_end) seen.pop_back();
    if (event == json::parse_event_t::key && !seen.back().insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  json value;
  try {
    value = json::parse(text.begin(), text.end(), watch);
  } catch (const json::exception& error) {
    constexpr std::size_t kShown = 200;  // it quotes the text it read last
    refuse("is not JSON: " + shortened(error.what(), kShown));
  }
  if (!twice.empty()) refuse("has '" + shortened(twice) + "' twice");
  return value;
}

}  // namespace attest
