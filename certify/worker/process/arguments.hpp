#pragma once

#include <string>
#include <vector>

namespace attest::certify::worker {

/// The words as posix_spawn takes them, ended by a null pointer; valid while the words are.
inline std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  list.reserve(words.size() + 1);
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace attest::certify::worker
