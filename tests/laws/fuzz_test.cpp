// Every reader of strangers' bytes takes its seeds, and whatever is made of them is taken or refused.
//
// The same entries that libFuzzer runs for hours (tests/fuzz), here for a few hundred changes each.

#include <doctest/doctest.h>

#include <cstdint>

#include "sim/load/import/importer.h"
#include "tests/fuzz/entry.h"
#include "tests/fuzz/mutation.h"

namespace lockstep::fuzz_test {

using nlohmann::ordered_json;
using namespace fuzz;

constexpr std::size_t largest = 32 << 10;  // of what is changed: the larger, the slower, and no other code

// What leaves the reader otherwise than it may, with what it was given.
void check_read(const Entry& entry, const std::string& bytes) {
  try {
    read_bytes(entry, bytes);
  } catch (const std::exception& error) {
    FAIL_CHECK((entry.name + ": " + error.what() + "\n" + bytes.substr(0, 2000)));
  }
}

std::vector<ordered_json> documents_among(const std::vector<std::string>& texts) {
  std::vector<ordered_json> documents;
  for (const std::string& text : texts)
    if (ordered_json document = ordered_json::parse(text, nullptr, false, true); !document.is_discarded())
      documents.push_back(std::move(document));
  return documents;
}

std::vector<std::string> small_seeds(const Entry& entry) {
  std::vector<std::string> seeds;
  for (const std::string& file : seed_files(entry))
    if (std::string seed = bytes_of_file(file); seed.size() <= largest)
      seeds.push_back(std::move(seed));
  return seeds;
}

TEST_CASE("every reader has seeds, and takes them") {
  for (const Entry& entry : entries()) {
    CAPTURE(entry.name);
    CHECK_FALSE(small_seeds(entry).empty());
    for (const std::string& file : seed_files(entry)) {
      CAPTURE(file);
      Answer answer = Answer::refused;
      CHECK_NOTHROW(answer = read_bytes(entry, bytes_of_file(file)));
      CHECK((answer == Answer::taken || !entry.takes_every_seed));
    }
  }
}

TEST_CASE("every importer is among the readers") {
  for (const std::string& kind : Registry<Importer>::names()) CHECK(find_entry("import_" + kind) != nullptr);
}

TEST_CASE("a few letters changed in a seed are taken or refused") {
  constexpr std::uint64_t changes = 200;
  for (const Entry& entry : entries()) {
    const std::vector<std::string> seeds = small_seeds(entry);
    for (std::uint64_t draw = 0; draw < changes; ++draw)
      check_read(entry, mutated(seeds[draw % seeds.size()], draw));
  }
}

TEST_CASE("a few values changed in a document are taken or refused") {
  constexpr std::uint64_t changes = 100;
  for (const Entry& entry : entries()) {
    const std::vector<ordered_json> documents = documents_among(small_seeds(entry));
    if (entry.form != Form::json && documents.empty())
      continue;
    const Material material = material_of(documents);
    for (std::uint64_t draw = 0; draw < changes; ++draw)
      check_read(entry, mutated(documents[draw % documents.size()], material, draw)
                            .dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  }
}

TEST_CASE("a change depends on its draw alone") {
  const ordered_json document{{"a", 1}, {"b", {"3 us", "ring", true}}};
  const Material material = material_of({document});
  for (std::uint64_t draw = 0; draw < 100; ++draw) {
    CHECK(mutated(document, material, draw) == mutated(document, material, draw));
    CHECK(mutated(std::string("text"), draw) == mutated(std::string("text"), draw));
  }
}

}  // namespace lockstep::fuzz_test
