// Every form of answer x every name that a terminal, a page, a spreadsheet or a picture would obey.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

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

// A law over every verb, so that a new one fails here until it stands below: whatever it prints or writes, every
// name in what it reads being all of these at once.
const std::string all_of_them = "\x1b[31m\x07\u009b\u202e\r\n<script>alert('1')</script>\"&=$\\frac{$";

struct Said {
  std::string verb;
  std::string arguments;  // FOLDER is where its files are
  std::vector<std::string> files = {};
  int exit_code = 0;
};

const std::vector<Said>& all_that_is_said() {
  static const std::vector<Said> said{
      {"predict", "FOLDER/s.json --trace FOLDER/t.json --report FOLDER/r.html --stats", {"t.json", "r.html"}},
      {"predict", "FOLDER/s.json --json"},
      {"explain", "FOLDER/s.json --what-if cluster.nodes=3"},
      {"explain", "FOLDER/s.json --json"},
      {"check", "FOLDER/s.json"},
      {"collective", "all_reduce --machine FOLDER/m.json --nodes 2 -e 1M"},
      {"collective", "all_reduce --machine FOLDER/m.json --nodes 2 -e 1M --json"},
      {"sweep",
       "FOLDER/s.json --vary cluster.nodes=1,2 -o FOLDER/a.csv --report FOLDER/a.html",
       {"a.csv", "a.html"}},
      {"compare", "FOLDER/s.json --set cluster.nodes=3"},
      {"compare", "FOLDER/s.json --set cluster.nodes=3 --json"},
      {"layouts", "FOLDER/s.json --report FOLDER/l.html", {"l.html"}},
      {"plan", "FOLDER/q.json --report FOLDER/p.html", {"p.html"}},
      {"plan", "FOLDER/q.json --json"},
      {"validate", "FOLDER/v.json --report FOLDER/v.html", {"v.html"}},
      {"validate", "FOLDER/v.json --markdown"},
      {"validate", "FOLDER/v.json --json"},
      {"calibrate",
       "--machine FOLDER/gpus.json FOLDER/log.txt -o FOLDER/c.json --collective all_reduce --nodes 1 "
       "--gpus-per-node 2",
       {"c.json"}},
      {"import", "hf_config FOLDER/config.json --explain -o FOLDER/i.json", {"i.json"}},
      {"list", "\"$(cat FOLDER/name)\"", {}, 2},
      {"show", "machine \"$(cat FOLDER/name)\"", {}, 2},
      {"schema", "\"$(cat FOLDER/name)\"", {}, 2},
      {"completion", "\"$(cat FOLDER/name)\"", {}, 2},
      {"manual", "\"$(cat FOLDER/name)\"", {}, 2},
  };
  return said;
}

void write_inputs(const Folder& folder, const std::string& name) {
  const Json scenario = scenario_named(name);
  const Json machine = scenario["cluster"]["machine"];
  folder.write("name", name);
  folder.write("s.json", scenario.dump());
  folder.write("m.json", machine.dump());
  Json gpus = machine;
  gpus["gpu"] = "a100_sxm_40gb";
  gpus["gpus"] = 2;
  gpus["gpu_links"]["kind"] = "pcie";
  gpus["host"] = {{"sockets", 1}, {"pcie", "pcie4_x16"}};
  gpus["library"] = "nccl";
  folder.write("gpus.json", gpus.dump());
  Json request{{"name", name}, {"model", scenario["model"]}, {"training", scenario["training"]}};
  request["goal"] = {{"samples", 1e6}};
  request["candidates"] =
      Json::array({{{"machine", machine}, {"nodes", 2}, {"usd_per_gpu_hour", 2.9}, {"price_source", name}}});
  folder.write("q.json", request.dump());
  Json measured{
      {"name", name}, {"group", name}, {"scenario", scenario}, {"measured", {{"iteration_time_s", 0.1}}}};
  folder.write("v.json", Json{{"schema", "lockstep.measurements/1"},
                              {"source", name},
                              {"split", "heldout"},
                              {"cases", Json::array({measured})}}
                             .dump());
  folder.write("config.json", Json{{"model_type", "gpt2"},
                                   {"n_layer", 2},
                                   {"n_head", 2},
                                   {"n_embd", 64},
                                   {"vocab_size", 100},
                                   {"n_positions", 64},
                                   {"_name_or_path", name},
                                   {name, 1}}
                                  .dump());
  // A latency of 20 us and 10 GB/s.
  std::string log = "# " + name + "\n";
  for (int size = 1'024; size <= 64 << 20; size *= 2) {
    const double us = 20 + size / 1e4;
    const double rate = size / us / 1e3;
    log += fmt::format("{} {} float sum -1 {:.2f} {:.3f} {:.3f} 0\n", size, size / 4, us, rate, rate);
  }
  folder.write("log.txt", log);
}

std::string in_folder(std::string arguments, const Folder& folder) {
  const std::string word = "FOLDER";
  for (std::size_t at = arguments.find(word); at != arguments.npos; at = arguments.find(word))
    arguments.replace(at, word.size(), folder.path());
  return arguments;
}

TEST_CASE("whatever any verb prints or writes, nothing obeys the names in it") {
  const Folder folder;
  write_inputs(folder, all_of_them);
  for (const Said& said : all_that_is_said()) {
    const Answer answer = run_program(said.verb + " " + in_folder(said.arguments, folder));
    CAPTURE(said.verb);
    CAPTURE(answer.diagnostics);
    CHECK(answer.exit_code == said.exit_code);
    check_harmless(answer.out + answer.diagnostics);
    for (const std::string& file : said.files) {
      const std::string text = testing::text_of(folder.path() + "/" + file);
      check_harmless(text);
      if (file.ends_with(".html"))
        CHECK(text.find("<script>") == text.npos);
    }
  }
}

TEST_CASE("every verb stands among those") {
  const std::string help = run_program("--help").out;
  std::istringstream lines(help.substr(help.find("Subcommands")));
  std::set<std::string> told;
  for (const Said& said : all_that_is_said()) told.insert(said.verb);
  std::set<std::string> verbs;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  ") && line.size() > 2 && std::islower(static_cast<unsigned char>(line[2])))
      verbs.insert(line.substr(2, line.find(' ', 2) - 2));
  CHECK(verbs == told);
}

TEST_CASE("a profile's name leads nowhere outside its folder") {
  for (const std::string name :
       {"..", ".", "../machines/dgx_a100_40gb", "dgx_a100_40gb/../dgx_a100_40gb", "..%2fgpus",
        "../../hw_profiles/machines/dgx_a100_40gb", "dgx_a100_40gb/", "./dgx_a100_40gb"}) {
    for (const std::string kind : {"machine", "gpu", "link", "fabric", "model", "calibration"})
      testing::check_refused("show " + kind + " " + name, {"none of the"});
    testing::check_refused("collective all_reduce -e 8 --machine " + name, {name});
  }
}

TEST_CASE("a file whose name is no text is told of in JSON, too") {
  const Folder folder;
  write_inputs(folder, "lab");
  const std::string odd = folder.path() + "/\xff.txt";
  std::filesystem::rename(folder.path() + "/log.txt", odd);
  const std::string file = folder.path() + "/c.json";
  const Answer answer = run_program("calibrate --machine " + folder.path() + "/gpus.json " + odd + " -o " +
                                    file + " --collective all_reduce --nodes 1 --gpus-per-node 2");
  CAPTURE(answer.diagnostics);
  CHECK(answer.exit_code == 0);
  check_harmless(testing::text_of(file));
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
