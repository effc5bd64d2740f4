#include "sim/load/load.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/scenario/lab.h"

namespace lockstep::load_test {

using testing::Folder;
using testing::lab_text;
using testing::load_lab;
using testing::load_resnet;
using testing::problems_of;
using testing::problems_of_lab;
using testing::problems_of_resnet;

// One change of the lab that makes it invalid, and what its error must say.
struct BadChange {
  std::string path;
  std::string value;
  std::vector<std::string> says;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void check_refused(const std::vector<BadChange>& changes, std::string (*problems)(Overrides)) {
  for (const BadChange& change : changes) {
    const std::string found = problems({{change.path, change.value}});
    CAPTURE(change.path);
    CAPTURE(change.value);
    CAPTURE(found);
    CHECK(contains(found, "scenario: "));
    for (const std::string& part : change.says) {
      CHECK_MESSAGE(contains(found, part), part);
    }
  }
}

TEST_CASE("a request for a plan is no scenario, and it is said who answers it") {
  const std::string found =
      problems_of({.text = R"({"model": {"name": "resnet50"}, "goal": {"samples": 1}, "candidates": []})"});
  CHECK(found ==
        "scenario: found a request for a plan, expected a scenario; lockstep plan scenario answers it");
}

TEST_CASE("a misspelt key is an error that names its place and the nearest key") {
  check_refused(
      {{"clutser", "{}", {"/clutser: ", "unknown key", "\"cluster\""}},
       {"cluster.node", "2", {"/cluster/node: ", "unknown key", "\"nodes\""}},
       {"cluster.machine.gpuss", "2", {"/cluster/machine/gpuss: ", "\"gpus\""}},
       {"cluster.machine.gpu_links.kinds", "2", {"/cluster/machine/gpu_links/kinds: ", "\"kind\""}},
       {"cluster.machine.host", R"({"socket": 2})", {"/cluster/machine/host/socket: ", "\"sockets\""}},
       {"cluster.machine.nics.counts", "2", {"/cluster/machine/nics/counts: ", "\"count\""}},
       {"cluster.machine.nics.link.bandwith",
        "2",
        {"/cluster/machine/nics/link/bandwith: ", "\"bandwidth\""}},
       {"cluster.fabric", R"({"kind": "single_switch", "hop": 1})", {"/cluster/fabric/hop: ", "unknown key"}},
       {"cluster.stragglers", R"([{"rank": 0, "slowdown": 2, "slow": 1}])", {"/cluster/stragglers/0/slow: "}},
       {"model.layers.0.forward", "1", {"/model/layers/0/forward: ", "unknown key"}},
       {"model.batch_per_gp", "1", {"/model/batch_per_gp: ", "\"batch_per_gpu\""}},
       {"training.bucket_cap", "1", {"/training/bucket_cap: ", "\"bucket_cap_mb\""}},
       {"communication.chanels", "1", {"/communication/chanels: ", "\"channels\""}},
       {"compute.scales", "1", {"/compute/scales: ", "\"scale\""}},
       {"simulation.iteration", "1", {"/simulation/iteration: ", "\"iterations\""}}},
      problems_of_lab);
}

TEST_CASE("a misspelt name is an error with the nearest and the valid names") {
  check_refused(
      {{"cluster.machine",
        "dgx_a100_40g",
        {"/cluster/machine: ", "\"dgx_a100_40g\"", "no such machine", "\"dgx_a100_40gb\""}},
       {"cluster.machine.gpu",
        "h100_sxm_80g",
        {"/cluster/machine/gpu: ", "no such GPU", "\"h100_sxm_80gb\""}},
       {"cluster.machine.nics.link", "hdr20", {"/cluster/machine/nics/link: ", "no such link", "\"hdr200\""}},
       {"cluster.machine.calibration",
        "cpu_glo",
        {"/cluster/machine/calibration: ", "no such calibration", "\"cpu_gloo\""}},
       {"cluster.machine.calibration",
        R"({"core_share": 0.3})",
        {"/cluster/machine/calibration: ", "no calibration of its own", "\"based_on\""}},
       {"cluster.fabric", "fat_treee", {"/cluster/fabric: ", "no such fabric", "\"fat_tree\""}},
       {"cluster.fabric",
        R"({"kind": "fat_treee"})",
        {"/cluster/fabric/kind: ", "\"fat_tree\"", "single_switch"}},
       {"cluster.machine.gpu_links.kind", "nvswich", {"/cluster/machine/gpu_links/kind: ", "\"nvswitch\""}},
       {"cluster.machine.library", "glo", {"/cluster/machine/library: ", "\"gloo\"", "nccl, gloo, rccl"}},
       {"model",
        R"({"name": "resnet5", "batch_per_gpu": 1})",
        {"/model/name: ", "no such model", "\"resnet50\""}},
       {"model.precision", "fp61", {"/model/precision: ", "\"fp16\""}},
       {"training.strategy", "dpp", {"/training/strategy: ", "\"dpp\"", "\"ddp\"", "single"}},
       {"training.framework", "pytorch_dpp", {"/training/framework: ", "\"pytorch_ddp\""}},
       {"training.optimizer", "adamv", {"/training/optimizer: ", "\"adam\"", "lamb"}},
       {"training.compression", "fp15", {"/training/compression: ", "none, fp16, bf16, powersgd_R"}},
       {"communication.library", "mpi", {"/communication/library: ", "nccl, gloo, rccl"}},
       {"communication.algorithm", "rings", {"/communication/algorithm: ", "\"ring\"", "auto"}},
       {"communication.protocol", "ll12", {"/communication/protocol: ", "auto, ll, ll128, simple"}},
       {"simulation.fidelity", "steps", {"/simulation/fidelity: ", "\"step\"", "flow"}}},
      problems_of_lab);
}

// Which options and frameworks are right depends on the strategy.
TEST_CASE("a strategy that does not exist is one mistake, whatever stands beside it") {
  const std::string found = problems_of_lab(
      {{"training", R"({"strategy": "zero4", "framework": "deepspeed", "reduce_bucket_size": 1000000})"}});
  CHECK(contains(found, "/training/strategy: found \"zero4\""));
  CHECK(contains(found, "\"zero1\""));
  CHECK_FALSE(contains(found, "\n"));
}

TEST_CASE("a wrong unit, a bare number and a number out of range are errors with what is valid") {
  check_refused(
      {{"cluster.machine.nics.link.bandwidth",
        "0.124",
        {"/cluster/machine/nics/link/bandwidth: ", "0.124", "450 GB/s"}},
       {"cluster.machine.nics.link.bandwidth",
        "1 ms",
        {"/cluster/machine/nics/link/bandwidth: ", "measures a time"}},
       {"cluster.machine.nics.link.bandwidth",
        "1 Gbps",
        {"/cluster/machine/nics/link/bandwidth: ", "ambiguous"}},
       {"cluster.machine.nics.link.bandwidth",
        "0 GB/s",
        {"/cluster/machine/nics/link/bandwidth: ", "at least 1 B/s"}},
       {"cluster.machine.nics.link.bandwidth",
        "4000 TB/s",
        {"/cluster/machine/nics/link/bandwidth: ", "1 PB/s"}},
       {"cluster.machine.nics.link.nccl_bandwidth",
        "4000 TB/s",
        {"/cluster/machine/nics/link/nccl_bandwidth: ", "1 PB/s"}},
       {"cluster.machine.nics.link.latency",
        "2 days",
        {"/cluster/machine/nics/link/latency: ", "at most 100 s"}},
       {"model.layers.0.forward_time", "8.3", {"/model/layers/0/forward_time: ", "8.3", "3 us"}},
       {"model.layers.0.forward_time", "-1 ms", {"/model/layers/0/forward_time: ", "not negative"}},
       {"model.layers.0.backward_time", "100 days", {"/model/layers/0/backward_time: ", "53 days"}},
       {"compute.single_gpu_iteration", "0.1", {"/compute/single_gpu_iteration: ", "0.1", "3 us"}},
       {"compute.single_gpu_iteration", "0 s", {"/compute/single_gpu_iteration: ", "above zero"}},
       {"compute.scale", "0", {"/compute/scale: ", "found 0", "a number from"}},
       {"compute.slowdown_during_communication",
        "0.9",
        {"/compute/slowdown_during_communication: ", "from 1 to 100"}},
       {"training.bucket_cap_mb",
        "0",
        {"/training/bucket_cap_mb: ", "found 0", "from 0.001 to 1000000 (MiB)"}},
       {"training.bucket_cap_mb", "\"25 MiB\"", {"/training/bucket_cap_mb: ", "\"25 MiB\"", "MiB"}},
       {"training.first_bucket_mb", "-1", {"/training/first_bucket_mb: ", "found -1"}},
       {"training.gradient_accumulation", "0", {"/training/gradient_accumulation: ", "from 1 to 1000000"}},
       {"training.framework_version", "two", {"/training/framework_version: ", "\"two\"", "\"2.8\""}},
       {"training.framework_version", "true", {"/training/framework_version: ", "found true", "a string"}},
       {"training.static_graph", "yes", {"/training/static_graph: ", "\"yes\"", "true or false"}},
       {"communication.collectives_in_flight",
        "0",
        {"/communication/collectives_in_flight: ", "from 1 to 64"}},
       {"communication.channels", "65", {"/communication/channels: ", "from 1 to 64"}},
       {"simulation.iterations", "0", {"/simulation/iterations: ", "from 1 to 100000"}},
       {"simulation.seed", "-1", {"/simulation/seed: ", "found -1"}},
       {"model.batch_per_gpu", "-8", {"/model/batch_per_gpu: ", "found -8"}},
       {"model.batch_per_gpu", "8.5", {"/model/batch_per_gpu: ", "found 8.5", "an integer"}},
       {"model.layers.0.parameters", "[0]", {"/model/layers/0/parameters/0: ", "found 0"}},
       {"cluster.machine.gpus", "0", {"/cluster/machine/gpus: ", "found 0", "from 1 to 256"}},
       {"cluster.stragglers",
        R"([{"rank": 4, "slowdown": 2}])",
        {"/cluster/stragglers/0/rank: ", "found 4", "from 0 to 3"}},
       {"cluster.stragglers",
        R"([{"rank": 1, "slowdown": 0.5}])",
        {"/cluster/stragglers/0/slowdown: ", "from 1 to 1000"}},
       {"cluster.stragglers", R"([{"slowdown": 2}])", {"/cluster/stragglers/0: ", "either rank or fraction"}},
       {"cluster.stragglers",
        R"([{"rank": 1, "probability": 0.1, "slowdown": 2}])",
        {"/cluster/stragglers/0: ", "either rank or fraction or probability"}},
       {"cluster.stragglers",
        R"([{"probability": 1.5, "slowdown": 2}])",
        {"/cluster/stragglers/0/probability: ", "from 0 to 1"}},
       {"cluster.jitter",
        R"({"distribution": "normal", "coefficient_of_variation": 0.1})",
        {"/cluster/jitter/distribution: ", "\"normal\"", "lognormal"}},
       {"cluster.jitter",
        R"({"distribution": "gamma", "coefficient_of_variation": 1.5})",
        {"/cluster/jitter/coefficient_of_variation: ", "from 0 to 1"}},
       {"cluster.jitter",
        R"({"distribution": "none", "coefficient_of_variation": 0.1})",
        {"/cluster/jitter/coefficient_of_variation: ", "expected lognormal or gamma"}},
       {"communication.timeout", "0 s", {"/communication/timeout: ", "above zero"}},
       {"communication.timeout", "5", {"/communication/timeout: ", "3 us"}},
       {"cluster.slow_links",
        R"([{"node": 4, "slowdown": 2}])",
        {"/cluster/slow_links/0/node: ", "found 4", "from 0 to 3"}},
       {"cluster.slow_links",
        R"([{"node": 1, "nic": 1, "slowdown": 2}])",
        {"/cluster/slow_links/0/nic: ", "found 1", "from 0 to 0"}},
       {"cluster.slow_links",
        R"([{"node": 1, "slowdown": 0.5}])",
        {"/cluster/slow_links/0/slowdown: ", "from 1 to 1000"}}},
      problems_of_lab);
}

TEST_CASE("a value of the wrong type is an error where it stands") {
  check_refused({{"cluster", "[]", {"/cluster: ", "an object"}},
                 {"cluster.machine", "3", {"/cluster/machine: ", "found 3", "a path or an object"}},
                 {"cluster.machine.gpu", "[]", {"/cluster/machine/gpu: ", "a path or an object"}},
                 {"cluster.machine.nics", "7", {"/cluster/machine/nics: ", "an array"}},
                 {"cluster.stragglers", "{}", {"/cluster/stragglers: ", "an array"}},
                 {"model", "[]", {"/model: ", "an object"}},
                 {"model.layers", "{}", {"/model/layers: ", "an array"}},
                 {"training", "1", {"/training: ", "an object"}},
                 {"compute.anchor", "1", {"/compute/anchor: ", "an object"}}},
                problems_of_lab);
}

TEST_CASE("what cannot be cut is refused by name") {
  check_refused({{"training.tensor_parallel", "2", {"tensor parallelism can split"}}}, problems_of_lab);
}

TEST_CASE("counts that do not fit the machine are errors that name both") {
  check_refused(
      {{"cluster.nodes", "1000000000000", {"/cluster/nodes: ", "1000000000000", "from 1 to 1000000"}},
       {"cluster.nodes", "-1", {"/cluster/nodes: ", "found -1"}},
       {"cluster.nodes", "0", {"/cluster/nodes: ", "found 0"}},
       {"cluster.gpus_per_node", "2", {"/cluster/gpus_per_node: ", "found 2", "machine lab has 1 GPUs"}},
       {"cluster.gpus_per_node", "0", {"/cluster/gpus_per_node: ", "found 0"}},
       {"cluster.machine.nics", "[]", {"/cluster/nodes: ", "found 4", "no NICs"}},
       {"training.strategy", "single", {"/training/strategy: ", "\"single\"", "4 ranks", "ddp"}}},
      problems_of_lab);
  check_refused(
      {{"cluster.gpus_per_node", "9", {"/cluster/gpus_per_node: ", "found 9", "dgx_a100_40gb has 8 GPUs"}},
       {"cluster.nodes", "200000", {"/cluster/nodes: ", "1600000 ranks", "at most 1000000"}}},
      problems_of_resnet);
}

TEST_CASE("a batch that contradicts itself is an error with both numbers") {
  // 3 micro-batches of 2 on 4 ranks make 24.
  const Overrides batch{{"model.batch_per_gpu", "2"}, {"training.gradient_accumulation", "3"}};
  Overrides wrong = batch;
  wrong.emplace_back("training.global_batch", "23");
  const std::string found = problems_of_lab(wrong);
  CHECK(contains(found, "/training/global_batch: found 23"));
  CHECK(contains(found, "= 24"));
  Overrides right = batch;
  right.emplace_back("training.global_batch", "24");
  CHECK(problems_of_lab(right).empty());
  CHECK(contains(problems_of_lab({{"training.data_parallel", "3"}}), "/training/data_parallel: found 3"));
}

TEST_CASE("a batch may be left out only where every time is stated") {
  CHECK(load_lab().model.batch_per_gpu == 1);
  CHECK(contains(problems_of_resnet({{"model.batch_per_gpu", "null"}}), "/model"));
}

TEST_CASE("all mistakes of the scenario are reported together") {
  const std::string found = problems_of_lab({{"cluster.node", "1"},
                                             {"model.precision", "fp61"},
                                             {"training.bucket_cap_mb", "0"},
                                             {"simulation.seed", "-1"}});
  for (const char* place :
       {"/cluster/node: ", "/model/precision: ", "/training/bucket_cap_mb: ", "/simulation/seed: "}) {
    CHECK(contains(found, place));
  }
}

TEST_CASE("one mistake is one line") {
  for (const BadChange& change : std::vector<BadChange>{{"compute.single_gpu_iteration", "fast", {}},
                                                        {"cluster.machine", "dgx_a100", {}},
                                                        {"cluster.machine.gpu", "a101", {}},
                                                        {"cluster.nodes", "0", {}},
                                                        {"model.batch_per_gpu", "0", {}},
                                                        {"model.batch_per_gpu", "9000000000000", {}},
                                                        {"model.layers.0.parameters", "7", {}}}) {
    const std::string found = problems_of_lab({{change.path, change.value}});
    CAPTURE(found);
    CHECK_FALSE(contains(found, "\n"));
  }
}

TEST_CASE("mistakes of a profile are reported with its own file beside those of the scenario") {
  const Folder folder;
  const std::string link = folder.write("slow.json", R"({"bandwidth": "1", "latncy": "1 us"})");
  const std::string found =
      problems_of_lab({{"cluster.machine.nics.link", link}, {"training.bucket_cap_mb", "0"}});
  CHECK(contains(found, link + ": /bandwidth: "));
  CHECK(contains(found, link + ": /latncy: "));
  CHECK(contains(found, "scenario: /training/bucket_cap_mb: "));
}

TEST_CASE("a file that is missing, empty, cut off, binary or too deep is an error that names it") {
  const Folder folder;
  const std::string deep = std::string(10'000, '[') + std::string(10'000, ']');
  const std::vector<std::string> texts{"",
                                       lab_text.substr(0, lab_text.size() / 2),
                                       std::string("\x7f"
                                                   "ELF\0\1\2",
                                                   7),
                                       deep,
                                       R"({"name": "x", "name": "y"})",
                                       "[]",
                                       "null",
                                       "7"};
  for (const std::string& text : texts) {
    const std::string file = folder.write("scenario.json", text);
    CAPTURE(text.substr(0, 40));
    CHECK(problems_of({.path = file}).starts_with(file + ":"));
  }
  CHECK(contains(problems_of({.path = folder.path() + "/none.json"}), "none.json"));
  CHECK(contains(problems_of({.path = folder.path()}), folder.path()));
}

TEST_CASE("an override that leads nowhere is an error that shows it") {
  CHECK(contains(problems_of_lab({{"name.x", "1"}}), "--set name.x=1"));
  CHECK(contains(problems_of_lab({{"model.layers.7.name", "1"}}), "--set model.layers.7.name=1"));
  CHECK(contains(problems_of_lab({{"", "1"}}), "--set"));
}

TEST_CASE("the contract's example loads with what it says and with PyTorch's defaults") {
  const LoadedScenario scenario = load_resnet();
  CHECK(scenario.name == "ResNet-50 DDP on two DGX A100");
  CHECK(scenario.cluster.ranks() == 2 * 8);
  CHECK(scenario.cluster.machine.nics.size() == 8);
  CHECK(scenario.cluster.gpu.name == "a100_sxm_40gb");
  CHECK(scenario.model.batch_per_gpu == 256);
  CHECK(scenario.model.precision == Precision::amp_fp16);
  CHECK(parameter_count(scenario.model.model) == 25'557'032);  // torchvision's resnet50
  CHECK(scenario.compute.single_gpu_iteration == Duration::microseconds(103'600));
  CHECK(scenario.simulation.fidelity == Fidelity::flow);
}

TEST_CASE("the laboratory of CPU hosts loads with Gloo's rules") {
  const LoadedScenario scenario = load_lab();
  CHECK(scenario.cluster.ranks() == 4);
  CHECK(scenario.cluster.gpu.name == "cpu");
  CHECK(scenario.communication.library == LibraryKind::gloo);
  CHECK(scenario.communication.collectives_in_flight == 2);
  CHECK(scenario.cluster.machine.nics.front().link.bandwidth == Bandwidth{124'000'000});
  CHECK(scenario.cluster.machine.nics.front().link.latency == Duration::microseconds(100));
  CHECK(scenario.cluster.fabric.kind == "single_switch");
  CHECK(scenario.cluster.calibration.name == "cpu_gloo");
  REQUIRE(scenario.warnings.size() == 1);
  CHECK(scenario.warnings.front() == "machine lab is uncalibrated: using cpu_gloo");
}

TEST_CASE("an override replaces, adds and takes back") {
  CHECK(load_lab({{"cluster.nodes", "2"}}).cluster.nodes == 2);
  CHECK(load_lab({{"training.bucket_cap_mb", "50"}}).training.ddp.bucket_cap == Bytes{50 * mebi});
  CHECK(load_lab({{"cluster.nodes", "null"}}).cluster.nodes == 1);
  CHECK(load_lab({{"cluster.machine.nics.link", "hdr200"}}).cluster.machine.nics.front().link.name ==
        "hdr200");
}

TEST_CASE("the request's fidelity and folding beat the scenario's") {
  LoadRequest request{.text = lab_text, .fold = false, .fidelity = Fidelity::step};
  request.overrides = {{"simulation.fidelity", "flow"}};
  const LoadedScenario scenario = load(request);
  CHECK(scenario.simulation.fidelity == Fidelity::step);
  CHECK_FALSE(scenario.simulation.fold);
}

TEST_CASE("a path is found from the working directory or beside the scenario") {
  const Folder folder;
  folder.write("links/wire.json", R"({"name": "wire", "bandwidth": "5 GB/s", "latency": "1 us"})");
  const std::string file = folder.write("scenario.json", lab_text);
  const LoadedScenario scenario =
      load({.path = file, .overrides = {{"cluster.machine.nics.link", "links/wire.json"}}});
  CHECK(scenario.cluster.machine.nics.front().link.name == "wire");
  const std::string missing = problems_of({.path = file, .overrides = {{"cluster.machine", "no.json"}}});
  CHECK(contains(missing, file + ": /cluster/machine: "));
  CHECK(contains(missing, "no such file"));
}

TEST_CASE("a scenario that is already JSON loads like its text, and its overrides leave it alone") {
  const ProfileStore store;
  const auto value = nlohmann::ordered_json::parse(lab_text);
  const LoadedScenario changed = load_value(value, {.store = store, .overrides = {{"cluster.nodes", "2"}}});
  CHECK(changed.cluster.nodes == 2);
  CHECK(load_value(value, {.store = store}).cluster.nodes == 4);
}

TEST_CASE("an anchor is kept as it was read, and its own changes are checked") {
  const LoadedScenario scenario = load_lab(
      {{"compute.anchor", R"({"set": {"cluster.nodes": 1, "name": "alone"}, "iteration_time": "0.41 s"})"}});
  REQUIRE(scenario.compute.anchor.has_value());
  CHECK(scenario.compute.anchor->iteration_time == Duration::milliseconds(410));
  const Overrides expected{{"cluster.nodes", "1"}, {"name", "\"alone\""}};
  CHECK(scenario.compute.anchor->set == expected);
  const std::string found =
      problems_of_lab({{"compute.anchor", R"({"set": {"cluster.nodez": 1}, "iteration_time": "1 s"})"}});
  CHECK(contains(found, "/compute/anchor/set"));
  CHECK(contains(found, "/cluster/nodez"));
}

}  // namespace lockstep::load_test
