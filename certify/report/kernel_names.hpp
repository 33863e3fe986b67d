#pragma once

#include <map>
#include <string>
#include <vector>

namespace attest::certify {

/// Returns a kernel's name without the folder of its file: "build/libmine.so:x" is "libmine.so:x".
/// Built-in names, which have no file, stay.  [certify/report/kernel_names_test]
std::string without_folder(const std::string& kernel);

/// Returns for names of the second list the one of the first that is the same kernel: of the same
/// name; else of the same file and name in another folder; else of the same name in a file of
/// another name. A name that could be two stays alone.  [certify/report/kernel_names_test]
std::map<std::string, std::string> same_kernels(const std::vector<std::string>& before,
                                                const std::vector<std::string>& after);

}  // namespace attest::certify
