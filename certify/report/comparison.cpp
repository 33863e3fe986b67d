#include "certify/report/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "certify/report/certificate_fields.hpp"
#include "certify/report/kernel_names.hpp"
#include "certify/report/ratio.hpp"
#include "core/error.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

// From best to worst.
std::size_t gravity(const std::string& verdict) {
  constexpr std::array<std::string_view, 10> kOrder{
      "certified", "mask_holds", "law_holds",   "shard_passed", "incomplete",
      "vacuous",   "improbable", "unsupported", "violated",     "crashed"};
  return static_cast<std::size_t>(std::find(kOrder.begin(), kOrder.end(), verdict) -
                                  kOrder.begin());
}

std::set<std::string> words_of(const json& list) {
  std::set<std::string> words;
  for (const json& word : list) words.insert(word.get<std::string>());
  return words;
}

class Comparer {
 public:
  std::vector<Change> take() {
    std::stable_sort(changes_.begin(), changes_.end(),
                     [](const Change& a, const Change& b) { return a.kind < b.kind; });
    return std::move(changes_);
  }

  void note(const std::string& what) { changes_.push_back({ChangeKind::note, "", what}); }

  void gone(const std::string& kernel) {
    changes_.push_back({ChangeKind::regression, kernel, "is not in the second certificate"});
  }
  void came(const std::string& kernel) {
    changes_.push_back({ChangeKind::note, kernel, "is not in the first certificate"});
  }

  void compare(const json& before, const json& after) {
    kernel_ = after.at("kernel").get<std::string>();
    const auto was = before.at("verdict").get<std::string>();
    const auto is = after.at("verdict").get<std::string>();
    if (was != is) {
      add(gravity(is) > gravity(was) ? ChangeKind::regression : ChangeKind::improvement,
          "verdict " + verdict_of(before) + " -> " + verdict_of(after));
    }
    const json none = nullptr;
    if (before.value("mask", none) != after.value("mask", none) ||
        before.value("mask_content", none) != after.value("mask_content", none)) {
      note("the certificates of " + kernel_ + " are not of the same masks");
    }
    const json old_library = before.value("library_sha256", none),
               library = after.value("library_sha256", none);
    if (old_library != library && old_library.is_string() && library.is_string()) {
      note("the file of " + kernel_ + " has other content");
    }
    compare_needed(before.value("needed", json::array()), after.value("needed", json::array()));
    compare_laws(before, after);
    compare_contracts(before, after);
    for (const char* part : {"dtypes", "features", "directions"}) {
      compare_sets(words_of(before.at("description").at(part)),
                   words_of(after.at("description").at(part)), "claims ", "");
    }
    // Lists of what is wrong: the new ones are the regressions.
    const json &old_coverage = before.at("coverage"), &coverage = after.at("coverage");
    // A law ends where it fails: a kernel that is refused covers less for it.
    const auto fails = [](const std::string& verdict) {
      return verdict == "violated" || verdict == "crashed";
    };
    if (fails(was) == fails(is)) {
      compare_sets(words_of(coverage.at("not_exercised")),
                   words_of(old_coverage.at("not_exercised")), "exercises the claim ", "");
      compare_sizes(old_coverage, coverage);
    }
    const bool same_checks =
        before.at("checks").value("made", json()) == after.at("checks").value("made", json());
    compare_refused(refused_in(old_coverage), refused_in(coverage), same_checks);
    compare_worst(before.at("worst"), after.at("worst"));
    compare_io(before.at("io"), after.at("io"), "");
    compare_io(before.value("io_backward", json()), after.value("io_backward", json()),
               " backward");
  }

 private:
  void add(ChangeKind kind, const std::string& what, const std::string& reproduce = "") {
    changes_.push_back({kind, kernel_, what, reproduce});
  }

  // Compares two sets: what is in the first only is lost, what is in the second only is gained.
  void compare_sets(const std::set<std::string>& before, const std::set<std::string>& after,
                    const std::string& does, const std::string& suffix) {
    for (const std::string& word : before) {
      if (after.count(word) == 0) add(ChangeKind::regression, "no longer " + does + word + suffix);
    }
    for (const std::string& word : after) {
      if (before.count(word) == 0) add(ChangeKind::improvement, "now " + does + word + suffix);
    }
  }

  // Tells how the second of two declared values stands to the first. Roundoffs and ulp have an
  // order; any other difference, as of a depth where 0 is none declared, counts as more. Older
  // certificates lack some fields, which were 0 then.
  enum class Allows : std::uint8_t { as_much, less, more };
  static Allows allows(const std::string& field, const json& before, const json& after) {
    if (after.is_object()) {
      Allows all = Allows::as_much;
      for (const auto& [dtype, value] : after.items()) {
        const json was = before.is_object() ? before.value(dtype, json()) : json();
        all = std::max(all, allows(field, was, value));
      }
      return all;
    }
    const bool ordered = field.ends_with("_roundoff") || field == "exp_ulps";
    if (ordered && after.is_number()) {
      const double was = before.is_number() ? before.get<double>() : 0, is = after.get<double>();
      return is > was ? Allows::more : is < was ? Allows::less : Allows::as_much;
    }
    return before.is_null() || before == after ? Allows::as_much : Allows::more;
  }

  // Older certificates have no text of the contract.
  void compare_contracts(const json& before, const json& after) {
    const json none = nullptr;
    const json was = before.value("contract", none), is = after.value("contract", none);
    if (!was.is_string() || !is.is_string() || was == is) return;
    const auto words = [](const json& contract) {
      const auto text = contract.get<std::string>();
      return text.empty() ? "plain float32" : text;
    };
    const json& numerics = before.at("description").at("numerics");
    Allows all = Allows::as_much;
    for (const auto& [field, value] : after.at("description").at("numerics").items()) {
      all = std::max(all, allows(field, numerics.value(field, none), value));
    }
    const std::string what = "declares " + words(was) + " -> " + words(is);
    if (all == Allows::as_much) {
      note(kernel_ + " " + what);
    } else if (all == Allows::less) {
      add(ChangeKind::improvement, what + ", which allows smaller errors alone");
    } else {
      add(ChangeKind::regression, what + ", which may allow larger errors");
    }
  }

  // Compares the libraries that both name: an older certificate names none.
  void compare_needed(const json& before, const json& after) {
    for (const json& was : before) {
      for (const json& is : after) {
        if (was.at("file") != is.at("file") || was.at("sha256") == is.at("sha256")) continue;
        note(is.at("file").get<std::string>() + ", which " + kernel_ +
             " is linked with, has other content");
      }
    }
  }

  // Older certificates do not say.
  void compare_sizes(const json& before, const json& after) {
    if (!before.contains("sizes") || !after.contains("sizes")) return;
    const auto covered = [](const json& coverage) {
      std::set<std::string> kinds;
      for (const auto& [kind, sizes] : coverage.at("sizes").items()) {
        if (sizes.at("whole").is_object() || sizes.at("sampled").is_object()) kinds.insert(kind);
      }
      return kinds;
    };
    const std::set<std::string> kinds = covered(before), kept = covered(after);
    compare_sets(kinds, kept, "covers ", "");
    for (const std::string& kind : kinds) {
      if (kept.count(kind) == 0) continue;
      const json &was = before.at("sizes").at(kind), &is = after.at("sizes").at(kind);
      for (const char* size : {"seqlen_q", "seqlen_k", "head_dim", "batch", "heads", "tokens"}) {
        const auto most = largest_size(was, size), now = largest_size(is, size);
        if (now == most) continue;
        add(now < most ? ChangeKind::regression : ChangeKind::improvement,
            fmt::format("covers {} <= {} with {}, before {}", size, now, kind, most));
      }
    }
  }

  static std::int64_t largest_size(const json& covered, const char* size) {
    std::int64_t most = 0;
    for (const char* part : {"whole", "sampled"}) {
      const json& of = covered.at(part);
      if (of.is_object()) most = std::max(most, of.at(size).get<std::int64_t>());
    }
    return most;
  }

  // Counts the refused checks by message. Older certificates have one text for each check.
  static std::map<std::string, double> refused_in(const json& coverage) {
    std::map<std::string, double> checks;
    for (const json& one : coverage.at("refused")) {
      const bool text = one.is_string();
      checks[(text ? one : one.at("message")).get<std::string>()] +=
          text ? 1 : one.at("checks").get<double>();
    }
    return checks;
  }

  // Counts are compared of equal numbers of checks: a law that ends at a failure makes fewer.
  void compare_refused(const std::map<std::string, double>& before,
                       const std::map<std::string, double>& after, bool same_checks) {
    const auto words = [](const auto& refused) {
      std::set<std::string> all;
      for (const auto& [message, checks] : refused) all.insert(message);
      return all;
    };
    compare_sets(words(after), words(before), "accepts what it claims: ", "");
    for (const auto& [message, checks] : after) {
      const auto known = before.find(message);
      if (!same_checks || known == before.end() || known->second == checks) continue;
      add(checks > known->second ? ChangeKind::regression : ChangeKind::improvement,
          fmt::format("{} in {:.0f} -> {:.0f} checks", message, known->second, checks));
    }
  }

  // The finding that tells of a law: its own, or one of the same cause.
  static const json* finding_of(const json& kernel, const std::string& law) {
    for (const json& finding : kernel.at("findings")) {
      const json also = finding.value("also", json::array());
      const bool folded = std::find(also.begin(), also.end(), json(law)) != also.end();
      if (folded || finding.at("law") == law) return &finding;
    }
    return nullptr;
  }

  // A law that fails of the cause of another one which fails now, too, is told with it.
  void add_failing(const std::string& law, const char* how, const json& after,
                   const std::set<std::string>& fresh) {
    const json* const finding = finding_of(after, law);
    std::string what = "law " + law + how, reproduce;
    if (finding != nullptr) {
      const auto head = finding->at("law").get<std::string>();
      if (head != law && fresh.count(head) > 0) return;
      std::string also;
      for (const json& other : finding->value("also", json::array())) {
        if (head != law || fresh.count(other.get<std::string>()) == 0) continue;
        also += (also.empty() ? "" : ", ") + other.get<std::string>();
      }
      if (!also.empty()) what += "; also fails: " + also;
      reproduce = finding->at("reproduce").get<std::string>();
      if (head != law) {  // which failed before: the law fails on the case of its finding, too
        what += ", of the cause of " + head;
        const std::string of_head = " --law " + head + " ";
        const auto at = reproduce.find(of_head);
        if (at != std::string::npos) reproduce.replace(at, of_head.size(), " --law " + law + " ");
      }
    }
    add(ChangeKind::regression, what, reproduce);
  }

  void compare_laws(const json& before, const json& after) {
    std::set<std::string> fresh;  // laws that fail and did not before
    for (const auto& [law, count] : after.at("laws").items()) {
      const auto known = before.at("laws").find(law);
      const bool failed = known != before.at("laws").end() && known->at("failed").get<double>() > 0;
      if (count.at("failed").get<double>() > 0 && !failed) fresh.insert(law);
    }
    for (const auto& [law, count] : after.at("laws").items()) {
      const auto known = before.at("laws").find(law);
      const bool fails = count.at("failed").get<double>() > 0;
      if (known == before.at("laws").end()) {
        if (fails) add_failing(law, " is new and fails", after, fresh);
        continue;
      }
      const bool failed = known->at("failed").get<double>() > 0;
      if (fails && !failed) {
        add_failing(law, " fails now", after, fresh);
      } else if (failed && !fails) {
        add(ChangeKind::improvement, "law " + law + " holds now");
      } else if (!fails && known->at("passed").get<double>() > 0 &&
                 count.at("passed").get<double>() <= 0) {
        add(ChangeKind::regression, "law " + law + " counts on no case now");
      }
    }
    for (const auto& [law, count] : before.at("laws").items()) {
      if (!after.at("laws").contains(law)) {
        add(ChangeKind::regression, "law " + law + " is not checked any more");
      }
    }
  }

  void compare_worst(const json& before, const json& after) {
    constexpr double kNotable = 2;
    for (const auto& [output, worst] : after.items()) {
      const auto known = before.find(output);
      if (known == before.end()) continue;
      const double was = ratio_in(known->at("error_over_bound"));
      const double is = ratio_in(worst.at("error_over_bound"));
      if (is > kNotable * was || was > kNotable * is) {
        add(ChangeKind::note, fmt::format("worst error over bound of {}: {} -> {}", output,
                                          error_ratio_text(was), error_ratio_text(is)));
      }
    }
  }

  void compare_io(const json& before, const json& after, const std::string& which) {
    if (!before.is_object() || !after.is_object()) {
      const std::string words = "its words" + which + " are ";
      if (before.is_object()) add(ChangeKind::regression, words + "not counted any more");
      if (after.is_object()) add(ChangeKind::improvement, words + "counted now");
      return;
    }
    std::map<std::string, json> rows;
    for (const json& row : before.at("table")) rows[key(row)] = row;
    for (const json& row : after.at("table")) {
      const auto known = rows.find(key(row));
      if (known == rows.end()) continue;
      // Words of the code where both count them, else of the schedule.
      const bool of_code = has_code(known->second) && has_code(row);
      const double was = moved(known->second, of_code), is = moved(row, of_code);
      if (was == is) continue;
      add(is > was ? ChangeKind::regression : ChangeKind::improvement,
          fmt::format("words moved {:.0f} -> {:.0f} for {} ({})", was, is,
                      row.at("problem").get<std::string>(),
                      row.at("direction").get<std::string>()));
    }
    for (const json& violation : after.at("violations")) {
      if (words_of(before.at("violations")).count(violation.get<std::string>()) == 0) {
        add(ChangeKind::regression, "I/O violated: " + violation.get<std::string>());
      }
    }
  }

  static std::string key(const json& row) {
    return row.at("direction").get<std::string>() + " " + row.at("problem").get<std::string>();
  }
  static bool has_code(const json& row) { return row.value("of_code", json()).is_object(); }
  static double moved(const json& row, bool of_code) {
    return (of_code ? row.at("of_code").at("moved") : row.at("counted").at("moved").at("words"))
        .get<double>();
  }

  std::string kernel_;
  std::vector<Change> changes_;
};

std::vector<std::string> kernels_of(const json& certificate) {
  std::vector<std::string> names;
  for (const json& kernel : certificate.at("kernels")) names.push_back(kernel.at("kernel"));
  return names;
}

std::vector<Change> compared(const json& before, const json& after) {
  Comparer comparer;
  for (const char* option : {"tier", "seed"}) {
    const json &was = before.at(option), &is = after.at(option);
    if (was != is) {
      comparer.note(fmt::format("{} {} -> {}: the cases differ", option, was.dump(), is.dump()));
    }
  }
  std::map<std::string, const json*> known;
  for (const json& kernel : before.at("kernels")) {
    known[kernel.at("kernel").get<std::string>()] = &kernel;
  }
  const auto same = same_kernels(kernels_of(before), kernels_of(after));
  for (const json& kernel : after.at("kernels")) {
    const auto name = kernel.at("kernel").get<std::string>();
    const auto found = same.find(name);
    if (found == same.end()) {
      comparer.came(name);
      continue;
    }
    if (found->second != name) {
      comparer.note(
          fmt::format("{} is compared with {} of the first certificate", name, found->second));
    }
    comparer.compare(*known[found->second], kernel);
    known.erase(found->second);
  }
  for (const auto& [name, kernel] : known) comparer.gone(name);
  return comparer.take();
}

// Throws InvalidProblem where an object has a member twice, or a byte 0 is there: readers differ on
// which one counts, and on where the text ends.
json parsed_once(const std::string& text) {
  std::vector<std::set<std::string>> open;  // members of the objects around the place
  json whole = json::parse(text, [&open](int, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key) {
      const auto& member = parsed.get_ref<const std::string&>();
      if (!open.back().insert(member).second) {
        throw InvalidProblem("has the member '" + member +
                             "' twice in one object, as attest never writes it");
      }
    }
    return true;
  });
  if (text.find('\0') != std::string::npos) throw InvalidProblem("holds a byte 0");
  return whole;
}

}  // namespace

json read_certificate(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw InvalidProblem("certificate '" + path + "': " + why);
  };
  std::error_code error;
  std::ifstream file(path);
  if (!std::filesystem::is_regular_file(path, error) || !file) {
    refuse("cannot be read; pass a file that `attest certify --out` wrote");
  }
  json certificate;
  try {
    certificate = parsed_once({std::istreambuf_iterator<char>(file), {}});
  } catch (const InvalidProblem& unlike) {
    refuse(unlike.what());
  } catch (const json::exception& wrong) {
    refuse(std::string("is not JSON, or was cut off: ") + wrong.what());
  }
  const json schema = certificate.is_object() ? certificate.value("schema", json()) : json();
  if (schema != "attest-certificate-1") {
    refuse("its schema is " + schema.dump() + ", it must be \"attest-certificate-1\"");
  }
  return certificate;
}

std::vector<Change> compare_certificates(const json& before, const json& after) {
  return reading_certificate([&] { return compared(before, after); });
}

int exit_code(const std::vector<Change>& changes) {
  return std::any_of(changes.begin(), changes.end(),
                     [](const Change& change) { return change.kind == ChangeKind::regression; })
             ? 1
             : 0;
}

json comparison_json(const std::vector<Change>& changes) {
  json object{{"schema", "attest-comparison-1"},
              {"regressions", json::array()},
              {"improvements", json::array()},
              {"notes", json::array()},
              {"exit_code", exit_code(changes)}};
  for (const Change& change : changes) {
    const char* list = change.kind == ChangeKind::regression    ? "regressions"
                       : change.kind == ChangeKind::improvement ? "improvements"
                                                                : "notes";
    json entry{{"kernel", change.kernel}, {"what", change.what}};
    if (!change.reproduce.empty()) entry["reproduce"] = change.reproduce;
    object[list].push_back(entry);
  }
  return object;
}

}  // namespace attest::certify
