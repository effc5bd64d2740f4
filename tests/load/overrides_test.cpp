// Changes that lead through a name: the profile is opened, changed and labelled.

#include "sim/load/overrides.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/scenario/lab.h"
#include "tests/support/program.h"
#include "tests/support/scenarios.h"

namespace lockstep::overrides_test {

using testing::check_says;
using testing::load_lab;
using testing::load_resnet;
using testing::problems_of_resnet;

bool warns_of(const LoadedScenario& scenario, const std::string& part) {
  return std::any_of(scenario.warnings.begin(), scenario.warnings.end(),
                     [&](const std::string& warning) { return testing::contains(warning, part); });
}

std::string llama_text(const std::string& model) {
  return R"({"cluster": {"machine": "dgx_a100_80gb"}, "model": )" + model +
         R"(, "training": {"strategy": "ddp"}})";
}

const std::string named_llama = R"({"name": "llama2_7b", "batch_per_gpu": 1, "precision": "bf16"})";

LoadedScenario load_llama(Overrides overrides, const std::string& model = named_llama) {
  return load({.text = llama_text(model), .overrides = std::move(overrides)});
}

// Fused attention is one kernel; unfused, there are the two products and the softmax between them.
TEST_CASE("a model by name takes other values for its keys") {
  const LoadedScenario fused = load_llama({});
  const LoadedScenario unfused = load_llama({{"model.attention", "unfused"}});
  CHECK(unfused.model.name == "llama2_7b");
  CHECK(unfused.model.model.layers.size() > fused.model.model.layers.size());
  CHECK(unfused.model.batch_per_gpu == 1);
  CHECK(text_of(unfused.changes) == "model llama2_7b with attention unfused (not stated)");
  CHECK(fused.changes.empty());
}

TEST_CASE("a count of layers is a key of a transformer, and a list of layers a model of its own") {
  const LoadedScenario half = load_llama({{"model.layers", "16"}});
  CHECK(half.model.model.transformer->layers == 16);
  CHECK(text_of(half.changes) == "model llama2_7b with layers 16 (32)");
}

TEST_CASE("a model that is a name alone can be given its batch") {
  const LoadedScenario scenario = load_llama({{"model.batch_per_gpu", "2"}}, R"("llama2_7b")");
  CHECK(scenario.model.name == "llama2_7b");
  CHECK(scenario.model.batch_per_gpu == 2);
  CHECK(load_llama({{"model", "llama2_13b"}}).model.name == "llama2_13b");
  CHECK(load_llama({{"model", "llama2_13b"}}).model.batch_per_gpu == 1);
}

TEST_CASE("a key that a named model does not have is refused with the nearest it has") {
  const std::string problems =
      testing::problems_of({.text = llama_text(named_llama), .overrides = {{"model.atention", "fused"}}});
  check_says(problems, {"scenario: /model/atention: found an unknown key", "did you mean \"attention\"?"});
  check_says(problems_of_resnet({{"model.batch_per_gup", "4"}}), {"did you mean \"batch_per_gpu\"?"});
}

// hdr200 is 25 GB/s a NIC; the profile states eight of them.
TEST_CASE("NICs are counted however the profile lists them") {
  const LoadedScenario short_form = load_llama({{"cluster.machine.nics.count", "4"}});
  CHECK(short_form.cluster.machine.nics.size() == 4);
  CHECK(short_form.cluster.machine.nics.front().gpus == std::vector<std::int64_t>{0, 1});
  CHECK(text_of(short_form.changes) == "machine dgx_a100_80gb with nics.count 4 (8)");
  for (const std::string& name : shipped_machine_names()) {
    CAPTURE(name);
    const Overrides of_machine{{"cluster.machine", name}, {"model.precision", "fp32"}};
    const LoadedScenario whole = load_llama(of_machine);
    if (whole.cluster.machine.nics.empty())
      continue;
    Overrides of_one = of_machine;
    of_one.emplace_back("cluster.machine.nics.count", "1");
    const LoadedScenario one = load_llama(of_one);
    REQUIRE(one.cluster.machine.nics.size() == 1);
    CHECK(one.cluster.machine.nics.front().link.bandwidth ==
          whole.cluster.machine.nics.front().link.bandwidth);
    CHECK(one.cluster.machine.name == whole.cluster.machine.name);
  }
}

TEST_CASE("one NIC of a list is changed by its index, and one that is not there is refused") {
  const Overrides dgx1{{"cluster.machine", "dgx1_v100"}, {"model.precision", "fp32"}};
  Overrides faster = dgx1;
  faster.emplace_back("cluster.machine.nics.0.link.bandwidth", "50 GB/s");
  CHECK(load_llama(faster).cluster.machine.nics[0].link.bandwidth == Bandwidth{50'000'000'000});
  CHECK(load_llama(faster).cluster.machine.nics[1].link.bandwidth ==
        load_llama(dgx1).cluster.machine.nics[1].link.bandwidth);
  Overrides beyond = dgx1;
  beyond.emplace_back("cluster.machine.nics.99.link", "hdr200");
  check_says(testing::problems_of({.text = llama_text(named_llama), .overrides = beyond}),
             {"scenario: /cluster/machine/nics/99: found no such element"});
}

TEST_CASE("what is inside a named machine is opened by its own name") {
  const LoadedScenario scenario = load_llama({{"cluster.machine.gpu.memory", "40 GB"},
                                        {"cluster.machine.host.pcie.bandwidth", "10 GB/s"},
                                        {"cluster.fabric.oversubscription", "2"},
                                        {"cluster.nodes", "2"}});
  CHECK(scenario.cluster.gpu.memory == Bytes{40'000'000'000});
  CHECK(scenario.cluster.gpu.name == "a100_sxm_80gb");
  CHECK(scenario.cluster.machine.host.pcie->bandwidth == Bandwidth{10'000'000'000});
  CHECK(scenario.cluster.fabric.oversubscription == 2);
  CHECK(scenario.cluster.fabric.kind == load_llama({}).cluster.fabric.kind);
  check_says(text_of(scenario.changes),
             {"GPU a100_sxm_80gb with memory 40 GB (", "link pcie4_x16 with bandwidth 10 GB/s"});
}

TEST_CASE("a whole object takes the place of a name, and leaves nothing of what was named") {
  const LoadedScenario scenario =
      load_llama({{"cluster.machine.nics.link", R"({"bandwidth": "3 GB/s", "latency": "9 us"})"},
                  {"cluster.nodes", "2"}});
  CHECK(scenario.cluster.machine.nics.front().link.bandwidth == Bandwidth{3'000'000'000});
  CHECK(scenario.cluster.machine.nics.front().link.name.empty());
}

TEST_CASE("a key that a named machine does not have is refused by the scenario's name") {
  check_says(problems_of_resnet({{"cluster.machine.nics.cuont", "4"}}),
             {"scenario: /cluster/machine/nics/cuont: found an unknown key", "\"count\""});
  check_says(problems_of_resnet({{"cluster.machine.gpu.memry", "1 GB"}}),
             {"scenario: /cluster/machine/gpu/memry: found an unknown key", "\"memory\""});
}

TEST_CASE("names come first: what changes a machine changes the one that is named after it") {
  const Overrides in_order{{"cluster.machine", "dgx_h100"}, {"cluster.machine.nics.count", "2"}};
  const Overrides reversed{in_order[1], in_order[0]};
  for (const Overrides& overrides : {in_order, reversed}) {
    const LoadedScenario scenario = load_llama(overrides);
    CHECK(scenario.cluster.machine.name == "dgx_h100");
    CHECK(scenario.cluster.machine.nics.size() == 2);
  }
  CHECK(load_llama({{"model.attention", "unfused"}, {"model.name", "llama2_13b"}}).model.name ==
        "llama2_13b");
}

TEST_CASE("an anchor's other machine is changed as the scenario's is") {
  const std::string text =
      R"({"cluster": {"machine": "dgx_a100_80gb", "nodes": 2}, "training": {"strategy": "ddp"},
    "model": {"name": "resnet50", "batch_per_gpu": 64, "precision": "amp_fp16"},
    "compute": {"anchor": {"set": {"cluster.machine": "dgx_h100"}, "iteration_time": "50 ms"}}})";
  const LoadedScenario scenario = load({.text = text, .overrides = {{"cluster.machine.nics.count", "4"}}});
  const Scenario& there = scenario.compute.anchor->there.front();
  CHECK(there.cluster.machine.name == "dgx_h100");
  CHECK(there.cluster.machine.nics.size() == 4);
}

TEST_CASE("what a GPU whose kernels were timed states in vain is said") {
  for (const auto& [key, value] : {std::pair{"kernel_launch", "40 us"}, std::pair{"l2", "1 MiB"}})
    CHECK(warns_of(load_resnet({{std::string("cluster.machine.gpu.") + key, value}}),
                   std::string("cluster.machine.gpu.") + key + " changes nothing"));
  CHECK_FALSE(warns_of(load_resnet({{"cluster.machine.gpu.memory", "40 GB"}}), "changes nothing"));
}

TEST_CASE("a calibration of the machine as it was is said to be borrowed by the changed one") {
  CHECK(warns_of(load_resnet({{"cluster.machine.nics.count", "4"}}), "is borrowed"));
  CHECK_FALSE(warns_of(load_resnet({}), "is borrowed"));
  CHECK_FALSE(warns_of(load_resnet({{"cluster.machine.calibration", "dgx_h100"}}), "is borrowed"));
}

TEST_CASE("another machine's calibration is said to be that") {
  CHECK(
      warns_of(load_resnet({{"cluster.machine.calibration", "dgx_h100"}}), "fitted to the machine dgx_h100"));
  CHECK_FALSE(
      warns_of(load_resnet({{"cluster.machine.calibration", "a100_pcie_no_gdr"}}), "fitted to the machine"));
  CHECK_FALSE(warns_of(load_resnet({}), "fitted to the machine"));
}

TEST_CASE("the resolved scenario of a changed one is read back to the same") {
  const LoadedScenario changed = load_llama(
      {{"cluster.machine.nics.count", "4"}, {"model.attention", "unfused"}, {"cluster.nodes", "2"}});
  const LoadedScenario again = scenario_from(changed.resolved);
  CHECK(again.cluster.machine.nics.size() == 4);
  CHECK(again.model.model.layers.size() == changed.model.model.layers.size());
  CHECK(testing::contains(changed.cluster.machine.source, "changed: nics.count 4 (8)"));
  CHECK(changed.provenance["/cluster/machine/nics/count"] == "given");
}

TEST_CASE("times that a model states itself do not change in silence") {
  CHECK(warns_of(load_lab({{"model.batch_per_gpu", "2"}}), "model.batch_per_gpu is changed, but the times"));
  CHECK(warns_of(load_lab({{"model.precision", "fp16"}}), "stay as they are"));
  CHECK_FALSE(warns_of(load_lab({{"model.layers.0.forward_time", "1 ms"}}), "stay as they are"));
  CHECK_FALSE(warns_of(load_resnet({{"model.batch_per_gpu", "2"}}), "stay as they are"));
}

TEST_CASE("a calibration that the command line names holds whatever the library") {
  const LoadedScenario scenario = load_resnet(overrides_of({.calibration = "cpu_gloo"}));
  CHECK(scenario.cluster.calibration.name == "cpu_gloo");
  Overrides gloo = overrides_of({.calibration = "dgx_h100"});
  gloo.emplace_back("communication.library", "gloo");
  CHECK(load_resnet(gloo).cluster.calibration.name == "dgx_h100");
}

TEST_CASE("a profile's own mistakes are said of its own file") {
  const testing::Folder folder;
  const std::string machine = folder.write("box.json", R"({"name": "box", "gpu": "cpu", "gpsu": 1})");
  const std::string problems =
      problems_of_resnet({{"cluster.machine", machine}, {"cluster.machine.nics.count", "4"}});
  check_says(problems, {"box.json: ", "gpsu"});
  CHECK_FALSE(testing::contains(problems, "scenario: /cluster/machine/gpsu"));
}

TEST_CASE("a release is text as it was written: 2.10 is not 2.1") {
  const Scenario scenario =
      load_lab({{"communication.library", "nccl"},
                {"communication.library_version", "2.10"},
                {"training.framework_version", "1.10"}});
  CHECK(scenario.communication.library_version == 21'000);
  CHECK(scenario.training.framework_version == "1.10");
}

TEST_CASE("text that is no UTF-8 is refused, whatever the path") {
  for (const char* path : {"cluster.machine.nics.count", "cluster.machine", "model", "model.attention"})
    check_says(problems_of_resnet({{path, "\xff\xfe"}}), {"UTF-8"});
}

}  // namespace lockstep::overrides_test
