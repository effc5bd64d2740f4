// Whatever number stands in a measurement, reading and using it answers or says what is wrong.

#include <doctest/doctest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/study/fit/harness_calibration.h"
#include "sim/study/validation/collective_validation.h"
#include "sim/study/validation/harness_validation.h"
#include "tests/scenario/lab.h"
#include "tests/support/harness_run_file.h"
#include "tests/support/program.h"
#include "tests/support/scenarios.h"

namespace lockstep::extreme_measurements_test {

using nlohmann::json;
using testing::Folder;

constexpr std::array numbers{"0", "-1", "2147483648", "9007199254740992", "9223372036854775807", "1e308"};

// Of alike elements the first stands for all.
void find_numbers(const json& value, const std::string& pointer, std::vector<std::string>& found) {
  if (value.is_number())
    found.push_back(pointer);
  for (const auto& item : value.items())
    if (value.is_object() || (value.is_array() && item.key() == "0"))
      find_numbers(item.value(), pointer + "/" + item.key(), found);
}

void use(const std::string& file) {
  try {
    const std::vector<HarnessRun> runs{read_harness_run(file)};
    calibrate_to_runs(runs, {.name = "mine"}, shipped_profiles());
    ValidationOptions options;
    options.runs = {file};
    validate(options);
  } catch (const ConfigError& error) {
    CHECK_FALSE(error.problems.empty());
  }
}

TEST_CASE("every number of a harness run may be anything") {
  const Folder folder;
  const json run = testing::harness_run();
  std::vector<std::string> pointers;
  find_numbers(run, "", pointers);
  CHECK(pointers.size() > 50);
  for (const std::string& pointer : pointers)
    for (const char* number : numbers) {
      json changed = run;
      changed[json::json_pointer(pointer)] = json::parse(number);
      try {
        use(folder.write("run.json", changed.dump()));
      } catch (const std::exception& error) {
        FAIL_CHECK((pointer + " = " + number + ": " + error.what()));
      }
    }
}

TEST_CASE(
    "every number of a table of collectives may be anything, and what is no size is passed over by its "
    "line") {
  constexpr std::array sizes{"0",
                             "-1",
                             "2147483648",
                             "1125899906842624",
                             "1125899906842625",
                             "100000000000000000",
                             "9223372036854775807",
                             "9223372036854775808",
                             "1e308"};
  constexpr std::array times{"0", "-1", "0.000001", "55.00", "1e12", "1e308", "nan"};
  const json index = {{"schema", "lockstep.collective_tables/1"},
                      {"tables",
                       {{{"id", "t"},
                         {"source", "s"},
                         {"group", "g"},
                         {"machine", "dgx1_v100"},
                         {"collective", "all_reduce"},
                         {"nodes", 1},
                         {"gpus_per_node", 8},
                         {"file", "t.csv"}}}}};
  for (const char* size : sizes)
    for (const char* time : times) {
      const Folder folder;
      folder.write("t.csv", std::string("size_bytes,time_us,algbw_gbs,busbw_gbs\n1048576,30,35,61\n") + size +
                                "," + time + ",1,1\n");
      const std::string file = folder.write("index.json", index.dump());
      try {
        CollectiveValidationOptions options;
        options.indexes = {file};
        const CollectiveValidation validation = validate_collectives(options, shipped_profiles());
        to_text(validation);
        const std::vector<std::string>& skipped = validation.tables.front().skipped_lines;
        if (std::string_view(size) == "100000000000000000")
          CHECK(skipped.front().find("t.csv:3: skipped a row") != std::string::npos);
      } catch (const ConfigError& error) {
        CHECK_FALSE(error.problems.empty());
      } catch (const std::exception& error) {
        FAIL_CHECK((std::string(size) + "," + time + ": " + error.what()));
      }
    }
}

TEST_CASE("sizes that grow past the last one end there, whatever the factor") {
  using testing::run_program;
  const std::string table = "collective all_reduce --machine dgx1_v100 --json ";
  const testing::Answer large = run_program(table + "-f 1152921504606846976");
  CHECK(large.exit_code == 0);
  CHECK(json::parse(large.out)["rows"].size() == 1);
  const testing::Answer product = run_program(table + "-b 1K -f 9007199254740993");
  CHECK(product.exit_code == 0);
  CHECK(json::parse(product.out)["rows"].size() == 1);
  CHECK(json::parse(run_program(table + "-b 8 -e 64 -f 2").out)["rows"].size() == 4);
  CHECK(json::parse(run_program(table + "-b 8 -e 63 -f 2").out)["rows"].size() == 3);
}

TEST_CASE("a collective that takes more than 53 days is refused") {
  testing::check_refused("collective all_reduce --machine cpu_gloo --nodes 64 -b 1024T -e 1024T",
                         {"too large"});
  testing::check_refused("collective all_to_all --machine dgx1_v100 --nodes 64 -b 1024T -e 1024T",
                         {"too large"});
}

}  // namespace lockstep::extreme_measurements_test
