#include "sim/load/reading/profile_store.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/error.h"
#include "tests/scenario/lab.h"

namespace lockstep::profile_store_test {

using testing::Folder;

TEST_CASE("names are the files of every root, sorted and each once") {
  const Folder first;
  const Folder second;
  first.write("hw_profiles/links/b.json", "{}");
  second.write("hw_profiles/links/a.json", "{}");
  second.write("hw_profiles/links/b.json", "{}");
  second.write("hw_profiles/links/README.md", "");
  const ProfileStore store(std::vector<std::string>{first.path(), second.path()});
  CHECK(store.names(ProfileKind::link) == std::vector<std::string>{"a", "b"});
  CHECK(store.names(ProfileKind::gpu).empty());
}

TEST_CASE("the first root that has a name wins") {
  const Folder first;
  const Folder second;
  first.write("models/m.json", R"({"source": "first"})");
  second.write("models/m.json", R"({"source": "second"})");
  const ProfileStore store(std::vector<std::string>{first.path(), second.path()});
  const auto profile = store.open(ProfileKind::model, "m");
  REQUIRE(profile.has_value());
  CHECK((*profile->value)["source"] == "first");
  CHECK(profile->file == first.path() + "/models/m.json");
  CHECK(profile->label == "models/m.json");
}

TEST_CASE("a name never leads out of its folder") {
  const ProfileStore store;
  CHECK_FALSE(store.open(ProfileKind::gpu, "").has_value());
  CHECK_FALSE(store.open(ProfileKind::gpu, "..").has_value());
  CHECK_FALSE(store.open(ProfileKind::gpu, std::string("cpu\0", 4)).has_value());
}

TEST_CASE("what ends in .json or holds a slash is a path") {
  CHECK(ProfileStore::is_path("box.json"));
  CHECK(ProfileStore::is_path("boxes/box"));
  CHECK_FALSE(ProfileStore::is_path("box"));
}

TEST_CASE("the data directory comes before the source tree, and a missing one is an error") {
  const Folder folder;
  folder.write("hw_profiles/machines/mine.json", "{}");
  const ProfileStore store(folder.path());
  const std::vector<std::string> names = store.names(ProfileKind::machine);
  CHECK(std::binary_search(names.begin(), names.end(), "mine"));
  CHECK(std::binary_search(names.begin(), names.end(), "dgx_h100"));
  CHECK_THROWS_AS(ProfileStore(folder.path() + "/none"), ConfigError);
}

TEST_CASE("a profile that is not JSON is an error that names the file") {
  const Folder folder;
  const std::string file = folder.write("hw_profiles/gpus/broken.json", "{");
  const ProfileStore store(std::vector<std::string>{folder.path()});
  try {
    store.open(ProfileKind::gpu, "broken");
    FAIL("a broken file was read");
  } catch (const ConfigError& error) {
    CHECK(std::string(error.what()).starts_with(file + ":1:"));
  }
}

}  // namespace lockstep::profile_store_test
