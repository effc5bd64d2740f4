// Did anything change? What every importer makes of its samples (imports/KIND/NAME.json), against what it made before.

#include <doctest/doctest.h>

#include "tests/support/golden_file.h"
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

TEST_CASE("Every importer makes of its samples what it made before") {
  for (const std::string& kind : Registry<Importer>::names())
    for (const fs::path& sample : testing::samples_of(kind)) {
      INFO(sample.string());
      const fs::path golden =
          fs::path(LOCKSTEP_SOURCE_DIR) / "tests/golden/imports" / kind / (sample.stem().string() + ".json");
      testing::check_golden_file(golden, made_of(sample));
    }
}

}  // namespace lockstep::imports_test
