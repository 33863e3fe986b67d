#include "certify/cli/commands/certify_options.hpp"

#include <fmt/format.h>

#include "certify/cli/commands.hpp"
#include "core/error.hpp"

namespace attest::certify::cli {

void add_certify_options(CLI::App& command, CertifyOptions& options) {
  constexpr std::uint64_t kMostCases = 1000000000;
  command.add_option(
      "kernel", options.kernels,
      "names of kernels (attest list kernels), libraries (./libmine.so) or functions "
      "in Python (package.module:function, file.py:function)");
  command.add_flag("--all", options.all, "every kernel that is not broken on purpose");
  command.add_flag("--correct", options.correct,
                   "the correct kernels that the bounds are tested on, the loosest of every "
                   "contract among them: a finding is a false alarm");
  command
      .add_option("--except", options.except,
                  "with --all: not the kernels whose names begin so, for example gpu/")
      ->check(not_empty());
  command.add_option("--tier", options.tier, "smoke (default), fast or full");
  command.add_option("--seed", options.seed, "seed of the campaign, default 1")
      ->check(whole_number());
  command.add_option("--cases", options.cases, "generated cases instead of the tier's")
      ->check(whole_number(kMostCases));
  command.add_option("--shapes", options.shapes,
                     "model (default): those of published models, too; none: generated cases "
                     "alone, for a quick look; certifies nothing");
  command.add_option("--data-seed", options.data_seed, "seed of the values, default --seed")
      ->check(whole_number());
  command
      .add_option("--jobs", options.jobs,
                  "checks at a time, default one for each processor; changes no result")
      ->check(CLI::Range(1u, 1024u));
  command.add_option("--shard", options.shard,
                     "i/n: only part i of n of the checks; --merge joins the parts");
  command
      .add_option("--resume", options.resume,
                  "journal (JSON lines): begin it, or go on where it ends")
      ->check(not_empty());
  command.add_option("--merge", options.merge,
                     "certificates of all shards: the verdict on the whole, in place of kernels");
  command.add_option("--only", options.only, "only this law (attest list laws); certifies nothing")
      ->check(not_empty());
  command
      .add_option("--mask", options.mask,
                  "every case with this mask (docs/how-to/masks.md; file_PATH, pattern_PATH) in "
                  "place of its own, without model shapes; certifies no other mask")
      ->check(not_empty());
  CLI::Option* problem =
      command
          .add_option("--problem", options.problems,
                      "a problem of your own beside the campaign's, judged by the reference, by a "
                      "sample where it is long; several with --problem each")
          ->check(not_empty());
  CLI::Option* problems =
      command
          .add_option("--problems", options.problem_file,
                      "the same with a file: one problem a line, # begins a comment")
          ->check(not_empty());
  problem->allow_extra_args(false);
  for (CLI::Option* own : {problem, problems}) own->excludes(command.get_option("--mask"));
  command
      .add_option("--max-time", options.max_time,
                  "end at the next check after this time (90, 20m, 1.5h); what is missing then "
                  "makes the campaign incomplete, --resume goes on")
      ->check(not_empty());
  command.add_flag("--fail-fast", options.fail_fast,
                   "end at the first check that fails, without shrinking; kernels in the list of "
                   "--known-failures run to their end");
  command
      .add_option("--known-failures", options.known_failures,
                  "file with a line KERNEL LAW for each finding that is expected: it is told and "
                  "does not fail the run; one that occurs no longer is named")
      ->check(not_empty());
  command
      .add_option("--failed-first", options.failed_first,
                  "journal of an earlier run: what failed there runs first; changes no result")
      ->check(not_empty());
  command.add_flag("--estimate", options.estimate,
                   "run a sample of the checks and tell how long all will take, no more");
  command.add_option("--out", options.out, "write the certificate (JSON) to this file")
      ->check(not_empty());
  add_report_files(command, options.reports);
  command
      .add_option("--failures", options.failures,
                  "folder: the tensors of every failure as safetensors, see attest check --file")
      ->check(not_empty());
  command.add_flag("--json", options.json, "print the certificate instead of the report");
  command.add_flag("--verbose", options.verbose,
                   "print every law, kind of mask, model shape and lower bound");
  command.add_flag("--emulate", options.isolation.emulate,
                   "libraries for CUDA without a GPU: the PTX of their kernels is carried out on "
                   "the host, a call in 20 times --timeout at most "
                   "(docs/how-to/cuda-libraries-without-a-gpu.md)");
  add_isolation_options(command, options.isolation);
  add_function_options(command, options.isolation.functions);
  command.footer(
      "Examples:\n"
      "  attest certify cpu/flash2\n"
      "  attest certify ./libmine.so\n"
      "  attest certify ./libmine_cuda.so --emulate\n"
      "  attest certify mypackage.attention:flash --like flash_attn_func --numerics tensor_core\n"
      "  attest certify --all --tier fast --seed 7 --out certificate.json\n"
      "  attest certify --all --except gpu/ --except cpu/schedule/\n"
      "  attest certify broken/missing_rescale --only reference_forward\n"
      "  attest certify cpu/flash2 --problem 'hq=4,hkv=1,sq=4096,d=64,mask=causal_br'\n"
      "  attest certify sparse/csr_gather --mask pattern_mask.json\n"
      "  attest certify cpu/flash2 --tier full --resume journal.jsonl\n"
      "  attest certify cpu/flash2 --shard 1/2 --out 1.json   (and 2/2), then\n"
      "  attest certify --merge 1.json 2.json --out certificate.json\n"
      "  attest certify cpu/flash2 --html report.html --junit junit.xml --failures failures\n"
      "  attest certify ./libmine.so --tier fast --estimate\n"
      "  attest certify ./libmine.so --max-time 20m --known-failures known.txt --resume now.jsonl\n"
      "    --failed-first last.jsonl --sarif findings.sarif --markdown summary.md --github\n"
      "    (docs/how-to/put-into-your-ci.md)\n"
      "Ctrl-C ends at the next check: the certificate then says that it is partial, and the exit\n"
      "status is 3 unless something was found. A second one ends at once, without a certificate;\n"
      "a journal is kept. The status is 3, too, where part of\n"
      "what the kernel claims was not judged.");
  command.add_flag("--defects", options.defects,
                   "every kernel that is broken on purpose, or those named: which law refuses "
                   "it, how soon, and which published rules do not");
}

void require_together(const CLI::App& command, const CertifyOptions& options) {
  for (const char* other : {"--all",          "--correct",   "--except",
                            "--only",         "--mask",      "--shapes",
                            "--problem",      "--problems",  "--shard",
                            "--resume",       "--merge",     "--html",
                            "--junit",        "--sarif",     "--markdown",
                            "--github",       "--source",    "--failures",
                            "--max-time",     "--fail-fast", "--known-failures",
                            "--failed-first", "--estimate"}) {
    if (!options.defects || command.count(other) == 0) continue;
    throw InvalidProblem(fmt::format("--defects and {} together; pass one of them", other));
  }
  for (const char* other :
       {"kernel", "--all", "--correct", "--except", "--tier", "--seed", "--data-seed", "--cases",
        "--shapes", "--only", "--mask", "--problem", "--problems", "--shard", "--resume"}) {
    if (command.count("--merge") == 0 || command.count(other) == 0) continue;
    throw InvalidProblem(fmt::format(
        "--merge and {} together; the shards' certificates name kernels and options", other));
  }
  for (const char* other :
       {"--resume", "--merge", "--out", "--html", "--junit", "--sarif", "--markdown", "--github",
        "--failures", "--max-time", "--fail-fast", "--known-failures", "--failed-first"}) {
    if (!options.estimate || command.count(other) == 0) continue;
    throw InvalidProblem(
        fmt::format("--estimate and {} together; an estimate finds nothing, leave it out", other));
  }
  if (options.json && options.reports.github) {
    throw InvalidProblem("--json and --github both print; pass one, and --out for the other");
  }
}

}  // namespace attest::certify::cli
