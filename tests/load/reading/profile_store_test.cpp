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

TEST_CASE("a model is found by what it is also known as, behind every file's own name") {
  const Folder folder;
  folder.write("models/m.json", R"({"source": "m", "also_known_as": ["timm_m", "n", 3]})");
  folder.write("models/n.json", R"({"source": "n", "also_known_as": "timm_n"})");
  folder.write("models/broken.json", "{");
  folder.write("models/folder.json/file", "");
  const Folder behind;
  behind.write("models/a.json", R"({"source": "a", "also_known_as": ["timm_m"]})");
  const ProfileStore store(std::vector<std::string>{folder.path(), behind.path()});
  const auto profile = store.open(ProfileKind::model, "timm_m");
  REQUIRE(profile.has_value());
  CHECK((*profile->value)["source"] == "m");
  CHECK(profile->label == "models/m.json");
  CHECK((*store.open(ProfileKind::model, "n")->value)["source"] == "n");
  CHECK(store.has(ProfileKind::model, "timm_m"));
  for (const char* nobody : {"timm_n", "timm_m.json", "models/timm_m", ""})
    CHECK_MESSAGE(!store.has(ProfileKind::model, nobody), nobody);
  CHECK_FALSE(store.has(ProfileKind::gpu, "timm_m"));
}

// Otherwise the order of the files would decide.
TEST_CASE("no two shipped models share a name") {
  const ProfileStore store;
  for (const std::string& model : store.names(ProfileKind::model)) {
    const auto& profile = *store.open(ProfileKind::model, model)->value;
    if (profile.contains("also_known_as"))
      for (const auto& name : profile["also_known_as"])
        CHECK_MESSAGE(store.open(ProfileKind::model, name)->label == "models/" + model + ".json", name);
  }
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
