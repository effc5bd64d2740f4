// The command line as a contract: exit codes, what goes to which stream, and the verbs' main paths.

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace lockstep::cli_test {

using nlohmann::json;
using testing::Answer;
using testing::check_refused;
using testing::contains;
using testing::Folder;
using testing::lab_text;
using testing::run_command;
using testing::run_program;
using testing::text_of;

const std::string shipped = std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios/resnet50_ddp_2x8_a100.json";

// The small lab of the scenario tests as a file.
class LabFile {
 public:
  LabFile() : path_(folder_.write("lab.json", lab_text)) {}
  const std::string& path() const { return path_; }
  std::string beside(const std::string& name) const { return folder_.path() + "/" + name; }

 private:
  Folder folder_;
  std::string path_;
};

// Exactly one document: the parser refuses anything after it.
json only_document(const std::string& arguments) {
  const Answer answer = run_program(arguments);
  CAPTURE(arguments);
  CAPTURE(answer.diagnostics);
  REQUIRE(answer.exit_code == 0);
  return json::parse(answer.out);
}

TEST_CASE("predict answers with a table that names every part of the iteration") {
  const LabFile lab;
  const Answer answer = run_program("predict " + lab.path());
  CHECK(answer.exit_code == 0);
  for (const char* part : {"lab", "iteration time", "samples/s", "scaling efficiency", "MFU",
                           "Where the time goes", "Gradient buckets", "Memory of one GPU", "Critical path"}) {
    CHECK_MESSAGE(contains(answer.out, part), part);
  }
}

TEST_CASE("a report says whose time it tells where stages differ") {
  const Answer answer = run_program("predict " LOCKSTEP_SOURCE_DIR "/scenarios/pipeline_four_stages.json");
  CHECK(answer.exit_code == 0);
  CHECK(contains(answer.out, "Where the time of rank "));
  CHECK(contains(answer.out, " goes, the last to end"));
}

TEST_CASE("a report warns where the host sets the pace, and of what no GPU could do") {
  const Answer bound = run_program("predict " LOCKSTEP_SOURCE_DIR
                                   "/scenarios/llama2_13b_dp8_tp8.json "
                                   "--set cluster.machine.host.operator_time=60us");
  CHECK(contains(bound.out, "the host sets the pace: "));
  CHECK_FALSE(contains(bound.out, "an MFU of"));
  const Answer fast =
      run_program("predict " LOCKSTEP_SOURCE_DIR
                  "/scenarios/gpt2_ddp_4x8_h100.json --set cluster.nodes=1 "
                  "--set cluster.gpus_per_node=1 --set training=null --set compute.kernels=compiled "
                  "--set compute.scale=0.01");
  CHECK(contains(fast.out, "an MFU of "));
}

TEST_CASE("output that is no terminal holds no escape sequence") {
  const LabFile lab;
  CHECK_FALSE(contains(run_program("predict " + lab.path()).out, "\x1b"));
}

TEST_CASE("predict --json prints one document and the same bytes every time") {
  const LabFile lab;
  CHECK(only_document("predict " + lab.path() + " --json")["schema"] == "lockstep.result/1");
  CHECK(run_program("predict " + lab.path() + " --json").out ==
        run_program("predict " + lab.path() + " --json").out);
}

TEST_CASE("folding changes no byte of a result but the count of what was simulated") {
  const LabFile lab;
  json folded = only_document("predict " + lab.path() + " --json");
  json unfolded = only_document("predict " + lab.path() + " --json --no-fold");
  CHECK(unfolded["engine"]["ranks_simulated"] == 4);
  folded.erase("engine");
  unfolded.erase("engine");
  CHECK(folded == unfolded);
}

TEST_CASE("--set changes the scenario and --fidelity the way it is simulated") {
  const LabFile lab;
  const json result =
      only_document("predict " + lab.path() + " --json --set cluster.nodes=2 --fidelity step");
  CHECK(result["scenario"]["cluster"]["nodes"] == 2);
  CHECK(result["scenario"]["simulation"]["fidelity"] == "step");
}

TEST_CASE("--stats speaks to stderr only") {
  const LabFile lab;
  const Answer answer = run_program("predict " + lab.path() + " --json --stats");
  CHECK(json::accept(answer.out));
  CHECK(contains(answer.diagnostics, "events/s"));
  CHECK(contains(answer.diagnostics, "peak memory"));
}

TEST_CASE("predict writes a trace and a page beside its answer") {
  const LabFile lab;
  const std::string trace = lab.beside("trace.json");
  const std::string page = lab.beside("report.html");
  const Answer answer = run_program("predict " + lab.path() + " --trace " + trace + " --report " + page);
  CHECK(answer.exit_code == 0);
  CHECK(json::parse(text_of(trace))["traceEvents"].size() > 0);
  CHECK(contains(text_of(page), "<svg"));
}

TEST_CASE("a file that cannot be written is refused before anything is simulated") {
  const LabFile lab;
  check_refused("predict " + lab.path() + " --trace /nonexistent/trace.json", {"/nonexistent/trace.json"});
  check_refused("predict " + lab.path() + " --report " + lab.beside("none/page.html"), {"none/page.html"});
}

TEST_CASE("a misspelt verb is refused with the nearest one") {
  check_refused("predcit x.json", {"predcit", "did you mean \"predict\""});
}

TEST_CASE("a misspelt option is refused with the nearest one") {
  const LabFile lab;
  check_refused("predict " + lab.path() + " --jsn", {"--jsn", "did you mean \"--json\""});
}

TEST_CASE("an argument that is missing or too many is refused") {
  check_refused("predict", {"scenario is required"});
  check_refused("predict a.json b.json", {"b.json"});
  check_refused("--quiet", {"subcommand is required"});
}

TEST_CASE("a scenario file that is not there is refused by its name") {
  check_refused("predict /nonexistent.json", {"/nonexistent.json", "no such file"});
  check_refused("check /nonexistent.json", {"/nonexistent.json"});
  check_refused("explain /nonexistent.json", {"/nonexistent.json"});
}

TEST_CASE("every mistake of a scenario has a line of its own") {
  const LabFile lab;
  const Answer answer =
      run_program("check " + lab.path() + " --set training.bucket_cap=25 --set cluster.nodse=4");
  CHECK(answer.exit_code == 2);
  CHECK(std::count(answer.diagnostics.begin(), answer.diagnostics.end(), '\n') == 2);
  CHECK(contains(answer.diagnostics, "/training/bucket_cap"));
  CHECK(contains(answer.diagnostics, "/cluster/nodse"));
}

TEST_CASE("values of options are checked like those of files") {
  const LabFile lab;
  check_refused("predict " + lab.path() + " --set cluster.nodes", {"--set", "PATH=VALUE"});
  check_refused("predict " + lab.path() + " --fidelity stpe", {"--fidelity", "did you mean \"step\""});
  check_refused("predict " + lab.path() + " --data /nonexistent", {"--data", "/nonexistent"});
  check_refused("list --data " LOCKSTEP_SOURCE_DIR "/hw_profiles",
                {"hw_profiles: found neither hw_profiles/ nor models/", "they are in " LOCKSTEP_SOURCE_DIR});
  const Answer elsewhere = run_command("LOCKSTEP_DATA=/nonexistent " LOCKSTEP_BINARY " list machines");
  CHECK(elsewhere.exit_code == 2);
  CHECK(contains(elsewhere.diagnostics, "LOCKSTEP_DATA=/nonexistent: found no such directory"));
}

TEST_CASE("check says in one line what it understood") {
  const LabFile lab;
  const Answer answer = run_program("check " + lab.path());
  CHECK(answer.exit_code == 0);
  CHECK(answer.out.starts_with("ok: " + lab.path()));
  CHECK(only_document("check " + lab.path() + " --json")["ok"] == true);
}

TEST_CASE("check takes a machine of one's own as well") {
  const Folder folder;
  const std::string file = folder.write("my_box.json", R"({
    "name": "my_box", "source": "ours", "gpu": "a100_sxm_40gb", "gpus": 8,
    "gpu_links": { "kind": "nvswitch", "link": "nvlink3", "links_per_gpu": 12 },
    "nics": { "count": 4, "link": "hdr200" } })");
  CHECK(contains(run_program("check " + file).out, "a machine of 8 x a100_sxm_40gb"));
  CHECK(run_program("collective all_reduce -b 1M -e 1M --machine " + file).exit_code == 0);
  check_refused("check " + folder.write("bad.json", R"({ "gpus": 8, "gpu": "a100_sxm" })"),
                {"a100_sxm", "did you mean"});
}

TEST_CASE(
    "explain --kernels tells what each kind reaches of its peak, and how far such kernels were missed") {
  const std::string command = "explain " LOCKSTEP_SOURCE_DIR "/scenarios/single_gpu_resnet50.json --kernels";
  const json document = only_document(command + " --json");
  for (const json& group : document["kernels"]) CHECK(group["of_peak"].get<double>() > 0);
  CHECK(document["residuals"].at(0)["section"] == "tensor");
  CHECK(document["residuals"].at(0)["rows"] == "kept aside");
  CHECK(document["clock"]["board_w"] == 400);
  CHECK(document["clock"]["share"].get<double>() < 1);
  const json less = only_document(command + " --json --set cluster.machine.gpu.tdp='\"250 W\"'");
  CHECK(less["clock"]["share"].get<double>() < document["clock"]["share"].get<double>());
  const std::string text = run_program(command).out;
  CHECK(contains(text, "of 400 W"));
  CHECK(contains(text, "of peak"));
  CHECK(contains(text, "kept aside from their fit are missed by"));
}

TEST_CASE("explain tells where every value comes from and what a change would do") {
  const LabFile lab;
  const Answer answer = run_program("explain " + lab.path() + " --what-if cluster.nodes=2");
  CHECK(answer.exit_code == 0);
  for (const char* part : {"bucket_cap_mb", "default", "given", "cluster.nodes=2", "every latency / 2"}) {
    CHECK_MESSAGE(contains(answer.out, part), part);
  }
  const json document = only_document("explain " + lab.path() + " --json --what-if cluster.nodes=2");
  CHECK(document["what_if"][0]["change"] == "cluster.nodes=2");
  CHECK(document["scenario"]["cluster"]["nodes"] == 4);
  check_refused("explain " + lab.path() + " --what-if cluster.nodes=none", {"/cluster/nodes"});
  check_refused("explain " + lab.path() + " --kernels --what-if cluster.nodes=2", {"--kernels", "--what-if"});
}

TEST_CASE("list prints every kind with its count, or every entry of one") {
  const json kinds = only_document("list --json")["kinds"];
  for (const char* kind :
       {"machines", "gpus", "links", "fabrics", "models", "strategies", "collectives", "importers"}) {
    const Answer answer = run_program(std::string("list ") + kind);
    CAPTURE(kind);
    CHECK(answer.exit_code == 0);
    CHECK(std::count(answer.out.begin(), answer.out.end(), '\n') == kinds[kind].get<std::int64_t>());
  }
  check_refused("list machnes", {"did you mean \"machines\""});
}

TEST_CASE("list marks machines that nobody measured") {
  bool has_marked = false;
  const json document = only_document("list machines --json");
  for (const json& machine : document["entries"]) {
    CHECK_FALSE(machine["source"].get<std::string>().empty());
    has_marked = has_marked || !machine["calibrated"].get<bool>();
  }
  CHECK(contains(run_program("list machines").out, "*uncalibrated*") == has_marked);
}

TEST_CASE("show prints a profile as it stands, by singular or plural") {
  const std::string file = std::string(LOCKSTEP_SOURCE_DIR) + "/hw_profiles/links/hdr200.json";
  CHECK(run_program("show link hdr200").out == text_of(file));
  CHECK(run_program("show links hdr200").out == text_of(file));
  CHECK(only_document("show model resnet50 --json")["name"] == "resnet50");
  CHECK(contains(run_program("show strategy ddp").out, "ddp: "));
  check_refused("show machine dgx_h10", {"did you mean \"dgx_h100\""});
  check_refused("show machin dgx_h100", {"did you mean \"machines\""});
}

TEST_CASE("collective prints the columns of nccl-tests") {
  const Answer answer = run_program("collective all_reduce --machine dgx_a100_40gb -b 8 -e 1K -f 2");
  CHECK(answer.exit_code == 0);
  for (const char* column :
       {"size", "count", "type", "redop", "time", "algbw", "busbw", "algorithm", "protocol"}) {
    CHECK_MESSAGE(contains(answer.out, column), column);
  }
  std::size_t rows = 0;
  std::size_t start = 0;
  for (std::size_t end = answer.out.find('\n'); end != std::string::npos;
       start = end + 1, end = answer.out.find('\n', start)) {
    rows += answer.out[start] == '#' ? 0U : 1U;
  }
  CHECK(rows == 8);  // 8, 16, ... 1024
}

TEST_CASE("collective takes nccl-tests' spellings and binary sizes") {
  const std::string rest = " --machine dgx_a100_40gb -b 1K -e 4M -f 64 --json";
  const json document = only_document("collective all_reduce" + rest);
  CHECK(document["schema"] == "lockstep.collective/1");
  CHECK(document["ranks"] == 8);
  CHECK(document["rows"].size() == 3);
  CHECK(document["rows"][2]["size_bytes"] == 4 << 20);
  CHECK(run_program("collective allreduce" + rest).out == run_program("collective all_reduce" + rest).out);
}

TEST_CASE("collective says where an algorithm that was asked for cannot do it") {
  const std::string rest = " --machine dgx_h100 -b 1M -e 4M ";
  CHECK(contains(run_program("collective broadcast" + rest + "--algorithm tree").out,
                 "--algorithm tree changes nothing: it cannot do this here, and ring does"));
  CHECK_FALSE(
      contains(run_program("collective all_reduce" + rest + "--algorithm tree").out, "changes nothing"));
}

TEST_CASE("collective refuses what it cannot do") {
  check_refused("collective allredoce --machine dgx_h100", {"did you mean \"all_reduce\""});
  check_refused("collective all_reduce --machine dgx_h10", {"did you mean \"dgx_h100\""});
  check_refused("collective all_reduce --machine dgx_h100 -b 3X", {"-b", "3X"});
  check_refused("collective all_reduce --machine dgx_h100 -b 1M -e 1K", {"-e"});
  check_refused("collective all_reduce --machine dgx_h100 -f 1", {"-f"});
  check_refused("collective all_reduce --machine dgx_h100 -f 2.5",
                {"-f: found \"2.5\", expected an integer"});
  check_refused("collective all_reduce --machine dgx_h100 --nodes two", {"--nodes: found \"two\""});
  check_refused("collective all_reduce --machine dgx_h100 --nodes 0", {"/cluster/nodes"});
  check_refused("collective all_reduce", {"--machine is required"});
}

TEST_CASE("help and version go to stdout and are no mistake") {
  CHECK(run_program("--version").out.starts_with("lockstep "));
  for (const char* arguments : {"", "--help", "predict --help", "collective -h"}) {
    const Answer answer = run_program(arguments);
    CHECK(answer.exit_code == 0);
    CHECK(contains(answer.out, "Usage: lockstep"));
    CHECK(answer.diagnostics.empty());
  }
}

TEST_CASE("an answer that cannot be printed is the environment's fault") {
  CHECK(run_program("list > /dev/full").exit_code == 4);
}

TEST_CASE("the shipped example is predicted from any working directory") {
  CHECK(
      run_program("--version && cd / && " + std::string(LOCKSTEP_BINARY) + " predict " + shipped).exit_code ==
      0);
}

}  // namespace lockstep::cli_test
