// lockstep import, and files of other tools named in a scenario.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/load/import/importer.h"
#include "tests/support/import_samples.h"
#include "tests/support/program.h"

namespace lockstep::cli_import_test {

using nlohmann::ordered_json;
using testing::Answer;
using testing::bytes_of;
using testing::check_refused;
using testing::check_says;
using testing::contains;
using testing::Folder;
using testing::run_program;
using testing::samples_folder;
using testing::text_of;

std::string config(const std::string& name) {
  return (samples_folder() / "hf_config" / (name + ".json")).string();
}

std::string arguments_file() {
  return (samples_folder() / "hf_training_arguments/ddp_bf16.json").string();
}

TEST_CASE("a model is written whole, with its source, and tells its parameters") {
  const Folder folder;
  const std::string out = folder.path() + "/gpt2.json";
  const Answer answer = run_program("import hf_config " + config("gpt2") + " -o " + out);
  CHECK(answer.exit_code == 0);
  check_says(answer.out, {"124439808 parameters in 148 tensors", "wrote a model to " + out});
  const ordered_json model = ordered_json::parse(text_of(out));
  CHECK(model["family"] == "transformer");
  CHECK(contains(model["source"].get<std::string>(), "gpt2.json"));
}

TEST_CASE("without an output the document is the answer, and a pipe is read") {
  const Answer answer = run_program("import hf_config - < " + config("gpt2"));
  CHECK(answer.exit_code == 0);
  CHECK(ordered_json::parse(answer.out)["layers"] == 12);
  check_says(answer.diagnostics, {"lockstep: warning: sequence_length is the model's longest"});
}

TEST_CASE("--set changes what is made, and answers what is asked") {
  const Answer model = run_program("import hf_config " + config("gpt2") + " --set sequence_length=512");
  CHECK(ordered_json::parse(model.out)["sequence_length"] == 512);
  CHECK(model.diagnostics.empty());
  check_refused("import hf_training_arguments " + arguments_file(),
                {"--set cluster.machine=", "--set model="});
  const Answer scenario = run_program("import hf_training_arguments " + arguments_file() +
                                      " --set cluster.machine=dgx_h100 --set model=" + config("gpt2"));
  CHECK(scenario.exit_code == 0);
  CHECK(ordered_json::parse(scenario.out)["model"]["batch_per_gpu"] == 4);
}

TEST_CASE("what is imported predicts") {
  const Folder folder;
  const std::string out = folder.path() + "/mine.json";
  CHECK(run_program("import hf_training_arguments " + arguments_file() +
                    " --set cluster.machine=dgx_h100 --set model=gpt2 -o " + out)
            .exit_code == 0);
  const Answer answer = run_program("predict " + out + " --json");
  CHECK(answer.exit_code == 0);
  CHECK(ordered_json::parse(answer.out)["scenario"]["training"]["framework"] == "hf_trainer");
}

TEST_CASE("--explain says of every key what became of it, --json all of it as one document") {
  const Answer table = run_program("import hf_config " + config("gpt2") + " --explain");
  check_says(table.out, {"n_embd", "used        hidden", "left aside"});
  const Answer answer = run_program("import hf_config " + config("gpt2") + " --json");
  const ordered_json document = ordered_json::parse(answer.out);
  CHECK(document["schema"] == "lockstep.import/1");
  CHECK(document["keys"].size() == ordered_json::parse(bytes_of(config("gpt2"))).size());
  CHECK(document["document"]["hidden"] == 768);
}

TEST_CASE("all refused keys are told at once, and nothing is written") {
  const Folder folder;
  ordered_json both = ordered_json::parse(bytes_of(config("gpt2")));
  both["add_cross_attention"] = true;
  both["n_layer"] = -3;
  const std::string path = folder.write("config.json", both.dump());
  const std::string out = folder.path() + "/out.json";
  check_refused("import hf_config " + path + " -o " + out, {"add_cross_attention", "n_layer: found -3"});
  CHECK(!std::filesystem::exists(out));
}

TEST_CASE("a wrong kind, a missing file, a folder and an output that is the input are refused") {
  const Folder folder;
  const std::string path = folder.write("config.json", bytes_of(config("gpt2")));
  check_refused("import hf_confg " + path, {"hf_confg: no such kind of file", "did you mean \"hf_config\""});
  check_refused("import hf_config " + folder.path() + "/nowhere.json", {"cannot be opened"});
  check_refused("import hf_config " + folder.path(), {"found a folder"});
  check_refused("import hf_config " + path + " -o " + path, {"--output"});
  check_refused("import deepspeed_config " + path,
                {"found config.json of a Hugging Face model", "it looks like hf_config: config.json"});
  check_refused("import deepspeed_config - < " + path, {"found config.json of a Hugging Face model"});
  check_refused("import hf_config " + path + " --set layers=many", {"/layers"});
  CHECK(text_of(path) == bytes_of(config("gpt2")));
}

TEST_CASE("a file of another kind is told what was expected, whatever its first complaint") {
  const Folder folder;
  const std::string prose = folder.write("notes.txt", "We train on eight of them.\n");
  const std::string empty = folder.write("empty", "");
  for (const auto& [kind, importer] : Registry<Importer>::all()) {
    CAPTURE(kind);
    const std::string expected = fmt::format("read as {}: {}", kind, importer.description);
    check_refused(fmt::format("import {} {}", kind, prose), {expected});
    check_refused(fmt::format("import {} - < {}", kind, prose), {expected});
    check_refused(fmt::format("import {} - < {}", kind, empty),
                  {"standard input: found an empty file", expected});
  }
}

TEST_CASE("a broken file of the right kind is told what is broken alone") {
  const Folder folder;
  const std::string path = folder.write("config.json", R"({"model_type": "gpt2", "n_layer": })");
  const Answer answer = run_program("import hf_config " + path);
  CHECK(answer.exit_code == 2);
  CHECK_FALSE(contains(answer.diagnostics, "read as"));
}

TEST_CASE("a scenario names a configuration of Hugging Face in place of a model") {
  const Folder folder;
  folder.write("config.json", bytes_of(config("gpt2")));
  const std::string by_name = folder.write("by_name.json",
                                           R"({"cluster": {"machine": "dgx_a100_80gb"},
          "model": {"name": "config.json", "batch_per_gpu": 4, "sequence_length": 512, "precision": "bf16"}})");
  const std::string shipped = folder.write("shipped.json",
                                           R"({"cluster": {"machine": "dgx_a100_80gb"},
          "model": {"name": "gpt2", "batch_per_gpu": 4, "sequence_length": 512, "precision": "bf16"}})");
  const Answer imported = run_program("predict " + by_name + " --json");
  CHECK(imported.exit_code == 0);
  const ordered_json result = ordered_json::parse(imported.out);
  CHECK(contains(result["warnings"].dump(), "is read as hf_config"));
  CHECK(result["iteration_time_s"] ==
        ordered_json::parse(run_program("predict " + shipped + " --json").out)["iteration_time_s"]);
}

TEST_CASE("what stands beside the name is laid over the imported model") {
  const Folder folder;
  folder.write("config.json", bytes_of(config("gpt2")));
  const std::string scenario = folder.write("scenario.json", R"({"cluster": {"machine": "dgx_a100_80gb"},
                           "model": {"name": "config.json", "layers": 6, "batch_per_gpu": 1, "sequence_length": 64}})");
  const Answer answer = run_program("predict " + scenario);
  CHECK(answer.exit_code == 0);
  check_says(answer.out, {"model config.json with layers 6 (12)", "is read as hf_config"});
}

TEST_CASE("a configuration of a model is no machine") {
  const Folder folder;
  folder.write("config.json", bytes_of(config("gpt2")));
  const std::string scenario = folder.write(
      "scenario.json",
      R"({"cluster": {"machine": "config.json"}, "model": {"name": "gpt2", "batch_per_gpu": 1}})");
  check_refused("check " + scenario, {"config.json: found hf_config", "expected a machine"});
}

TEST_CASE("hostile names reach a terminal as text") {
  const Folder folder;
  ordered_json hostile = ordered_json::parse(bytes_of(config("gpt2")));
  hostile["\x1b[31mred"] = "\x07";
  const std::string path = folder.write("config.json", hostile.dump());
  const Answer answer = run_program("import hf_config " + path + " --explain");
  CHECK(answer.exit_code == 0);
  CHECK(answer.out.find('\x1b') == std::string::npos);
  CHECK(answer.diagnostics.find('\x1b') == std::string::npos);
}

TEST_CASE("another tool's file where a scenario is expected is refused with the importer that reads it") {
  testing::check_refused("predict " LOCKSTEP_SOURCE_DIR "/scenarios/import/llama3_8b_config.json",
                         {"expected a scenario; lockstep import hf_config "});
}

}  // namespace lockstep::cli_import_test
