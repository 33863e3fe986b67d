#include "certify/plan/own_problems.hpp"

#include <algorithm>
#include <sstream>

#include "certify/files.hpp"
#include "core/error.hpp"
#include "core/problem.hpp"
#include "proptest/judge/truth/affordable.hpp"

namespace attest::certify {
namespace {

std::string without_blanks(const std::string& text) {
  constexpr const char* kBlanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

void add_once(const std::string& problem, std::vector<std::string>& problems) {
  if (std::find(problems.begin(), problems.end(), problem) == problems.end()) {
    problems.push_back(problem);
  }
}

}  // namespace

std::vector<std::string> read_problems(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<std::string> problems;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string text = without_blanks(line.substr(0, line.find('#')));
    if (text.empty()) continue;
    try {
      if (text.find('\0') != std::string::npos) {  // would end the message
        throw InvalidProblem("holds a byte 0; a problem is text, for example sq=128,d=64");
      }
      add_once(Problem::parse(text).to_string(), problems);
    } catch (const InvalidProblem& error) {
      throw InvalidProblem(path + ":" + std::to_string(number) + ": " + error.what());
    }
  }
  if (problems.empty()) throw InvalidProblem("'" + path + "' holds no problem; write one a line");
  return problems;
}

std::vector<std::string> own_problems(const std::vector<std::string>& given,
                                      const std::string& path) {
  std::vector<std::string> problems;
  for (const std::string& text : given) add_once(Problem::parse(text).to_string(), problems);
  if (path.empty()) return problems;
  for (const std::string& problem : read_problems(path)) add_once(problem, problems);
  return problems;
}

void require_affordable_problems(const attest_kernel& kernel,
                                 const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) {
    proptest::require_affordable(kernel.description, Problem::parse(problem),
                                 proptest::Work::sampled_judgement);
  }
}

}  // namespace attest::certify
