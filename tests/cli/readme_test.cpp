// What the README shows is what the program prints.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/support/program.h"

namespace lockstep::readme_test {

using testing::check_says;
using testing::Folder;
using testing::run_program;

constexpr const char* scenario = LOCKSTEP_SOURCE_DIR "/scenarios/resnet50_ddp_2x8_a100.json";

std::string readme() {
  return testing::text_of(LOCKSTEP_SOURCE_DIR "/README.md");
}

// From behind `opening`, the next occurrence at or after `anchor`, to `closing`.
std::string between(const std::string& text, const std::string& anchor, const std::string& opening,
                    const std::string& closing) {
  const std::size_t from = text.find(opening, text.find(anchor));
  REQUIRE(from != std::string::npos);
  const std::size_t begin = from + opening.size();
  return text.substr(begin, text.find(closing, begin) - begin);
}

TEST_CASE("the README's first command prints what stands there") {
  const std::string shown = between(readme(), "The first command ends with this:", "```\n", "```\n");
  CHECK(shown == run_program("predict " + std::string(scenario)).out);
}

TEST_CASE("the README's sweep prints the lines that stand there") {
  const Folder folder;
  const std::string shown = between(readme(), "## Sweeps", "-o caps.csv\n", "\n\n");
  const std::string printed = run_program("sweep " + std::string(scenario) +
                                          " --vary training.bucket_cap_mb=1:200:x2 -o " +
                                          folder.path() + "/caps.csv")
                                  .out;
  std::size_t begin = 0;
  while (begin < shown.size()) {
    const std::size_t end = std::min(shown.find('\n', begin), shown.size());
    const std::string line = shown.substr(begin + 4, end - begin - 4);  // indented by four
    if (line != "...")
      check_says(printed, {line});
    begin = end + 1;
  }
}

}  // namespace lockstep::readme_test
