// Did anything change? What every importer makes of its samples, against what it made before.
//
// LOCKSTEP_UPDATE_GOLDEN=1 rewrites tests/golden/imports/KIND/NAME.json.

#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/support/import_samples.h"

namespace lockstep::imports_test {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

const char* name_of(KeyFate fate) {
  return fate == KeyFate::used ? "used" : fate == KeyFate::left_aside ? "left aside" : "refused";
}

std::string made_of(const fs::path& sample) {
  const Imported imported = testing::import_sample(sample);
  ordered_json keys = ordered_json::object();
  for (const KeyUse& use : imported.keys) keys[use.key] = std::string(name_of(use.fate)) + ": " + use.said;
  ordered_json questions = ordered_json::object();
  for (const Question& question : imported.questions) questions[question.path] = question.why;
  return ordered_json{{"document", imported.document},
                      {"asks", questions},
                      {"warnings", imported.warnings},
                      {"report", imported.report},
                      {"keys", keys}}
             .dump(1) +
         "\n";
}

bool is_updating() {
  const char* wanted = std::getenv("LOCKSTEP_UPDATE_GOLDEN");
  return wanted != nullptr && std::string(wanted) == "1";
}

TEST_CASE("Every importer makes of its samples what it made before") {
  for (const std::string& kind : Registry<Importer>::names())
    for (const fs::path& sample : testing::samples_of(kind)) {
      INFO(sample.string());
      const fs::path golden =
          fs::path(LOCKSTEP_SOURCE_DIR) / "tests/golden/imports" / kind / (sample.stem().string() + ".json");
      const std::string found = made_of(sample);
      if (is_updating()) {
        fs::create_directories(golden.parent_path());
        std::ofstream(golden, std::ios::binary) << found;
      }
      REQUIRE_MESSAGE(fs::exists(golden), "no golden file yet: run with LOCKSTEP_UPDATE_GOLDEN=1");
      CHECK(testing::bytes_of(golden) == found);
    }
}

}  // namespace lockstep::imports_test
