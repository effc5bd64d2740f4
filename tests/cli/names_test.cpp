// Every form of answer x every name that a terminal, a page, a spreadsheet or a picture would obey.

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/base/json_text.h"
#include "sim/base/printable.h"
#include "tests/support/program.h"

namespace lockstep::names_test {

using testing::Answer;
using testing::Folder;
using testing::run_command;
using testing::run_program;
using Json = nlohmann::ordered_json;

const std::array<std::string, 9> nasty{"\x1b[31mred\x1b]0;title\x07",
                                       "\xc2\x9b"
                                       "31m",
                                       "over\rwritten",
                                       "two\nlines",
                                       "\u202e"
                                       "gnp.exe\u202c",
                                       "\x7f\x08",
                                       "$\\frac{$",
                                       "=1+2",
                                       "@<b>&\"'"};

// No machine of this name would be found, so the machine stands inline.
Json scenario_named(const std::string& name) {
  Json machine{{"name", name}, {"source", name}, {"gpu", "cpu"}, {"gpus", 1}};
  machine["gpu_links"]["kind"] = "none";
  machine["nics"] = {{"count", 1}, {"link", {{"bandwidth", "0.124 GB/s"}, {"latency", "100 us"}}}};
  machine["library"] = "gloo";
  Json layer{{"name", name}, {"parameters", {1000}}, {"forward_time", "8 ms"}, {"backward_time", "20 ms"}};
  Json scenario{{"name", name}, {"cluster", {{"nodes", 2}, {"machine", machine}}}};
  scenario["model"]["layers"] = Json::array({layer});
  scenario["training"]["strategy"] = "ddp";
  return scenario;
}

void write_scenario(const Folder& folder, const std::string& name) {
  folder.write("s.json", scenario_named(name).dump());
}

// As people and machines may see it: UTF-8 that nothing obeys.
void check_harmless(const std::string& text) {
  CAPTURE(text);
  CHECK_FALSE(text.empty());
  CHECK(is_utf8(text));
  CHECK(printable(text) == text);
}

TEST_CASE("every verb prints names that no terminal obeys") {
  for (const std::string& name : nasty) {
    const Folder folder;
    write_scenario(folder, name);
    const std::string file = folder.path() + "/s.json";
    for (const std::string& verb :
         {"predict " + file, "explain " + file, "check " + file, "predict --json " + file,
          "explain --json " + file,
          "sweep " + file + " --vary cluster.nodes=1,2 -o " + folder.path() + "/a.csv",
          "collective all_reduce --nodes 2 -e 8 --machine " + folder.path() + "/m.json"}) {
      if (verb.find("m.json") != verb.npos)
        folder.write("m.json", scenario_named(name)["cluster"]["machine"].dump());
      const Answer answer = run_program(verb);
      CAPTURE(verb);
      CHECK(answer.exit_code == 0);
      check_harmless(answer.out);
      check_harmless(answer.out + answer.diagnostics);
    }
  }
}

TEST_CASE("JSON keeps the exact name") {
  for (const std::string& name : nasty) {
    const Folder folder;
    write_scenario(folder, name);
    const Answer answer = run_program("predict --json " + folder.path() + "/s.json");
    CHECK(Json::parse(answer.out)["name"] == name);
    CHECK(Json::parse(answer.out)["scenario"]["cluster"]["machine"]["name"] == name);
  }
}

TEST_CASE("a message about a name is printed as harmlessly as the name") {
  for (const std::string& name : nasty) {
    const Folder folder;
    Json scenario = scenario_named("lab");
    scenario["training"]["strategy"] = name;
    scenario[name] = 1;
    folder.write("s.json", scenario.dump());
    const Answer answer = run_program("predict " + folder.path() + "/s.json");
    CHECK(answer.exit_code == 2);
    check_harmless(answer.diagnostics);
  }
}

TEST_CASE("a page holds names that no browser obeys") {
  for (const std::string& name : nasty) {
    const Folder folder;
    write_scenario(folder, name);
    const std::string page = folder.path() + "/page.html";
    CHECK(run_program("predict " + folder.path() + "/s.json --report " + page).exit_code == 0);
    check_harmless(testing::text_of(page));
    CHECK(testing::text_of(page).find("<b>&\"") == std::string::npos);
  }
}

// The varied values are names here.
std::string sweep_of_names(const Folder& folder, const std::string& name, const std::string& more = "") {
  write_scenario(folder, "lab");
  folder.write("list", Json(name).dump() + ",b");
  const std::string csv = folder.path() + "/a.csv";
  const Answer answer = run_program("sweep " + folder.path() + "/s.json --vary \"name=$(cat " +
                                    folder.path() + "/list)\" -o " + csv + more);
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  return testing::text_of(csv);
}

TEST_CASE("a table holds no formula and no control character") {
  for (const std::string& name : nasty) {
    const Folder folder;
    const std::string csv = sweep_of_names(folder, name);
    check_harmless(csv);
    const std::string row = csv.substr(csv.find('\n') + 1);
    CAPTURE(row);
    CHECK(std::string("=+-@").find(row[row[0] == '"' ? 1 : 0]) == std::string::npos);
  }
}

bool draws() {
  return run_command("/usr/bin/python3 -c 'import matplotlib' || python3 -c 'import matplotlib'").exit_code ==
         0;
}

TEST_CASE("a picture of names is XML without formulas") {
  if (!draws()) {
    MESSAGE("python3 has no matplotlib here: no picture is drawn");
    return;
  }
  for (const std::string& name : {nasty[0], nasty[4], nasty[6]}) {
    const Folder folder;
    const std::string picture = folder.path() + "/a.svg";
    sweep_of_names(folder, name, " --plot " + picture);
    CHECK(run_command("python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' " + picture)
              .exit_code == 0);
  }
}

TEST_CASE("a picture's name may begin like an option") {
  if (!draws())
    return;
  const Folder folder;
  write_scenario(folder, "lab");
  const Answer answer = run_command("cd " + folder.path() + " && " + LOCKSTEP_BINARY +
                                    " sweep s.json --vary cluster.nodes=1,2 -o a.csv --plot=-h.svg");
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  CHECK(std::filesystem::exists(folder.path() + "/-h.svg"));
}

TEST_CASE("help that cannot be written is a failure of the machine") {
  CHECK(run_program("--help > /dev/full").exit_code == 4);
  CHECK(run_program("predict --help > /dev/full").exit_code == 4);
  CHECK(run_program("--version > /dev/full").exit_code == 4);
  CHECK(run_program("--help").exit_code == 0);
}

TEST_CASE("a name with NUL is refused where it stands") {
  const Folder folder;
  folder.write("s.json",
               R"({"name": "a\u0000b", "cluster": {"machine": "dgx_a100_40gb"}, "model": {"name": "gpt2"}})");
  testing::check_refused("predict " + folder.path() + "/s.json", {"/name", "NUL"});
  folder.write("t.csv", "");
  folder.write("index.json", R"({"schema": "lockstep.collective_tables/1", "tables": [
    {"id": "t", "source": "s", "group": "g", "machine": "dgx_a100_40gb", "collective": "all_reduce", "nodes": 1,
     "gpus_per_node": 8, "file": "t.csv\u0000.txt"}]})");
  testing::check_refused("validate " + folder.path() + "/index.json", {"/tables/0/file", "NUL"});
}

}  // namespace lockstep::names_test
