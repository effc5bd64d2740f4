// No command may destroy what it reads, or write two things into one file.

#include "sim/cli/outputs.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/support/program.h"

namespace lockstep::outputs_test {

using testing::Answer;
using testing::check_refused;
using testing::check_says;
using testing::Folder;
using testing::lab_text;
using testing::run_command;
using testing::run_program;
using testing::text_of;

namespace fs = std::filesystem;

TEST_CASE("a prediction never replaces the scenario it reads, by whatever name") {
  const Folder folder;
  const std::string lab = folder.write("lab.json", lab_text);
  fs::create_symlink(lab, folder.path() + "/link.json");
  fs::create_hard_link(lab, folder.path() + "/hard.json");
  fs::create_directory(folder.path() + "/sub");
  for (const std::string name : {"lab.json", "link.json", "hard.json", "sub/../lab.json"}) {
    for (const std::string option : {"--report ", "--trace "}) {
      CAPTURE(name);
      check_refused("predict " + lab + " " + option + folder.path() + "/" + name, {"which is to be read"});
    }
  }
  CHECK(text_of(lab) == lab_text);
}

TEST_CASE("an output without a name is refused, not forgotten") {
  const Folder folder;
  const std::string lab = folder.write("lab.json", lab_text);
  for (const std::string option : {"--report", "--trace", "--plot"})
    check_refused("predict " + lab + " " + option + " ''", {option + ": found an empty name"});
  check_refused("sweep " + lab + " --vary cluster.nodes=1,2 -o ''", {"--output: found an empty name"});
  check_refused("sweep " + lab + " --vary cluster.nodes=1,2 -o -",
                {"found -, expected a file, such as /dev/stdout"});
  check_refused("predict " + lab + " --report -", {"--report: found -, expected a file"});
}

TEST_CASE("a profile that a scenario names is an input like the scenario") {
  const Folder folder;
  const std::string machine = folder.write("machine.json", R"({"name": "lab", "source": "ours", "gpu": "cpu",
    "gpus": 1, "gpu_links": {"kind": "none"}, "nics": {"count": 1, "link": {"bandwidth": "0.1 GB/s",
    "latency": "100 us"}}, "library": "gloo"})");
  const std::string lab = folder.write("lab.json", lab_text);
  check_refused("predict " + lab + " --set cluster.machine=" + machine + " --trace " + machine,
                {"--trace", "machine.json", "which is to be read"});
}

TEST_CASE("two outputs of one command are two files") {
  const Folder folder;
  const std::string lab = folder.write("lab.json", lab_text);
  const std::string both = folder.path() + "/both";
  check_refused("predict " + lab + " --trace " + both + " --report " + folder.path() + "/./both",
                {"--report", "which --trace writes too"});
  CHECK_FALSE(fs::exists(both));
  CHECK(run_program("predict " + lab + " --trace /dev/null --report /dev/null").exit_code == 0);
}

TEST_CASE("with --json stdout is an output as well, by whatever name") {
  const Folder folder;
  const std::string lab = folder.write("lab.json", lab_text);
  for (const std::string name : {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
    CAPTURE(name);
    check_refused("predict " + lab + " --json --trace " + name, {"--trace", "which --json writes too"});
    check_refused("sweep " + lab + " --vary cluster.nodes=2,4 --json -o " + name,
                  {"--output", "which --json writes too"});
    const Answer piped =
        run_command(std::string(LOCKSTEP_BINARY) + " predict " + lab + " --json --report " + name + " | cat");
    CHECK(piped.out.empty());
    check_says(piped.diagnostics, {"--report", "which --json writes too"});
  }
  CHECK(run_program("predict " + lab + " --trace /dev/stdout --report /dev/null").exit_code == 0);
  CHECK(
      run_command(std::string(LOCKSTEP_BINARY) + " predict " + lab + " --json --trace /dev/null > /dev/null")
          .exit_code == 0);
}

TEST_CASE("no verb writes its page over what it reads") {
  const Folder folder;
  const std::string lab = folder.write("lab.json", lab_text);
  const std::string request = folder.write(
      "request.json", text_of(std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/plans/resnet50_rented.json"));
  const std::string cases = folder.write(
      "cases.json", text_of(std::string(LOCKSTEP_SOURCE_DIR) + "/validate/measurements/mlperf_resnet.json"));
  check_refused("plan " + request + " --report " + request, {"--report", "which is to be read"});
  check_refused("layouts " + lab + " --report " + lab, {"--report", "which is to be read"});
  check_refused("validate " + cases + " --report " + cases, {"--report", "which is to be read"});
  check_refused("sweep " + lab + " --vary cluster.nodes=2,4 -o " + folder.path() + "/a --report " +
                    folder.path() + "/a",
                {"--report", "which --output writes too"});
}

TEST_CASE("a sweep refuses its scenario, and what its cells will read, as its table") {
  const Folder folder;
  const std::string lab = folder.write("lab.json", lab_text);
  check_refused("sweep " + lab + " --vary cluster.nodes=2,4 -o " + lab, {"--output", "which is to be read"});
  const std::string machine = folder.write("machine.json", "{}");
  check_refused("sweep " + lab + " --vary cluster.machine=cpu_gloo," + machine + " -o " + machine,
                {"--output", "which is to be read"});
  CHECK(text_of(lab) == lab_text);
}

TEST_CASE("a link that leads nowhere is not replaced by an output") {
  const Folder folder;
  const std::string lab = folder.write("lab.json", lab_text);
  const std::string link = folder.path() + "/link.html";
  fs::create_symlink(folder.path() + "/nowhere", link);
  check_refused("predict " + lab + " --report " + link, {"link.html", "cannot be written"});
  CHECK(fs::is_symlink(link));
}

}  // namespace lockstep::outputs_test
