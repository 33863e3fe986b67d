#include "certify/campaign/journal.hpp"

#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>

#include "certify/campaign/code_content.hpp"
#include "certify/campaign/host.hpp"
#include "certify/certificate.hpp"
#include "certify/files.hpp"
#include "certify/plan/plan.hpp"
#include "certify/report/kernel_names.hpp"
#include "certify/report/ratio.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "core/error.hpp"
#include "core/rng.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

Verdict parse_verdict(const std::string& word) {
  for (const Verdict verdict : {Verdict::passed, Verdict::improbable, Verdict::violated,
                                Verdict::vacuous, Verdict::unsupported, Verdict::crashed}) {
    if (word == name(verdict)) return verdict;
  }
  throw InvalidProblem("unknown verdict '" + word + "'");
}

proptest::Case parse_case(const json& object) {
  const std::string text = object.at("problem"), version = "v1;";
  if (text.rfind(version, 0) != 0) throw InvalidProblem("problem '" + text + "' is not of v1");
  return {Problem::parse(text.substr(version.size())),
          proptest::parse_values(object.at("values").get<std::string>()),
          object.at("seed").get<std::uint64_t>(), object.at("threads").get<std::int32_t>()};
}

json named(const char* event, const CheckName& name) {
  return {{"event", event},
          {"kernel", std::get<0>(name)},
          {"law", std::get<1>(name)},
          {"position", std::get<2>(name)}};
}

std::string named_in(const KernelNames& names, const std::string& kernel) {
  const auto found = names.find(kernel);
  return found == names.end() ? kernel : found->second;
}

CheckName name_in(const json& line, const KernelNames& names) {
  return {named_in(names, line.at("kernel")), line.at("law"), line.at("position")};
}

json line_of(const CheckName& name, const CheckRecord& record) {
  json line = named("check", name);
  line["verdict"] = attest::name(record.verdict);
  line["seed"] = record.seed;
  if (!record.message.empty()) line["message"] = record.message;
  if (!record.outputs.empty()) line["outputs"] = record.outputs;
  return line;
}

json line_of(const CheckName& name, const ShrunkRecord& record) {
  json line = named("shrunk", name);
  line["case"] = case_json(record.shrunk);
  line["message"] = record.message;
  line["checks"] = record.checks;
  for (const proptest::Case& earlier : record.after) line["after"].push_back(case_json(earlier));
  return line;
}

std::string text_of(const json& line) {
  return line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

// Nothing is dropped from a file that another program wrote.
[[noreturn]] void refuse_foreign(const std::string& path) {
  throw InvalidProblem("'" + path + "' is no journal of `attest certify`; pass another file");
}

// A file system without locks does without.
void require_alone(std::FILE* file, const std::string& path) {
  if (flock(fileno(file), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  throw InvalidProblem("'" + path +
                       "' is written by another process that runs; wait for its end, or pass "
                       "another file");
}

// Returns a member of a header that anybody may have written; null where there is none.
json member(const json& header, const std::string& key) {
  return header.is_object() && header.contains(key) ? header.at(key) : json(nullptr);
}

[[noreturn]] void refuse_other_build(const std::string& where, const std::string& of) {
  throw InvalidProblem("'" + where + "' holds results of another build of " + of +
                       "; go on with that build, or run all of the campaign with this one into "
                       "another file");
}

// Results of a machine of another kind, or of other instructions of one.
void refuse_other_kind(const json& got, const json& expected, const std::string& where) {
  const auto found = other_kind(expected, got);
  if (!found) return;
  throw InvalidProblem(fmt::format(
      "'{}' holds results of host.{} {}, and this machine has {}: built-in kernels and bounds "
      "depend on it; go on on a machine of that kind{}",
      where, found->key, found->other, found->one,
      found->key == "cpu_target" ? ", or with the same ATTEST_CPU_TARGET" : ""));
}

// Kernels of a header, whose libraries are told by their bytes: a path may be spelled otherwise.
json without_folders(json kernels) {
  if (!kernels.is_array()) return kernels;
  for (json& one : kernels) {
    const json name = member(one, "kernel");
    if (name.is_string()) one["kernel"] = without_folder(name.get<std::string>());
  }
  return kernels;
}

// Kernels that differ in nothing but the bytes of their files were built again.
void refuse_other_library(const json& kernels, const json& expected, const std::string& where) {
  if (!kernels.is_array() || kernels.size() != expected.size()) return;
  const json got = without_folders(kernels), wanted = without_folders(expected);
  const auto built_again = [](const json& one, json other) {
    if (!one.is_object() || one == other) return false;
    for (const char* of_bytes : {"library", "needed"}) {
      other[of_bytes] = one.value(of_bytes, json(nullptr));
    }
    return one == other;
  };
  for (std::size_t k = 0; k < got.size(); ++k) {
    if (!built_again(got[k], wanted[k])) continue;
    const bool own = member(got[k], "library") != member(wanted[k], "library");
    refuse_other_build(where, std::string(own ? "the file of '" : "a library linked with '") +
                                  expected[k].at("kernel").get<std::string>() + "'");
  }
}

}  // namespace

json campaign_header(const std::vector<const attest_kernel*>& kernels,
                     const CampaignOptions& options) {
  json descriptions = json::array();  // in their order
  for (const attest_kernel* kernel : kernels) {
    const std::string content = content_of_code(*kernel);
    json needed = json::array();  // their bytes: folders may differ
    for (const NeededFile& one : needed_content(*kernel)) needed.push_back(one.sha256);
    descriptions.push_back({{"kernel", kernel->description.name},
                            {"description", description_json(kernel->description)},
                            {"isolation", worker::isolation_words(*kernel)},
                            {"library", content.empty() ? json(nullptr) : json(content)},
                            {"needed", needed}});
  }
  const json mask =
      options.mask ? json{{"spelling", options.mask->spelling}, {"content", options.mask->content}}
                   : json(nullptr);
  const json host = host_json();
  return {{"event", "campaign"},
          {"schema", "attest-journal-1"},
          {"version", version()},
          {"program", program_sha256()},
          {"machine", host.at("machine")},
          {"cpu_target", host.at("cpu_target")},
          {"stream_version", kStreamVersion},
          {"tier", proptest::name(options.tier)},
          {"seed", options.seed},
          {"data_seed", options.values_seed()},
          {"cases", options.cases ? json(*options.cases) : json(nullptr)},
          {"shapes", to_string(options.shapes)},
          {"law", options.law ? json(*options.law) : json(nullptr)},
          {"mask", mask},
          {"problems", options.problems},
          {"shard", to_string(options.shard)},
          {"kernels", descriptions}};
}

void require_same_campaign(const json& got, const json& expected, const std::string& where) {
  if (member(got, "program") != member(expected, "program")) refuse_other_build(where, "attest");
  refuse_other_kind(got, expected, where);
  for (const auto& [key, value] : expected.items()) {
    const json other = member(got, key);
    const bool long_text = key == "kernels";
    if (other == value || (long_text && without_folders(other) == without_folders(value))) continue;
    if (long_text) refuse_other_library(other, value, where);
    throw InvalidProblem("'" + where + "' is of another campaign: its " + key +
                         (long_text ? " differ" : " is " + other.dump() + ", not " + value.dump()) +
                         "; pass the same options or another file");
  }
}

KernelNames renamed_kernels(const json& from, const json& to) {
  const json before = member(from, "kernels"), after = member(to, "kernels");
  KernelNames names;
  for (std::size_t k = 0; k < std::min(before.size(), after.size()); ++k) {
    names.emplace(before[k].at("kernel"), after[k].at("kernel").get<std::string>());
  }
  return names;
}

void Journal::open(const std::string& path, const json& header) {
  require_writable(path);
  // Not for workers, which would hold the lock.
  std::unique_ptr<std::FILE, Closer> locked(std::fopen(path.c_str(), "abe"));
  if (!locked) throw InvalidProblem("cannot write '" + path + "'");
  require_alone(locked.get(), path);
  std::string text;
  {
    std::ifstream file(path, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  if (whole == 0 && text_of(header).rfind(text, 0) != 0) refuse_foreign(path);
  std::map<CheckName, std::string> begun;
  KernelNames names;
  for (std::size_t begin = 0; begin < whole;) {
    const std::size_t end = text.find('\n', begin);
    const json line = json::parse(text.substr(begin, end - begin), nullptr, false);
    if (begin == 0) {
      if (!line.is_object() || line.value("event", json()) != header.at("event")) {
        refuse_foreign(path);
      }
      require_same_campaign(line, header, path);
      names = renamed_kernels(line, header);
      in_file_ = renamed_kernels(header, line);
    } else {
      try {
        if (line.at("event") == "begin") {
          begun[name_in(line, names)] = line.at("line");
        } else {
          read(line, names);
          begun.erase(name_in(line, names));
        }
      } catch (const json::exception&) {
        throw InvalidProblem(
            "'" + path + "' holds a line that is no record: " + text.substr(begin, end - begin));
      }
    }
    begin = end + 1;
  }
  for (const auto& [name, command] : begun) unfinished_.push_back(command);
  path_ = path;
  file_ = std::move(locked);
  if (ftruncate(fileno(file_.get()), static_cast<off_t>(whole)) != 0) {
    throw InvalidProblem("cannot write '" + path + "'");
  }
  if (whole == 0) write(header);
  begin_ = whole == 0 ? text_of(header).size() : whole;
}

void Journal::forget_run() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!file_ || ftruncate(fileno(file_.get()), static_cast<off_t>(begin_)) == 0) return;
  throw InvalidProblem("cannot write '" + path_ +
                       "', which has results of another file of the kernel's; remove it");
}

void Journal::write(const json& line) {
  if (!file_) return;
  json told = line;
  if (told.contains("kernel")) told["kernel"] = named_in(in_file_, told["kernel"]);
  const std::string text = text_of(told);
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() ||
      std::fflush(file_.get()) != 0) {
    throw InvalidProblem("cannot write '" + path_ + "'; is the disk full?");
  }
}

void Journal::read(const json& line, const KernelNames& names) {
  const CheckName name = name_in(line, names);
  if (line.at("event") == "check") {
    CheckRecord& record = checks_[name];
    record.verdict = parse_verdict(line.at("verdict"));
    record.seed = line.at("seed");
    record.message = line.value("message", "");
    if (!line.contains("outputs")) return;
    for (const auto& [output, ratio] : line.at("outputs").items()) {
      record.outputs[output] = ratio_in(ratio);
    }
  } else {
    ShrunkRecord& record = shrunk_[name];
    record = {parse_case(line.at("case")), line.at("message"), line.at("checks")};
    for (const json& earlier : line.value("after", json::array())) {
      record.after.push_back(parse_case(earlier));
    }
  }
}

void Journal::begin(const CheckName& name, const std::string& line) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!file_) return;
  json object = named("begin", name);
  object["line"] = line;
  write(object);
}

void Journal::add(const CheckName& name, const CheckRecord& record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  checks_[name] = record;
  write(line_of(name, record));
}

void Journal::add(const CheckName& name, const ShrunkRecord& record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  shrunk_[name] = record;
  write(line_of(name, record));
}

std::optional<CheckRecord> Journal::check(const CheckName& name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = checks_.find(name);
  return found == checks_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<ShrunkRecord> Journal::shrunk(const CheckName& name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = shrunk_.find(name);
  return found == shrunk_.end() ? std::nullopt : std::optional(found->second);
}

void Journal::add_processor(const std::string& name) {
  if (!name.empty()) processors_.insert(name);
}

std::vector<ShrunkRecord> Journal::shrunk_cases(const std::string& kernel,
                                                const std::string& law) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<ShrunkRecord> cases;
  for (const auto& [name, record] : shrunk_) {
    if (std::get<0>(name) == kernel && std::get<1>(name) == law) cases.push_back(record);
  }
  return cases;
}

json Journal::records() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  json list = json::array();
  for (const auto& [name, record] : checks_) list.push_back(line_of(name, record));
  for (const auto& [name, record] : shrunk_) list.push_back(line_of(name, record));
  return list;
}

void Journal::read_records(const json& records, const std::string& where,
                           const KernelNames& names) {
  try {
    for (const json& record : records) read(record, names);
  } catch (const json::exception&) {
    throw InvalidProblem("'" + where + "' holds what is no record of a check");
  }
}

}  // namespace attest::certify
