#include "sim/report/text/sections.h"

#include <doctest/doctest.h>

#include <string>

#include "sim/report/text_table.h"

namespace lockstep::sections_test {

const TextStyle plain;

std::string line_of(const std::string& text, std::size_t number) {
  std::size_t start = 0;
  for (std::size_t line = 0; line < number; ++line) start = text.find('\n', start) + 1;
  return text.substr(start, text.find('\n', start) - start);
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a section of nothing is empty") {
  CHECK(buckets_text({}, plain).empty());
  CHECK(collectives_text({}, plain).empty());
  CHECK(communication_text({}, Duration::seconds(1), plain).empty());
  CHECK(critical_path_text({}, plain).empty());
  CHECK(warnings_text({}, plain).empty());
}

// The heading, then the bar: a blank line, the heading, two blanks and 76 glyphs.
TEST_CASE("the bar is 76 wide however its parts round, and shows none that took no time") {
  for (const std::int64_t odd : {1, 7, 333, 1'000'003}) {
    Report report;
    report.breakdown.forward = Duration::picoseconds(odd);
    report.breakdown.backward = Duration::picoseconds(2 * odd + 1);
    report.breakdown.checkpoint = Duration::picoseconds(3 * odd);
    const std::string text = breakdown_text(report, plain);
    CHECK(display_width(line_of(text, 2)) == 2 + 76);
    CHECK(contains(text, "checkpoint"));
    CHECK_FALSE(contains(text, "straggler wait"));
  }
}

TEST_CASE("a memory section names the parts that are there, and whether they fit") {
  MemoryReport memory;
  memory.peak.parameters = Bytes{600};
  memory.peak.activations = Bytes{500};
  memory.capacity = Bytes{1'100};
  const std::string text = memory_text(memory, plain);
  CHECK(contains(text, "activations"));
  CHECK_FALSE(contains(text, "gradients"));
  CHECK(contains(text, "fits"));
  memory.capacity = Bytes{1'099};
  CHECK(contains(memory_text(memory, plain), "DOES NOT FIT"));
}

TEST_CASE("pieces of a critical path are summed by their first word, longest first") {
  const auto at = [](std::int64_t ms) { return Duration::milliseconds(ms); };
  const std::string text = critical_path_text(
      {{"forward a", at(0), at(10)}, {"backward b", at(10), at(40)}, {"forward c", at(40), at(100)}}, plain);
  // 70 of 100 ms forward in two pieces, 30 backward in one.
  CHECK(contains(line_of(text, 2), "70.0 %  2 pieces, longest forward c"));
  CHECK(contains(line_of(text, 3), "30.0 %  backward b"));
}

}  // namespace lockstep::sections_test
