// What every importer keeps, whoever wrote it: each walks its own samples and everybody else's.

#include <doctest/doctest.h>

#include <cctype>
#include <set>

#include "sim/base/error.h"
#include "tests/support/import_samples.h"

namespace lockstep::import_test {

using testing::bytes_of;
using testing::import_sample;
using testing::import_text;
using testing::samples_of;

// A ConfigError, or something made of it; nothing else leaves an importer.
bool is_refused(const std::string& kind, const std::string& text) {
  try {
    const Imported imported = import_text(kind, text);
    for (const KeyUse& use : imported.keys)
      if (use.fate == KeyFate::refused)
        return true;
    return false;
  } catch (const ConfigError& error) {
    CHECK(!error.problems.empty());
    return true;
  }
}

TEST_CASE("every importer has two samples, and takes them") {
  for (const auto& [kind, importer] : Registry<Importer>::all()) {
    CAPTURE(kind);
    CHECK(!importer.description.empty());
    CHECK(samples_of(kind).size() >= 2);
    for (const auto& sample : samples_of(kind)) {
      CAPTURE(sample.filename().string());
      CHECK_FALSE(is_refused(kind, bytes_of(sample)));
    }
  }
}

TEST_CASE("a sample is recognised by the importer of its kind and by no other") {
  for (const auto& [kind, importer] : Registry<Importer>::all())
    for (const auto& sample : samples_of(kind)) {
      CAPTURE(sample.string());
      if (importer.recognises == nullptr)
        continue;
      const NamedImporter* found = importer_of_file(sample.string());
      REQUIRE(found != nullptr);
      CHECK(found->first == kind);
    }
}

TEST_CASE("an importer refuses nothing, noise, and the samples of every other kind") {
  const std::string noise = {'\x7f', 'E', 'L', 'F', '\x02', '\x01', '\0', '\xff', '\xfe', '{', '[', '\n'};
  for (const auto& [kind, importer] : Registry<Importer>::all()) {
    CAPTURE(kind);
    CHECK(is_refused(kind, ""));
    CHECK(is_refused(kind, "\n"));
    CHECK(is_refused(kind, noise));
    CHECK(is_refused(kind, "{}"));
    CHECK(is_refused(kind, "[1, 2, 3]"));
    for (const std::string& other : Registry<Importer>::names())
      for (const auto& sample : samples_of(other)) {
        CAPTURE(sample.string());
        if (other != kind)
          CHECK(is_refused(kind, bytes_of(sample)));
      }
  }
}

TEST_CASE("every key of a sample has one fate, and what is not used has a reason") {
  for (const auto& [kind, importer] : Registry<Importer>::all())
    for (const auto& sample : samples_of(kind)) {
      CAPTURE(sample.string());
      const Imported imported = import_sample(sample);
      CHECK(!imported.keys.empty());
      std::set<std::string> keys;
      for (const KeyUse& use : imported.keys) {
        CAPTURE(use.key);
        CHECK(keys.insert(use.key).second);
        CHECK(!use.said.empty());
      }
    }
}

TEST_CASE("the same file makes the same document") {
  for (const auto& [kind, importer] : Registry<Importer>::all())
    for (const auto& sample : samples_of(kind))
      CHECK(import_sample(sample).document.dump() == import_sample(sample).document.dump());
}

TEST_CASE("a sample cut off anywhere is refused or read, and never more than that") {
  constexpr std::size_t cuts = 40;
  for (const auto& [kind, importer] : Registry<Importer>::all())
    for (const auto& sample : samples_of(kind)) {
      const std::string text = bytes_of(sample);
      for (std::size_t cut = 0; cut < cuts; ++cut) is_refused(kind, text.substr(0, text.size() * cut / cuts));
    }
}

std::string with_numbers(std::string text, const std::string& number) {
  std::string changed;
  for (std::size_t at = 0; at < text.size();) {
    if (std::isdigit(static_cast<unsigned char>(text[at])) == 0) {
      changed += text[at++];
      continue;
    }
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0) ++at;
    changed += number;
  }
  return changed;
}

TEST_CASE("a sample whose numbers are absurd is refused or read, and never more than that") {
  for (const auto& [kind, importer] : Registry<Importer>::all())
    for (const auto& sample : samples_of(kind))
      for (const char* number : {"0", "-1", "99999999999999999999", "1e308", "16777217", "nan"})
        is_refused(kind, with_numbers(bytes_of(sample), number));
}

TEST_CASE("no file of ours is taken for another tool's") {
  namespace fs = std::filesystem;
  for (const char* folder : {"scenarios", "models", "hw_profiles", "validate/measurements"})
    for (const auto& file : fs::recursive_directory_iterator(fs::path(LOCKSTEP_SOURCE_DIR) / folder)) {
      const std::string path = file.path().string();
      if (file.path().extension() != ".json" || path.find("/import/") != path.npos)
        continue;
      CAPTURE(path);
      CHECK(importer_of_file(path) == nullptr);
    }
}

}  // namespace lockstep::import_test
