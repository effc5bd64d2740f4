// --calibration and --library-version, wherever a scenario is simulated.

#include "tests/support/program.h"

namespace lockstep::library_options_test {

using testing::Answer;
using testing::check_refused;
using testing::check_says;
using testing::Folder;
using testing::run_program;

const std::string resnet = LOCKSTEP_SOURCE_DIR "/scenarios/resnet50_ddp_2x8_a100.json";
const std::string gloo = LOCKSTEP_SOURCE_DIR "/scenarios/lab_gloo_two_hosts.json";

TEST_CASE("predict, explain and collective take the same calibration and release") {
  const std::string options = " --calibration dgx_h100 --library-version 2.12.12";
  for (const std::string verb : {"predict ", "explain "}) {
    const Answer answer = run_program(verb + resnet + options + " --json");
    REQUIRE(answer.exit_code == 0);
    const auto document = nlohmann::ordered_json::parse(answer.out);
    CHECK(document["scenario"]["cluster"]["machine"]["calibration"]["name"] == "dgx_h100");
    CHECK(document["scenario"]["communication"]["library_version"] == "2.12.12");
  }
  CHECK(run_program("collective all_reduce --machine dgx_a100_40gb -b 1M -e 1M" + options).exit_code == 0);
}

TEST_CASE("a sweep keeps its calibration in every cell, whatever the machine") {
  const Folder folder;
  const std::string command =
      "sweep " + resnet + " --vary cluster.machine=dgx_a100_40gb,dgx1_v100 --json -o " + folder.path() + "/";
  const Answer with = run_program(command + "a.csv --calibration dgx_h100");
  const Answer stated = run_program(command + "b.csv --set cluster.machine.calibration=dgx_h100");
  REQUIRE(with.exit_code == 0);
  CHECK(with.out == stated.out);
  CHECK(with.out != run_program(command + "c.csv").out);
}

TEST_CASE("what cannot be is refused alike by every verb") {
  const Folder folder;
  const std::string vary = " --vary cluster.nodes=1,2 -o " + folder.path() + "/x.csv";
  for (const std::string& command : {"predict " + resnet, "explain " + resnet}) {
    check_refused(command + " --calibration dgx_h10",
                  {"/cluster/machine/calibration: found \"dgx_h10\"", "did you mean \"dgx_h100\"?"});
    for (const std::string none : {"new", "99.9.9"})
      check_refused(command + " --library-version " + none,
                    {"/communication/library_version: found \"" + none + "\""});
    check_refused(command + " --calibration dgx_h100 --set cluster.machine.calibration=abci_a",
                  {"--calibration: is given beside --set cluster.machine.calibration"});
    check_refused(command + " --calibration ''", {"--calibration"});
  }
  check_refused("collective all_reduce --machine dgx_a100_40gb --calibration dgx_h10",
                {"/cluster/machine/calibration: found \"dgx_h10\"", "did you mean \"dgx_h100\"?"});
  const std::string bench = "collective all_reduce --machine cpu_gloo --nodes 2";
  for (const std::string& command : {"predict " + gloo, bench})
    check_refused(command + " --library-version 2.18.3", {"Gloo", "valid with nccl and rccl"});
  check_refused(
      "sweep " + resnet + vary + " --vary cluster.machine.calibration=abci_a --calibration dgx_h100",
      {"--calibration: is given beside --vary cluster.machine.calibration"});
}

TEST_CASE("the answer says what was changed, as text, as a document and as a page") {
  const Folder folder;
  const std::string page = folder.path() + "/page.html";
  const std::string command = "predict " + resnet + " --set cluster.machine.nics.count=4";
  check_says(run_program(command + " --report " + page).out,
             {"changed: machine dgx_a100_40gb with nics.count 4 (8)", "is borrowed"});
  check_says(testing::text_of(page), {"changed: machine dgx_a100_40gb with nics.count 4 (8)"});
  const auto document = nlohmann::ordered_json::parse(run_program(command + " --json").out);
  const nlohmann::ordered_json change{
      {"kind", "machine"}, {"name", "dgx_a100_40gb"}, {"path", "nics.count"}, {"value", 4}, {"before", 8}};
  CHECK(document["changes"] == nlohmann::ordered_json::array({change}));
}

}  // namespace lockstep::library_options_test
