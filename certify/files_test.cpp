#include "certify/files.hpp"

#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

TEST_CASE("files are written whole or not at all", "[certificate]") {
  const std::string path = "certificate_test.json";
  write_file(path, "first");
  write_file(path, "second");
  CHECK(read_file(path) == "second");
  CHECK_THROWS_AS(write_file("missing_directory/x.json", "text"), InvalidProblem);
  CHECK_THROWS_AS(write_file("", "text"), InvalidProblem);
  CHECK_THROWS_AS(write_file(path,
                             [](std::ostream& file) {
                               file << "third";
                               throw InternalError("half way");
                             }),
                  InternalError);
  CHECK(read_file(path) == "second");
  write_file(path, "");
  CHECK(read_file(path).empty());
  std::remove(path.c_str());
  for (const auto& entry : std::filesystem::directory_iterator(".")) {
    CHECK(entry.path().string().find(".partial-") == std::string::npos);
  }
}

TEST_CASE("a file is removed, and no link to it", "[certificate]") {
  namespace fs = std::filesystem;
  const fs::path file = "certificate_test_removed.json", link = "certificate_test_link.json";
  fs::remove(link);
  write_file(file.string(), "text");
  fs::create_symlink(file, link);
  remove_file(link.string());
  CHECK_FALSE(fs::exists(file));
  CHECK(fs::is_symlink(link));
  remove_file(link.string());  // dangling
  remove_file(".");            // is no file
  CHECK(fs::exists("."));
  fs::remove(link);
}

TEST_CASE("files grow by paragraphs", "[certificate]") {
  const std::string path = "certificate_test.md";
  std::remove(path.c_str());
  append_file(path, "first\n");
  CHECK(read_file(path) == "first\n");
  append_file(path, "second");
  append_file(path, "third\n");
  CHECK(read_file(path) == "first\n\nsecond\n\nthird\n");
  std::remove(path.c_str());
  CHECK_THROWS_AS(append_file("missing_directory/x.md", "text"), InvalidProblem);
}

TEST_CASE("only regular files are written", "[certificate]") {
  namespace fs = std::filesystem;
  const fs::path folder = "certificate_test_folder";
  fs::remove_all(folder);
  fs::create_directory(folder);
  const fs::path pipe = folder / "pipe", link = folder / "link", chain = folder / "chain";
  REQUIRE(mkfifo(pipe.c_str(), S_IRUSR | S_IWUSR) == 0);
  CHECK_THROWS_WITH(write_file(pipe.string(), "text"), Catch::Contains("it is a pipe"));
  CHECK(fs::is_fifo(pipe));
  CHECK_THROWS_WITH(require_writable(folder.string()), Catch::Contains("it is a directory"));
  CHECK_THROWS_WITH(read_file(folder.string()), Catch::Contains("cannot read"));
  CHECK_THROWS_WITH(read_file((folder / "absent").string()), Catch::Contains("No such file"));

  const fs::path library = folder / "lib.so", to_library = folder / "to_library";
  std::ofstream(library, std::ios::binary) << "\x7f"
                                              "ELF and more";
  fs::create_symlink("lib.so", to_library);
  for (const fs::path& path : {library, to_library}) {
    CHECK_THROWS_WITH(write_file(path.string(), "text"), Catch::Contains("a library or program"));
  }
  CHECK(read_file(library.string()) ==
        "\x7f"
        "ELF and more");

  fs::create_symlink("target.json", link);  // dangling at first
  fs::create_symlink("link", chain);
  write_file(link.string(), "first");
  CHECK(read_file((folder / "target.json").string()) == "first");
  write_file(chain.string(), "second");
  CHECK(read_file((folder / "target.json").string()) == "second");
  CHECK(fs::is_symlink(link));
  CHECK(fs::is_symlink(chain));

  const fs::path to_pipe = folder / "to_pipe", circle = folder / "circle";
  fs::create_symlink("pipe", to_pipe);
  CHECK_THROWS_WITH(write_file(to_pipe.string(), "text"), Catch::Contains("it is a pipe"));
  CHECK(fs::is_fifo(pipe));
  fs::create_symlink("circle", circle);
  CHECK_THROWS_WITH(write_file(circle.string(), "text"), Catch::Contains("do not end"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace attest::certify
