// One strategy, one file: nobody but a strategy's own file and the frameworks' defaults knows it by its name.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "sim/training/strategy.h"

namespace lockstep::strategy_names_test {

namespace fs = std::filesystem;

// Without comments.
std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::string text;
  for (std::string line; std::getline(file, line);) text += line.substr(0, line.find("//")) + "\n";
  return text;
}

std::set<std::string> all_matches(const std::string& text, const char* pattern) {
  const std::regex expression(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end; ++match)
    found.insert((*match)[1].str());
  return found;
}

std::vector<fs::path> sources() {
  std::vector<fs::path> found;
  for (const char* folder : {"sim", "models"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(LOCKSTEP_SOURCE_DIR) / folder))
      if (entry.path().extension() == ".h" || entry.path().extension() == ".cpp")
        found.push_back(entry.path());
  return found;
}

// A framework's defaults are about the strategies it has, and so is what it lacks with a model that is cut. Importers
// write scenarios out of files in which launchers call strategies by such names.
bool may_name_strategies(const fs::path& path) {
  return path.parent_path().filename() == "import" || path.filename() == "framework_presets.cpp" ||
         path.filename() == "layout_presets.cpp";
}

std::set<std::string> registered_in(const std::string& text) {
  return all_matches(text, R"~(Registration<Strategy>\s+\w+\{\s*"(\w+)")~");
}

TEST_CASE("every strategy is registered where this test looks for it") {
  std::set<std::string> found;
  for (const fs::path& path : sources()) found.merge(registered_in(text_of(path)));
  const std::vector<std::string> names = Registry<Strategy>::names();
  CHECK(found == std::set<std::string>(names.begin(), names.end()));
}

TEST_CASE("a strategy's name is a word of its own file and of the frameworks that have it") {
  for (const fs::path& path : sources()) {
    if (may_name_strategies(path))
      continue;
    const std::string text = text_of(path);
    const std::set<std::string> own = registered_in(text);
    for (const std::string& word : all_matches(text, R"~("(\w+)")~")) {
      CAPTURE(path.string());
      CAPTURE(word);
      CHECK((own.contains(word) || Registry<Strategy>::find(word) == nullptr));
    }
  }
}

TEST_CASE("nobody guesses from the letters of a strategy's name what it does") {
  for (const fs::path& path : sources()) {
    CAPTURE(path.string());
    const std::regex guess(R"(strategy(_name)?\.(starts_with|ends_with|find|substr|compare)\()");
    CHECK_FALSE(std::regex_search(text_of(path), guess));
  }
}

}  // namespace lockstep::strategy_names_test
