#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "certify/audit/verification.hpp"
#include "certify/cli/commands.hpp"
#include "certify/cli/terminal.hpp"
#include "certify/plan/sizes.hpp"
#include "certify/printable.hpp"
#include "certify/report/certificate_fields.hpp"
#include "certify/report/comparison.hpp"

namespace attest::certify::cli {
namespace {

struct VerifyOptions {
  std::string certificate;
  std::vector<std::string> files;
  bool json = false;
};

std::string text_of(const nlohmann::json& value) {
  return value.is_string() ? printable(value.get<std::string>()) : "unknown";
}

void print_certificate(const nlohmann::json& certificate, const Verification& found) {
  const nlohmann::json &build = certificate.at("build"), &host = certificate.at("host");
  fmt::print("  made                     {} by Attest {}, commit {}\n",
             text_of(certificate.at("timings").at("date")), text_of(build.at("version")),
             text_of(build.at("commit")));
  fmt::print("  on                       {} {}, {}, {} threads{}\n", text_of(host.at("system")),
             text_of(host.at("machine")), text_of(host.at("processor")), host.at("threads").dump(),
             printable(processors_text(host)));
  fmt::print("  tier, seeds              {}, {} and {}\n", text_of(certificate.at("tier")),
             certificate.at("seed").dump(), certificate.at("data_seed").dump());
  fmt::print("  SHA-256 of the whole     {}{}\n", text_of(certificate.at("sha256")),
             found.whole ? "" : bad("  DIFFERS: it was changed after it was made"));
}

void print_kernel(const nlohmann::json& kernel) {
  fmt::print("{}  {}\n", bold(text_of(kernel.at("kernel"))), printable(verdict_of(kernel)));
  fmt::print("  ran                      {}\n", text_of(kernel.at("ran")));
  const std::string contract = text_of(kernel.at("contract"));
  fmt::print("  contract                 {}\n", contract.empty() ? "plain float32" : contract);
  for (const auto& [mask, covered] : kernel.at("coverage").at("sizes").items()) {
    fmt::print("  sizes covered: {:<9} {}\n", printable(mask), sizes_text(covered));
  }
}

void print_files(const nlohmann::json& certificate, const Verification& found) {
  for (const VerifiedFile& file : found.files) {
    fmt::print("{}\n  SHA-256                  {}\n", bold(printable(file.path)), file.sha256);
    for (const std::string& kernel : file.kernels) {
      fmt::print("  holds                    {}\n", printable(kernel));
    }
    if (!file.kernels.empty()) continue;
    fmt::print("  {}\n", bad("DIFFERS: no kernel of the certificate ran from this file, but"));
    for (const nlohmann::json& kernel : certificate.at("kernels")) {
      const nlohmann::json& digest = kernel.at("library_sha256");
      fmt::print("    {} from {}\n", text_of(kernel.at("kernel")),
                 digest.is_string() ? text_of(digest) : "attest, or from no file");
    }
  }
}

void print_needed(const Verification& found) {
  for (const VerifiedNeed& one : found.needed) {
    fmt::print("{}\n  linked with, SHA-256     {}{}\n", bold(printable(one.path)),
               printable(one.sha256),
               one.digest.empty() ? ", no file there: not compared"
               : one.differs()    ? bad("  DIFFERS: the file there has other bytes")
                                  : "");
  }
}

std::string headline(const Verification& found) {
  switch (found.match) {
    case Match::matches:
      return good(found.files.empty() ? "WHOLE; NO FILE WAS COMPARED" : "MATCHES");
    case Match::differs:
      return bad("DOES NOT MATCH");
    case Match::not_certified:
      break;
  }
  return warning(found.files.empty() ? "WHOLE, BUT NOT CERTIFIED" : "MATCHES, BUT NOT CERTIFIED");
}

int verify_files(const VerifyOptions& options) {
  const nlohmann::json certificate = read_certificate(options.certificate);
  const Verification found = verify(certificate, options.files);
  if (options.json) {
    fmt::print("{}\n", json_text(verification_json(certificate, found)));
  } else {
    reading_certificate([&] {
      fmt::print("{}\n", bold(printable(options.certificate)));
      print_certificate(certificate, found);
      print_files(certificate, found);
      print_needed(found);
      for (const nlohmann::json& kernel : found.kernels) print_kernel(kernel);
      fmt::print("\n{}\n", headline(found));
    });
  }
  return exit_code(found.match);
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "verify", "holds a certificate against files: digests, date, machine, contract, sizes");
  auto options = std::make_shared<VerifyOptions>();
  command->add_option("certificate", options->certificate, "a file that attest certify --out wrote")
      ->required();
  command->add_option("file", options->files,
                      "libraries, files of functions in Python, or the attest program, which holds "
                      "the built-in kernels; without one the certificate alone");
  command->add_flag("--json", options->json, "as JSON (certify/schemas/verification.schema.json)");
  command->footer(
      "Exit codes: 0 matches: the certificate is whole, each file is one that it is about, and\n"
      "            their kernels are certified; 1 does not match; 2 bad input; 3 matches, but a\n"
      "            kernel has another verdict.\n"
      "A SHA-256 tells that nothing was changed by accident; who made the certificate, only a\n"
      "signature tells, such as one of gpg or cosign over the file.\n"
      "Examples:\n"
      "  attest verify certificate.json ./libmine.so\n"
      "  attest verify certificate.json --json\n"
      "  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) attest certify ./libmine.so --out "
      "certificate.json");
  command->callback([&action, options] { action = [options] { return verify_files(*options); }; });
}

}  // namespace attest::certify::cli
