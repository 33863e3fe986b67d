#include "certify/worker/library/elf.hpp"

#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <vector>

#include "core/error.hpp"

namespace attest::certify::worker {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw InvalidProblem("library '" + path + "': " + why);
}

Elf64_Ehdr header_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(path, std::string("cannot be read: ") + std::strerror(errno));
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (file.gcount() < EI_NIDENT || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    refuse(path, "is not a shared library (no ELF header); build one with cc -shared -fPIC");
  }
  return header;
}

// Bytes of the file up to the end of what is loaded of it. Loading a file that ends before that
// kills the process.
std::uint64_t loaded_bytes(const std::string& path, const Elf64_Ehdr& header) {
  std::ifstream file(path, std::ios::binary);
  std::uint64_t bytes = 0;
  for (std::uint64_t k = 0; k < header.e_phnum; ++k) {
    const std::uint64_t at = header.e_phoff + k * header.e_phentsize;
    Elf64_Phdr part{};
    file.seekg(static_cast<std::streamoff>(at));
    if (!file.read(reinterpret_cast<char*>(&part), sizeof part)) return at + sizeof part;
    if (part.p_type != PT_LOAD) continue;
    constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
    if (part.p_filesz > kMost - part.p_offset) return kMost;
    bytes = std::max(bytes, part.p_offset + part.p_filesz);
  }
  return bytes;
}

std::string machine_name(std::uint16_t machine) {
  static const std::map<std::uint16_t, const char*> names{
      {EM_386, "i386"},       {EM_X86_64, "x86-64"}, {EM_ARM, "Arm"},    {EM_AARCH64, "AArch64"},
      {EM_RISCV, "RISC-V"},   {EM_PPC64, "POWER"},   {EM_S390, "S/390"}, {EM_MIPS, "MIPS"},
      {EM_SPARCV9, "SPARC9"}, {EM_CUDA, "CUDA"}};
  const auto found = names.find(machine);
  return found != names.end() ? found->second : "ELF machine " + std::to_string(machine);
}

// Whole objects from a place of the file; none where it ends before. Memory is taken for no more
// than the file has.
template <class T>
std::vector<T> read_at(std::ifstream& file, std::uint64_t at, std::uint64_t count) {
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::uint64_t>(file.tellg());
  if (at > size || count > (size - at) / sizeof(T)) return {};
  std::vector<T> values(count);
  file.seekg(static_cast<std::streamoff>(at));
  const auto bytes = static_cast<std::streamsize>(count * sizeof(T));
  if (!file.read(reinterpret_cast<char*>(values.data()), bytes)) return {};
  return values;
}

// function(entry, name), name(offset) of the section's strings, for each entry of a kind of
// section.
template <class Entry, class Function>
void for_each_entry(const std::string& path, std::uint32_t kind, Function&& function) {
  const Elf64_Ehdr header = header_of(path);
  std::ifstream file(path, std::ios::binary);
  const auto sections = read_at<Elf64_Shdr>(file, header.e_shoff, header.e_shnum);
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != kind || section.sh_link >= sections.size()) continue;
    const Elf64_Shdr& strings = sections[section.sh_link];
    std::vector<char> text = read_at<char>(file, strings.sh_offset, strings.sh_size);
    text.push_back('\0');
    const auto name = [&](std::uint64_t at) {
      return at < text.size() ? std::string(&text[at]) : std::string();
    };
    const std::uint64_t count = section.sh_size / sizeof(Entry);
    for (const Entry& entry : read_at<Entry>(file, section.sh_offset, count)) function(entry, name);
  }
}

}  // namespace

void require_library(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    refuse(path, std::string("cannot be read: ") + std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) refuse(path, "is not a file");
  const Elf64_Ehdr header = header_of(path);
  const Elf64_Ehdr own = header_of("/proc/self/exe");
  if (header.e_ident[EI_CLASS] != own.e_ident[EI_CLASS]) {
    refuse(path,
           "has another word size than this program; build it for " + machine_name(own.e_machine));
  }
  if (header.e_ident[EI_DATA] != own.e_ident[EI_DATA]) {
    refuse(path,
           "has another byte order than this program; build it for " + machine_name(own.e_machine));
  }
  if (header.e_machine != own.e_machine) {
    refuse(path, "is built for " + machine_name(header.e_machine) + ", this machine is " +
                     machine_name(own.e_machine) + "; build it for this machine");
  }
  if (header.e_type != ET_DYN) {
    refuse(path, "is an ELF file but not a shared library; build it with cc -shared -fPIC");
  }
  const std::uint64_t needed = loaded_bytes(path, header);
  if (static_cast<std::uint64_t>(status.st_size) < needed) {
    refuse(path, "is cut off: it has " + std::to_string(status.st_size) + " bytes of " +
                     std::to_string(needed) + "; build or copy it again");
  }
}

std::vector<std::string> undefined_symbols(const std::string& path) {
  std::vector<std::string> names;
  for_each_entry<Elf64_Sym>(path, SHT_DYNSYM, [&](const Elf64_Sym& symbol, const auto& name) {
    if (symbol.st_shndx == SHN_UNDEF) names.push_back(name(symbol.st_name));
  });
  return names;
}

std::vector<std::string> needed_libraries(const std::string& path) {
  std::vector<std::string> names;
  for_each_entry<Elf64_Dyn>(path, SHT_DYNAMIC, [&](const Elf64_Dyn& entry, const auto& name) {
    if (entry.d_tag == DT_NEEDED) names.push_back(name(entry.d_un.d_val));
  });
  return names;
}

}  // namespace attest::certify::worker
