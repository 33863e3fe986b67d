#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>

namespace attest::certify {

/// Returns the file a path names once its symbolic links are followed, whether or not it exists.
/// Throws InvalidProblem for links without end.
std::filesystem::path target_of(const std::string& path);

/// Tells whether a file is a library or program (ELF): one that is certified, most likely.
bool is_machine_code(const std::filesystem::path& file);

/// Throws InvalidProblem unless a regular file can be written at `path`, after following symbolic
/// links: a directory, device, pipe or socket is refused, and a library or program (ELF) that would
/// be lost, or the file where the standard output or error goes. Creates nothing there.
/// [certify/files_test "only regular files are written"]
void require_writable(const std::string& path);

/// Tells whether the file is where the standard output or error goes.
/// [certify/cli/tests/pipelines_test]
bool is_printed_to(const std::filesystem::path& file);

/// Writes to a temporary name beside the file, then renames: it is old, new or absent, never half.
/// A symbolic link stays and its target is written. Throws InvalidProblem when that fails.
/// [certify/files_test "files are written whole or not at all"]
void write_file(const std::string& path, const std::string& text);

/// The same with what `write` writes; when it throws, nothing is left behind.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

/// Removes a regular file, where there is one. A symbolic link stays and its target is removed.
/// Throws InvalidProblem when that fails.  [certify/files_test "removed"]
void remove_file(const std::string& path);

/// Adds to the end of a file, or begins it, in one write: processes that add at once lose nothing.
/// A paragraph apart from what is there. Throws InvalidProblem when that fails.
/// [certify/files_test "files grow by paragraphs"]
void append_file(const std::string& path, const std::string& text);

/// All bytes of a file. Throws InvalidProblem when it cannot be read.
/// [certify/files_test "files are written whole or not at all"]
std::string read_file(const std::string& path);

}  // namespace attest::certify
