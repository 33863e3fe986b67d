#pragma once

#include <string>

/// How verdicts look and read on pages.
namespace attest::certify {

struct Tone {
  const char* style;
  std::string word;
};

/// A verdict without a finding: its banner, and the words around how many kernels it is of.
struct Success {
  const char *verdict, *banner, *before, *after;
};

/// Returns the success of a verdict; null for any other.
const Success* success_of(const std::string& verdict);

/// Returns the success of a certified kernel.
const Success& certified();

Tone tone_of(const std::string& verdict);

/// A verdict as a coloured label.
std::string chip(const std::string& verdict);

}  // namespace attest::certify
