#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "certify/campaign/campaign_options.hpp"
#include "core/verdict.hpp"
#include "proptest/laws/law.hpp"

/// Record of what a campaign has found out so far, check by check, in memory and as JSON lines in a
/// file.
namespace attest::certify {

/// One check: what a law said of a case.
struct CheckRecord {
  Verdict verdict = Verdict::unsupported;
  std::string message;
  std::uint64_t seed = 0;                 // of the case; another than planned when it was repeated
  std::map<std::string, double> outputs;  // worst error over bound, of those compared
};

/// The smallest case that fails like one of the campaign.
struct ShrunkRecord {
  proptest::Case shrunk;
  std::string message;
  int checks = 1;
  std::vector<proptest::Case> after{};  // that must be checked before it in the same process
};

/// Which check of a campaign: kernel, law, position of its case in the plan.
using CheckName = std::tuple<std::string, std::string, std::uint64_t>;

/// The campaign a journal belongs to: what must be equal for its records to be used again. That are
/// the options, what the kernels say of themselves, the bytes of this program and of their
/// libraries, though not of libraries that these load, and the kind of machine (host_json: machine,
/// cpu_target).
nlohmann::json campaign_header(const std::vector<const attest_kernel*>& kernels,
                               const CampaignOptions& options);

/// Names of kernels, each by its name elsewhere. A name that is missing is the same there.
using KernelNames = std::map<std::string, std::string>;

/// Returns the names that kernels have in the header `to`, by those in `from`: the path of a
/// library may be spelled in several ways. Requires: headers of one campaign.
/// [certify/campaign/journal_test "spelled"]
KernelNames renamed_kernels(const nlohmann::json& from, const nlohmann::json& to);

/// Throws InvalidProblem naming the first field in which two headers differ, what was built again,
/// or in what the machines differ. A library is the same by its bytes and its file's name, in
/// whatever folder.
/// [certify/campaign/journal_test "another build", "another kind", "spelled"]
void require_same_campaign(const nlohmann::json& got, const nlohmann::json& expected,
                           const std::string& where);

/// Thread-safe. Lines of the file, each written out before the next step: the header; `begin` with
/// the command that runs a check again, before it runs; `check` with its result; `shrunk`.
class Journal {
 public:
  Journal() = default;

  /// Goes on with the file of an earlier run of the same campaign, or begins one. A last line that
  /// was cut off is dropped. The file is locked (flock) while this lives, so that no second process
  /// writes to it. Throws InvalidProblem for another campaign's file, a file that is no journal,
  /// one that is locked and one that cannot be written.  [certify/campaign/journal_test]
  void open(const std::string& path, const nlohmann::json& header);

  /// Takes out of the file what was written since it was opened: it may be of another file of the
  /// kernel's. The journal is not used after this.  [certify/campaign/journal_test "taken out"]
  void forget_run();

  void begin(const CheckName& name, const std::string& line);
  void add(const CheckName& name, const CheckRecord& record);
  void add(const CheckName& name, const ShrunkRecord& record);

  std::optional<CheckRecord> check(const CheckName& name) const;
  std::optional<ShrunkRecord> shrunk(const CheckName& name) const;

  /// Every smallest case of a kernel and a law, by position: shards have one each.
  std::vector<ShrunkRecord> shrunk_cases(const std::string& kernel, const std::string& law) const;

  /// Every record, sorted; and back again, under the names that kernels have here. Throws
  /// InvalidProblem for what is no record.
  nlohmann::json records() const;
  void read_records(const nlohmann::json& records, const std::string& where,
                    const KernelNames& names = {});

  /// Notes a processor, by its name, on which records were made elsewhere.
  void add_processor(const std::string& name);
  const std::set<std::string>& processors() const { return processors_; }

  /// The commands of checks that an earlier run began and did not finish: it died meanwhile.
  const std::vector<std::string>& unfinished() const { return unfinished_; }

 private:
  void write(const nlohmann::json& line);
  void read(const nlohmann::json& line, const KernelNames& names);

  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  mutable std::mutex mutex_;
  std::map<CheckName, CheckRecord> checks_;
  std::map<CheckName, ShrunkRecord> shrunk_;
  std::unique_ptr<std::FILE, Closer> file_;
  std::string path_;
  KernelNames in_file_;    // what the file's header calls each kernel
  std::size_t begin_ = 0;  // bytes of the file before what is written by this
  std::vector<std::string> unfinished_;
  std::set<std::string> processors_;
};

}  // namespace attest::certify
