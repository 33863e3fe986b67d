#include "certify/files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.hpp"

namespace attest::certify {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : ".";
}

// Asked by making a file: permissions say nothing of a folder that is no place for files.
bool takes_files(const std::filesystem::path& folder) {
  const std::string probe = (folder / (".attest-writable-" + std::to_string(getpid()))).string();
  const bool made = std::ofstream(probe).is_open();
  std::remove(probe.c_str());
  return made;
}

}  // namespace

bool is_printed_to(const std::filesystem::path& file) {
  struct stat asked {};
  struct stat stream {};
  if (stat(file.c_str(), &asked) != 0) return false;
  const auto goes_there = [&](int descriptor) {
    return fstat(descriptor, &stream) == 0 && stream.st_dev == asked.st_dev &&
           stream.st_ino == asked.st_ino;
  };
  return goes_there(STDOUT_FILENO) || goes_there(STDERR_FILENO);
}

bool is_machine_code(const std::filesystem::path& file) {
  char first[4] = {};
  std::ifstream(file, std::ios::binary).read(first, sizeof first);
  return std::memcmp(first,
                     "\x7f"
                     "ELF",
                     sizeof first) == 0;
}

std::filesystem::path target_of(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::filesystem::path target(path);
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(target, error); ++links) {
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error || links == kMostLinks) {
      throw InvalidProblem("cannot write '" + path +
                           "': its symbolic links do not end; pass the name of a file");
    }
    target = next.is_absolute() ? next : folder_of(target) / next;
  }
  return target;
}

void require_writable(const std::string& path) {
  if (path == "-") {
    throw InvalidProblem(
        "cannot write '-': the standard output is no file here; pass a name, "
        "such as ./- for a file that is called so");
  }
  const std::filesystem::path target = target_of(path);
  std::error_code ignored;
  const auto folder = folder_of(target);
  if (path.empty() || !std::filesystem::is_directory(folder, ignored) || !takes_files(folder)) {
    throw InvalidProblem("cannot write '" + path +
                         "'; pass the name of a file in an existing, writable directory");
  }
  using Type = std::filesystem::file_type;
  const Type type = std::filesystem::status(target, ignored).type();
  if (type == Type::regular && is_machine_code(target)) {
    throw InvalidProblem("cannot write '" + path +
                         "': it is a library or program; pass the name of another file");
  }
  // A file put in its place would leave what is printed without a name.
  if (type == Type::regular && is_printed_to(target)) {
    throw InvalidProblem("cannot write '" + path +
                         "': the standard output or error goes there; pass the name of another "
                         "file");
  }
  if (type == Type::not_found || type == Type::regular) return;
  throw InvalidProblem("cannot write '" + path + "': it is a " +
                       (type == Type::directory ? "directory"
                        : type == Type::fifo    ? "pipe"
                        : type == Type::socket  ? "socket"
                                                : "device") +
                       "; pass the name of a file (--json prints to the standard output)");
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  require_writable(path);
  const std::string target = target_of(path).string();
  const std::string temporary = target + ".partial-" + std::to_string(getpid());
  try {
    std::ofstream file(temporary, std::ios::binary);
    write(file);
    file.close();
    if (!file || std::rename(temporary.c_str(), target.c_str()) != 0) {
      throw InvalidProblem("cannot write '" + path + "'; is the disk full?");
    }
  } catch (...) {
    std::remove(temporary.c_str());
    throw;
  }
}

void write_file(const std::string& path, const std::string& text) {
  write_file(path, [&text](std::ostream& file) { file << text; });
}

void remove_file(const std::string& path) {
  const std::filesystem::path target = target_of(path);
  std::error_code error;
  if (!std::filesystem::is_regular_file(target, error)) return;
  if (!std::filesystem::remove(target, error) && error) {
    throw InvalidProblem("cannot remove '" + path +
                         "', which is of an earlier run: " + error.message());
  }
}

void append_file(const std::string& path, const std::string& text) {
  require_writable(path);
  const std::string target = target_of(path).string();
  std::error_code absent;
  const std::string before = std::filesystem::exists(target, absent) ? read_file(target) : "";
  const std::string apart = before.empty() ? "" : before.back() == '\n' ? "\n" : "\n\n";
  std::ofstream file(target, std::ios::binary | std::ios::app);
  file << apart + text;
  file.close();
  if (!file) throw InvalidProblem("cannot write '" + path + "'; is the disk full?");
}

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {  // would open, and read as empty
    throw InvalidProblem("cannot read '" + path + "': it is a directory");
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  if (file.is_open()) bytes << file.rdbuf();
  // No byte inserted sets another flag of `bytes`: an empty file is no error.
  if (!file.is_open() || bytes.bad()) {
    throw InvalidProblem("cannot read '" + path + "': " + std::strerror(errno));
  }
  return bytes.str();
}

}  // namespace attest::certify
