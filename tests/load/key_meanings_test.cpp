#include "sim/load/key_meanings.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>

namespace lockstep::key_meanings_test {

TEST_CASE("meanings stand sorted by path, each once") {
  std::string_view last;
  for (const KeyMeaning& meaning : key_meanings()) {
    CHECK_MESSAGE(last < meaning.path, meaning.path);
    last = meaning.path;
  }
}

TEST_CASE("a meaning is one short sentence that a table can hold") {
  constexpr std::ptrdiff_t most_words = 30;
  for (const KeyMeaning& meaning : key_meanings()) {
    CAPTURE(meaning.path);
    CHECK(meaning.text.ends_with('.'));
    CHECK(std::count(meaning.text.begin(), meaning.text.end(), ' ') < most_words);
    CHECK(meaning.text.find_first_of("|\n") == meaning.text.npos);
  }
}

TEST_CASE("a path is found by its name alone") {
  for (const KeyMeaning& meaning : key_meanings()) CHECK(meaning_of(meaning.path) == meaning.text);
  CHECK(meaning_of("cluster.node").empty());
  CHECK(meaning_of("").empty());
}

TEST_CASE("a step in a list means what a single one does") {
  CHECK_FALSE(meaning_of("compute.anchors[].time").empty());
  CHECK(meaning_of("compute.anchors[].time") == meaning_of("compute.single_gpu_iteration.time"));
}

TEST_CASE("profiles begin where others describe their keys") {
  for (const char* path : {"cluster.machine", "cluster.fabric", "compute.single_gpu_iteration.gpu"})
    CHECK(is_profile(path));
  for (const char* path : {"cluster", "cluster.nodes", "model", "compute"}) CHECK_FALSE(is_profile(path));
}

}  // namespace lockstep::key_meanings_test
