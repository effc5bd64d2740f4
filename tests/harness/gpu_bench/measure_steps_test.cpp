// The script that measures steps of shipped models in PyTorch: what it does where there is no GPU, and that what it
// would write is what `validate` reads.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/support/program.h"

namespace lockstep::harness::measure_steps_test {

using testing::Answer;
using testing::contains;
using testing::run_command;

const std::string script = LOCKSTEP_SOURCE_DIR "/validate/measure_steps.py";

// A row for every setting, as if each step had taken 100 ms.
constexpr const char* pretend = R"python(
import sys
sys.path.insert(0, sys.argv[1])
import measure_steps as steps
rows = [["h200_sxm", *setting, steps.TOKENS[setting[0]][0] if setting[0] in steps.TOKENS else "",
         "momentum" if setting[0] in steps.IMAGES else "adamw",
         "0.100000", "0.099000", "0.101000", "0.030000", 500, "0.090000", 10**10] for setting in steps.settings()]
steps.write_results(rows, "a test", sys.argv[2])
assert steps.read_rows(sys.argv[2]) == rows
)python";

TEST_CASE("every setting is a case that validate reads: its model, precision and format ship") {
  const testing::Folder folder;
  const std::string program = folder.write("pretend.py", pretend);
  const std::string cases = folder.path() + "/steps.json";
  const Answer written = run_command("python3 -B " + program + " " LOCKSTEP_SOURCE_DIR "/validate " + cases);
  CAPTURE(written.diagnostics);
  REQUIRE(written.exit_code == 0);
  const std::string settings = run_command("python3 -B " + script + " --list").out;
  const auto count = std::count(settings.begin(), settings.end(), '\n');
  CHECK(count > 50);
  const Answer validated = testing::run_program("validate " + cases);
  CAPTURE(validated.diagnostics);
  CHECK(validated.exit_code == 0);
  CHECK(contains(validated.out, std::to_string(2 * count)));
  CHECK_FALSE(contains(validated.out, "failed"));
}

TEST_CASE("steps that fill the GPU are measured before those that wait for its host") {
  const std::string settings = run_command("python3 -B " + script + " --list").out;
  const auto large = settings.find("resnet50 fp32 contiguous 128\n");
  const auto small = settings.find("resnet50 amp_fp16 channels_last 8\n");
  REQUIRE(large != std::string::npos);
  REQUIRE(small != std::string::npos);
  CHECK(large < small);
}

TEST_CASE("wrong use is exit code 2, and a table of something else is not gone on from") {
  for (const std::string arguments :
       {"", "-o steps.txt", "--seconds soon -o steps.json", "-o steps.json --fast"}) {
    const Answer answer = run_command("python3 -B " + script + " " + arguments);
    CAPTURE(answer.diagnostics);
    CHECK(answer.exit_code == 2);
    CHECK(contains(answer.diagnostics, arguments.empty() ? "-o FILE.json is needed" : "measure_steps"));
  }
  const testing::Folder folder;
  folder.write("steps.csv", "a,b\n1,2\n");
  const Answer answer = run_command(
      "python3 -B -c 'import sys; sys.path.insert(0, sys.argv[1]); import measure_steps; "
      "measure_steps.read_rows(sys.argv[2])' " LOCKSTEP_SOURCE_DIR "/validate " +
      folder.path() + "/steps.json");
  CHECK(answer.exit_code == 2);
  CHECK(contains(answer.diagnostics, "steps.csv is no table of this program's"));
}

// An empty package in PyTorch's place is none that can be used either.
TEST_CASE("without PyTorch or a GPU there is one line and exit code 4") {
  const testing::Folder folder;
  folder.write("torch.py", "raise ImportError('not here')\n");
  const Answer without =
      run_command("PYTHONPATH=" + folder.path() + " python3 -B " + script + " -o steps.json");
  CHECK(without.exit_code == 4);
  CHECK(without.diagnostics == "measure_steps: PyTorch is needed: not here\n");
  folder.write("torch.py", "class cuda:\n  is_available = staticmethod(lambda: False)\n");
  const Answer without_gpu =
      run_command("PYTHONPATH=" + folder.path() + " python3 -B " + script + " -o steps.json");
  CHECK(without_gpu.exit_code == 4);
  CHECK(without_gpu.diagnostics == "measure_steps: no GPU that PyTorch can use\n");
}

}  // namespace lockstep::harness::measure_steps_test
