#include "certify/report/kernel_names.hpp"

#include <set>

#include "certify/digest.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

using Names = std::map<std::string, std::string>;

TEST_CASE("names without their folders", "[report]") {
  CHECK(without_folder("./build/libmine.so:example/x") == "libmine.so:example/x");
  CHECK(without_folder("libmine.so:x") == "libmine.so:x");
  CHECK(without_folder("/a/b/file.py:function") == "file.py:function");
  CHECK(without_folder("cpu/flash2") == "cpu/flash2");
}

TEST_CASE("a word for files is of one kernel alone", "[report]") {
  CHECK(file_word("broken/missing_rescale") == "broken-missing_rescale");
  CHECK(file_word("./a/b.so:k") == "a-b-so-k." + sha256("./a/b.so:k").substr(0, 8));
  const std::string longest(300, 'x');
  std::set<std::string> words;
  const std::vector<std::string> names{
      "./a/b.so:k", "./a-b.so:k", "./a.b.so:k", "/a/b.so:k",   "a/b",          "a-b", "ä.so:k",
      "ö.so:k",     "ä",          "ö",          "/" + longest, "//" + longest, ""};
  for (const std::string& name : names) {
    const std::string word = file_word(name);
    INFO(word);
    words.insert(word);
    CHECK(word.size() <= 109);
    CHECK(word.find_first_not_of(
              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
          std::string::npos);
    CHECK((word.front() != '-' && word.front() != '.'));
  }
  CHECK(words.size() == names.size());
}

TEST_CASE("the same kernel is found in another folder or file", "[report]") {
  CHECK(same_kernels({"cpu/flash2", "./a/lib.so:x"}, {"./b/lib.so:x", "cpu/flash2"}) ==
        Names{{"cpu/flash2", "cpu/flash2"}, {"./b/lib.so:x", "./a/lib.so:x"}});
  CHECK(same_kernels({"./lib_1.so:x", "./lib_1.so:y"}, {"./lib_2.so:y", "./lib_2.so:x"}) ==
        Names{{"./lib_2.so:x", "./lib_1.so:x"}, {"./lib_2.so:y", "./lib_1.so:y"}});
  // The exact name goes first, then the same file.
  CHECK(same_kernels({"a/lib.so:x", "b/lib.so:x"}, {"a/lib.so:x", "c/lib.so:x"}) ==
        Names{{"a/lib.so:x", "a/lib.so:x"}, {"c/lib.so:x", "b/lib.so:x"}});
}

TEST_CASE("a name that could be two kernels stays alone", "[report]") {
  CHECK(same_kernels({"a/lib.so:x", "b/lib.so:x"}, {"c/lib.so:x"}).empty());
  CHECK(same_kernels({"c/lib.so:x"}, {"a/lib.so:x", "b/lib.so:x"}).empty());
  CHECK(same_kernels({"cpu/flash2"}, {"cpu/standard"}).empty());
}

}  // namespace
}  // namespace attest::certify
