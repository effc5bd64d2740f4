#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "sim/base/error.h"
#include "sim/load/import/import_file.h"
#include "tests/load/import/packed.h"

namespace lockstep::kineto_test {

using nlohmann::ordered_json;

const std::string samples = std::string(LOCKSTEP_SOURCE_DIR) + "/tests/load/import/samples/kineto/";
const std::string no_steps =
    std::string(LOCKSTEP_SOURCE_DIR) + "/tests/load/import/traces/a100_no_steps.json";

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Imported imported(const std::string& text, const ordered_json& stated = ordered_json::object()) {
  std::istringstream file(text);
  return importer_named("kineto").second.import({.file_name = "trace.json", .file = file, .stated = stated});
}

std::string mistake_of(const std::string& text) {
  try {
    imported(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool warns(const Imported& made, const std::string& part) {
  for (const std::string& warning : made.warnings)
    if (contains(warning, part))
      return true;
  return false;
}

// A trace of the events given, one process and thread.
std::string trace_of(const std::string& events) {
  return R"({"schemaVersion": 1, "traceEvents": [)" + events + "]}";
}

std::string event(const std::string& name, const std::string& start, const std::string& duration,
                  const std::string& arguments = "{}") {
  return R"({"ph": "X", "cat": "cpu_op", "name": ")" + name + R"(", "pid": 1, "tid": 1, "ts": )" + start +
         R"(, "dur": )" + duration + R"(, "args": )" + arguments + "}";
}

// One step on a CPU: forward 10 us, one node of 20 us whose gradient is ready after 15, then 5 us.
std::string step(int start) {
  const auto at = [&](int time) { return std::to_string(start + time); };
  return event("ProfilerStep#1", at(0), "35") + "," +
         event("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", at(10), "20") + "," +
         event("torch::autograd::AccumulateGrad", at(11), "14",
               R"({"Input Dims": [[3, 4]], "Input type": ["c10::Half"]})") +
         "," + event("Optimizer.step#SGD.step", at(31), "3");
}

TEST_CASE("forward ends where autograd begins; what hangs on a gradient is not computing") {
  const ordered_json measured = imported(trace_of(step(100))).document["measured"];
  CHECK(measured["forward"] == "10.000 us");
  CHECK(measured["backward"] == "15.000 us");  // 20 less the 5 after the gradient
  CHECK(measured["optimizer"] == "5.000 us");
  CHECK(measured["parameters"] ==
        ordered_json::array({{{"elements", 12}, {"dtype", "fp16"}, {"gradient_ready", "15.000 us"}}}));
}

TEST_CASE("a list of events is a trace, and so is one that is packed") {
  const std::string list = "[" + step(0) + "]";
  CHECK(imported(list).document["measured"] == imported(trace_of(step(0))).document["measured"]);
  CHECK(imported(testing::packed(list)).document["measured"] == imported(list).document["measured"]);
  CHECK(importer_of(list)->first == "kineto");
  CHECK(importer_of(testing::packed(list))->first == "kineto");
  CHECK(importer_of(R"({"layers": []})") == nullptr);
}

TEST_CASE("steps under no_sync tell computing, the others what is waited for") {
  // The second step takes 8 us more: 3 in forward, and 5 until its collective has ended.
  const std::string slow =
      event("ProfilerStep#2", "100", "43") + "," +
      event("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "113", "20") + "," +
      event("torch::autograd::AccumulateGrad", "114", "14", R"({"Input Dims": [[3, 4]]})") + "," +
      event("gloo:all_reduce", "130", "8", R"({"Input Dims": [[12]], "Input type": ["float"]})") + "," +
      event("Optimizer.step#SGD.step", "139", "3");
  const Imported made = imported(trace_of(step(0) + "," + slow));
  CHECK(made.document["measured"]["forward"] == "10.000 us");
  CHECK(contains(made.report, "0.043 ms  1 steps with collectives"));
  CHECK(contains(made.report, "0.035 ms  1 steps without collectives"));
  CHECK(contains(made.report, "0.005 ms  waiting for collectives"));
  CHECK(contains(made.report, "12 float  gloo:all_reduce"));
  CHECK(!warns(made, "no_sync"));
}

TEST_CASE("marks of measure_model.py name parameters, in the order in which they are registered") {
  const auto mark = [](int index, const std::string& rest, int time) {
    return event("lockstep::gradient_ready " + std::to_string(index) + " " + rest, std::to_string(time), "0");
  };
  const std::string text =
      trace_of(event("ProfilerStep#1", "0", "100") + "," + event("MmBackward0", "40", "50") + "," +
               mark(1, "bf16 7 a name with blanks", 50) + "," + mark(0, "fp32 5 first", 60));
  const Imported made = imported(text);
  CHECK(made.document["measured"]["parameters"] ==
        ordered_json::array(
            {{{"name", "first"}, {"elements", 5}, {"dtype", "fp32"}, {"gradient_ready", "20.000 us"}},
             {{"name", "a name with blanks"},
              {"elements", 7},
              {"dtype", "bf16"},
              {"gradient_ready", "10.000 us"}}}));
  CHECK(!warns(made, "registered"));
}

// Each step lasts 1,000 us. On the GPU, after its beginning: products 100 to 400 (forward), 400 to 700 (backward), a
// copy for the wrapper to 710, nothing to 820 while a collective runs from 715 to 815, the optimizer to 860, and then
// nothing until the host, which reads its batch for 50 us, launches the next product.
TEST_CASE("on a GPU a step is cut where kernels of backward begin and end, and waiting is taken out") {
  const Imported made = imported(contents(samples + "h100_ddp.json"));
  const ordered_json& measured = made.document["measured"];
  CHECK(measured["forward"] == "490.000 us");   // 140 + 400 - 50 of input
  CHECK(measured["backward"] == "300.000 us");  // 710 - 400 - 10 of copies
  CHECK(measured["optimizer"] == "50.000 us");  // 860 - 710 - 100 of the collective
  CHECK(measured["parameters"][0] ==
        ordered_json{{"elements", 256 * 128}, {"dtype", "fp32"}, {"gradient_ready", "300.000 us"}});
  CHECK(measured["parameters"][1]["gradient_ready"] ==
        "150.000 us");  // the kernel launched before it ends at 550
  CHECK(contains(made.report, "stream 20   ncclDevKernel_AllReduce"));
  CHECK(contains(made.report, "(record_param_comms)"));
  CHECK(contains(made.report, "49152 Float"));
  CHECK(contains(made.report, "0.190 ms  of these: the GPU waits for its host"));
  CHECK(warns(made, "no_sync"));
}

TEST_CASE("a recorded step of 2021 on a V100: nodes have no evaluate_function, sizes are asked for") {
  const Imported made = imported(contents(samples + "v100_2021.json"));
  const ordered_json& measured = made.document["measured"];
  // The first copy begins at 224,556, backward's first kernel at 228,962; its last ends at 235,556, the step's at 236,502.
  CHECK(measured["forward"] == "4406.000 us");
  CHECK(measured["backward"] == "6594.000 us");
  CHECK(measured["optimizer"] == "946.000 us");
  REQUIRE(measured["parameters"].size() == 4);
  CHECK(measured["parameters"][3]["gradient_ready"] == "1201.000 us");  // 230,163 - 228,962
  CHECK(measured["parameters"][0]["gradient_ready"] == "6594.000 us");
  REQUIRE(made.questions.size() == 1);
  CHECK(made.questions[0].path == "measured.parameters");
}

TEST_CASE("recorded traces without gradients or steps say what is missing") {
  const Imported made = imported(contents(samples + "a100_one_node.json"));
  CHECK(made.document["measured"]["backward"] == "45.000 us");
  REQUIRE(made.questions.size() == 1);
  CHECK(contains(made.questions[0].why, "AccumulateGrad"));
  CHECK(contains(mistake_of(contents(no_steps)), "no step marks"));
}

TEST_CASE("a run asks for its machine, deals its ranks to nodes, and is anchored where the model is named") {
  const std::string text = contents(samples + "h100_ddp.json");
  const Imported asking = imported(text, {{"cluster", {{"nodes", 2}}}});
  CHECK(asking.makes == ImportedThing::scenario);
  CHECK(asking.questions.size() == 2);  // of which one is answered
  const ordered_json two{{"cluster", {{"machine", "dgx_h100"}, {"nodes", 2}}}};
  const ordered_json run = imported(text, two).document;
  CHECK(run["cluster"]["gpus_per_node"] == 4);
  CHECK(run["training"]["framework"] == "pytorch_ddp");
  CHECK(run["training"]["optimizer"] == "sgd");
  CHECK(run["communication"]["library"] == "nccl");
  CHECK(run["model"]["measured"]["backward"] == "300.000 us");
  const ordered_json anchored =
      imported(text, {{"cluster", {{"machine", "dgx_h100"}}}, {"model", {{"name", "resnet50"}}}}).document;
  CHECK(anchored["compute"]["single_gpu_iteration"] == "840.000 us");
  CHECK(!anchored["model"].contains("measured"));
  CHECK_THROWS_AS(imported(text, {{"cluster", {{"nodes", 3}}}}), ConfigError);
}

TEST_CASE("a run without collectives or wrapper is of one GPU; collectives of nobody known are asked about") {
  const ordered_json machine{{"cluster", {{"machine", "cpu_gloo"}}}};
  const ordered_json alone = imported(trace_of(step(0)), machine).document;
  CHECK(alone["training"]["strategy"] == "single");
  CHECK(alone["cluster"]["nodes"] == 1);
  const Imported unknown = imported(trace_of(step(0) + "," + event("gloo:all_reduce", "12", "5")), machine);
  CHECK(std::any_of(unknown.questions.begin(), unknown.questions.end(),
                    [](const Question& question) { return question.path == "training.strategy"; }));
}

TEST_CASE("every key of a trace is read or left aside") {
  const Imported made = imported(contents(samples + "h100_ddp.json"));
  const auto fate_of = [&](const std::string& key) {
    for (const KeyUse& use : made.keys)
      if (use.key == key)
        return static_cast<int>(use.fate);
    return -1;
  };
  CHECK(fate_of("traceEvents") == static_cast<int>(KeyFate::used));
  CHECK(fate_of("args.correlation") == static_cast<int>(KeyFate::used));
  CHECK(fate_of("args.grid") == static_cast<int>(KeyFate::left_aside));
  CHECK(fate_of("category flows") == static_cast<int>(KeyFate::left_aside));
}

TEST_CASE("bad traces are refused, with the place") {
  CHECK(contains(mistake_of(""), "empty file"));
  CHECK(contains(mistake_of("hello"), "byte 1"));
  CHECK(contains(mistake_of("{}"), "traceEvents"));
  CHECK(contains(mistake_of("7"), "traceEvents"));
  CHECK(contains(mistake_of(R"({"layers": [1]})"), "traceEvents"));
  CHECK(contains(mistake_of(trace_of("3")), "expected an event"));
  CHECK(contains(mistake_of(trace_of("[]")), "expected an event"));
  const std::string whole = trace_of(step(0));
  CHECK(contains(mistake_of(whole.substr(0, whole.size() - 4)), "byte "));
  CHECK(contains(mistake_of(trace_of(event("a", "1", "-3"))), "/traceEvents/0: dur: found -3 us"));
  CHECK(contains(mistake_of(trace_of(event("a", "0", "1") + "," + event("a", "1", "NaN"))), "byte "));
  CHECK(contains(mistake_of(trace_of(event("a", "\"NaN\"", "1"))), "/traceEvents/0: ts"));
  CHECK(contains(mistake_of(trace_of(event("a", "1e17", "1"))), "at most 3000000000000000"));
  CHECK(contains(mistake_of(trace_of(event("a", "10000000000000000", "1"))), "at most 3000000000000000"));
  CHECK(contains(mistake_of(trace_of(event("a", "1", "1e12"))), "dur: found 1000000000000"));
  CHECK(contains(mistake_of(trace_of(R"({"ph": "X", "name": "a"})")), "found no \"ts\""));
  CHECK(contains(mistake_of(trace_of(event("aten::mm", "0", "1"))), "no step marks"));
  CHECK(contains(mistake_of(trace_of(event("ProfilerStep#1", "0", "1"))), "no backward pass"));
  CHECK(contains(mistake_of(trace_of(event(std::string(1 << 20, 'a'), "0", "1"))), "longer than 64 KiB"));
  CHECK(contains(mistake_of("{\"a\": " + std::string(1 << 20, '[')), "64 values within each other"));
}

TEST_CASE(
    "a step of several backward passes is refused, one that computes forward again within backward is not") {
  const auto node = [](int sequence, int start, int duration) {
    return event("autograd::engine::evaluate_function: MmBackward0", std::to_string(start),
                 std::to_string(duration), R"({"Sequence number": )" + std::to_string(sequence) + "}");
  };
  const std::string before = event("ProfilerStep#1", "0", "100") + "," + node(7, 10, 10);
  CHECK(contains(mistake_of(trace_of(before + "," + node(9, 30, 10))), "several backward passes"));
  CHECK(mistake_of(trace_of(before + "," + node(6, 30, 10))) == "none");
  CHECK(mistake_of(trace_of(before + "," + node(9, 12, 5) + "," + node(6, 30, 10))) == "none");
}

TEST_CASE("micro-batches that update nothing say nothing of the optimizer") {
  const std::string micro_batch =
      event("ProfilerStep#2", "100", "32") + "," +
      event("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "110", "20") + "," +
      event("torch::autograd::AccumulateGrad", "111", "14", R"({"Input Dims": [[3, 4]]})");
  const Imported made = imported(trace_of(step(0) + "," + micro_batch));
  CHECK(made.document["measured"]["optimizer"] == "5.000 us");
}

TEST_CASE("kernels whose launch is missing are counted and placed by their own time") {
  const std::string kernel =
      R"({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 12, "dur": 5, "args": {"correlation": 9}})";
  const Imported made = imported(trace_of(step(0) + "," + kernel));
  CHECK(warns(made, "1 kernels have no launch"));
  CHECK(made.document["measured"]["forward"] ==
        "10.000 us");  // nothing is known to be backward's: the CPU's clock
}

TEST_CASE("names of strangers are printed, never obeyed") {
  const std::string hostile = R"(\u001b[2J\u202e)";
  const Imported made = imported(R"({"deviceProperties": [{"name": ")" + hostile + R"("}], ")" + hostile +
                                 R"(": 1, "traceEvents": [)" + step(0) + "," +
                                 event("lockstep::gradient_ready 0 fp32 4 " + hostile, "12", "1") + "]}");
  for (const std::string& text :
       {made.report, made.document.dump(), made.document["source"].get<std::string>()})
    CHECK(!contains(text, "\x1b"));
  for (const KeyUse& use : made.keys) CHECK(!contains(use.key, "\x1b"));
}

}  // namespace lockstep::kineto_test
