#include "certify/fuzz/parsers.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <regex>

#include "certify/audit/seal.hpp"
#include "certify/audit/verification.hpp"
#include "certify/campaign/campaign_mask.hpp"
#include "certify/campaign/journal.hpp"
#include "certify/campaign/merge.hpp"
#include "certify/count/cache_count.hpp"
#include "certify/files.hpp"
#include "certify/findings/case_text.hpp"
#include "certify/history/failed_checks.hpp"
#include "certify/history/known_failures.hpp"
#include "certify/plan/own_problems.hpp"
#include "certify/report/comparison.hpp"
#include "certify/report/failure.hpp"
#include "certify/report/html/html.hpp"
#include "certify/report/junit.hpp"
#include "certify/report/safetensors.hpp"
#include "certify/worker/library/elf.hpp"
#include "core/error.hpp"
#include "core/files/safetensors.hpp"
#include "core/mask/sparsity/pattern_file.hpp"
#include "core/problem.hpp"
#include "core/sparse_operands/sparse_operands_file.hpp"

namespace attest::certify::fuzz {
namespace {

void require_same(bool same, const char* what) {
  if (!same) throw InternalError(std::string(what) + " is another after a round trip");
}

std::string written(const std::string& bytes, const std::string& folder, const char* name) {
  std::string path = folder + "/" + name;
  std::remove(path.c_str());  // a library is not written over
  write_file(path, bytes);
  return path;
}

// Texts name no files, of which a fuzzer finds the machine's own, and masks of no long problems:
// of their pairs 2^31 are allowed, each of which takes its time.
std::string plain_text(const std::string& bytes) {
  static const std::regex file("file_|pattern_"), long_mask("[0-9]{4}");
  if (std::regex_search(bytes, file)) throw InvalidProblem("names a file");
  if (bytes.find("mask=") != std::string::npos && std::regex_search(bytes, long_mask)) {
    throw InvalidProblem("may be a mask of a long problem");
  }
  return bytes;
}

void problem(const std::string& bytes, const std::string&) {
  const Problem read = Problem::parse(plain_text(bytes));
  require_same(Problem::parse(read.to_string()).to_string() == read.to_string(), "a problem");
}

void campaign_mask(const std::string& bytes, const std::string&) {
  parse_campaign_mask(plain_text(bytes));
}

void case_words(const std::string& bytes, const std::string&) {
  const proptest::Case beside{Problem::parse("sq=2,d=1"), proptest::Values::normal, 1, 1};
  const proptest::Case read = parse_case_text(plain_text(bytes), beside);
  require_same(case_text(parse_case_text(case_text(read, beside), beside), beside) ==
                   case_text(read, beside),
               "a case");
}

// The shape that the rows have: of another they are refused before they are read.
void mask_rows(const std::string& bytes, const std::string& folder) {
  const std::string path = written(bytes, folder, "mask.txt");
  Pattern::parse("file_" + path, 3, 4);
  parse_campaign_mask("file_" + path);
}

void pattern(const std::string& path) {
  const SparsityPattern read = read_pattern_file(path);
  const std::string again =
      path.ends_with(".json") ? pattern_json(read) : pattern_safetensors(read);
  write_file(path, again);
  const SparsityPattern second = read_pattern_file(path);
  require_same(
      (path.ends_with(".json") ? pattern_json(second) : pattern_safetensors(second)) == again,
      "a pattern");
}

void pattern_of_json(const std::string& bytes, const std::string& folder) {
  pattern(written(bytes, folder, "pattern.json"));
}

void pattern_of_tensors(const std::string& bytes, const std::string& folder) {
  pattern(written(bytes, folder, "pattern.safetensors"));
}

void stored_tensors(const std::string& bytes, const std::string&) {
  const StoredTensors read = parse_stored_tensors(bytes, "tensors");
  const std::string again = write_safetensors(read);
  require_same(write_safetensors(parse_stored_tensors(again, "tensors")) == again, "tensors");
}

void failure(const std::string& bytes, const std::string&) {
  parse_failure(parse_safetensors(bytes, "failure"), "failure");
}

void sparse_operands(const std::string& bytes, const std::string& folder) {
  read_sparse_operands(written(bytes, folder, "inputs.safetensors"),
                       Problem::parse("sq=2,sk=3,d=4"));
}

void certificate(const std::string& bytes, const std::string& folder) {
  const nlohmann::json read = read_certificate(written(bytes, folder, "certificate.json"));
  compare_certificates(read, read);
  html_report(read);
  junit_report(read);
  verification_json(read, verify(read, {}));
}

// Sealed first: else nearly every change of the bytes ends at the seal.
void shard(const std::string& bytes, const std::string&) {
  nlohmann::json object = nlohmann::json::parse(bytes, nullptr, false);
  const bool sealed = object.is_object();
  if (sealed) seal(object);
  const std::string text =
      sealed ? object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) : bytes;
  Journal journal;
  merge_shards(std::vector<ShardCertificate>{{"shard", text}}, Shards::given, journal);
}

void journal(const std::string& bytes, const std::string& folder) {
  const std::string path = written(bytes, folder, "journal.jsonl");
  failed_checks(path, {"kernel"});
  Journal journal;
  journal.open(path, {{"event", "campaign"}, {"seed", 1}});
  Journal second;
  second.read_records(journal.records(), "records");
  require_same(second.records() == journal.records(), "a journal");
}

void known_failures(const std::string& bytes, const std::string& folder) {
  read_known_failures(written(bytes, folder, "known.txt"));
}

void problems(const std::string& bytes, const std::string& folder) {
  read_problems(written(plain_text(bytes), folder, "problems.txt"));
}

void callgrind(const std::string& bytes, const std::string&) { parse_callgrind(bytes); }

void cache_geometry(const std::string& bytes, const std::string&) { CacheGeometry::parse(bytes); }

void library(const std::string& bytes, const std::string& folder) {
  const std::string path = written(bytes, folder, "library.so");
  worker::require_library(path);
  worker::undefined_symbols(path);
  worker::needed_libraries(path);
}

constexpr std::array kParsers{Parser{"cache_geometry", cache_geometry},
                              Parser{"callgrind", callgrind},
                              Parser{"campaign_mask", campaign_mask},
                              Parser{"case_words", case_words},
                              Parser{"certificate", certificate},
                              Parser{"failure", failure},
                              Parser{"journal", journal},
                              Parser{"known_failures", known_failures},
                              Parser{"library", library},
                              Parser{"mask_rows", mask_rows},
                              Parser{"pattern_of_json", pattern_of_json},
                              Parser{"pattern_of_tensors", pattern_of_tensors},
                              Parser{"problem", problem},
                              Parser{"problems", problems},
                              Parser{"shard", shard},
                              Parser{"sparse_operands", sparse_operands},
                              Parser{"stored_tensors", stored_tensors}};

}  // namespace

std::span<const Parser> parsers() { return kParsers; }

const Parser& find_parser(std::string_view name) {
  const auto* found = std::find_if(kParsers.begin(), kParsers.end(),
                                   [&](const Parser& parser) { return parser.name == name; });
  if (found != kParsers.end()) return *found;
  std::string names;
  for (const Parser& parser : kParsers) names += " " + std::string(parser.name);
  throw InvalidProblem("unknown parser '" + std::string(name) + "'; there are:" + names);
}

bool takes(const Parser& parser, const std::string& bytes, const std::string& folder) {
  try {
    parser.parse(bytes, folder);
    return true;
  } catch (const InvalidProblem&) {
    return false;
  }
}

}  // namespace attest::certify::fuzz
