#pragma once

#include <map>
#include <string>
#include <vector>

namespace attest::certify {

/// Returns a kernel's name without the folder of its file: "build/libmine.so:x" is "libmine.so:x".
/// Built-in names, which have no file, stay.  [certify/report/kernel_names_test]
std::string without_folder(const std::string& kernel);

/// Returns a word for the names of files of one kernel's, which no other kernel has: "cpu/flash2"
/// is "cpu-flash2"; of a name of more than letters, digits, '_' and '/' the last 100 bytes at most
/// and eight digits of its SHA-256, "libmine-so-x.0b75ae21". [certify/report/kernel_names_test "a
/// word for files"]
std::string file_word(const std::string& kernel);

/// Returns for names of the second list the one of the first that is the same kernel: of the same
/// name; else of the same file and name in another folder; else of the same name in a file of
/// another name. A name that could be two stays alone.  [certify/report/kernel_names_test]
std::map<std::string, std::string> same_kernels(const std::vector<std::string>& before,
                                                const std::vector<std::string>& after);

}  // namespace attest::certify
