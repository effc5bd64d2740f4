#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/load/import/imported_machine.h"

namespace lockstep::nccl_log_test {

constexpr const char* kind = "nccl_log";
using Json = nlohmann::ordered_json;

// NVIDIA/nccl issue 1453, what is public of it: three nodes of eight H100, NCCL 2.20; a launcher puts its rank before
// each line.
const std::string three_nodes = topology_dump("three_nodes.txt");

// Choices that releases from 2.23 on print, as a public log of one node of eight H100 has them.
const std::string one_node = topology_dump("one_node.txt");

TEST_CASE("a log says who talks over what: release, ranks, rings, trees, channels and transports") {
  const Imported imported = import_text(kind, three_nodes);
  const Json& log = imported.document;
  CHECK(log["schema"] == "lockstep.nccl_log/1");
  CHECK(log["version"] == "2.20.5");
  CHECK(log["ranks"] == 24);
  CHECK(log["nodes"] == 3);
  CHECK(log["network"] == "IBext_v8");
  CHECK(log["channels"] == Json{{"coll", 16}, {"collnet", 16}, {"nvls", 0}, {"p2p", 16}});
  CHECK(log["rings"] ==
        Json{"05/16: 0 7 6 13 12 11 10 9 8 15 14 21", "06/16: 0 7 14 13 12 11 10 9 8 15 22 21"});
  CHECK(log["trees"] == 3);
  CHECK(log["transports"] == Json{{"NET/IBext_v8/GDRDMA", 2}, {"P2P/CUMEM", 1}});
  REQUIRE(log["choices"].size() == 1);
  CHECK(log["choices"][0]["algorithm"] == "tree");
  CHECK(log["choices"][0]["protocol"] == "ll");
  CHECK(log["choices"][0]["times"] == 2);
  CHECK(says(imported.report, "NCCL 2.20.5, 24 ranks on 3 nodes"));
}

TEST_CASE("releases that print names and channels, and those that print numbers, are both understood") {
  const Json log = import_text(kind, one_node).document;
  CHECK(log["nodes"] == 1);  // counted by hosts
  CHECK(log["environment"]["NCCL_ALGO"] == "Tree,Ring,,CollnetDirect,CollnetChain,NVLS");
  REQUIRE(log["choices"].size() == 3);
  CHECK(log["choices"][0]["collective"] == "all_gather");
  CHECK(log["choices"][0]["algorithm"] == "collnet");
  CHECK(log["choices"][0]["channels"] == 8);
  CHECK(log["choices"][0]["of_one_rank"] == true);
  CHECK(log["choices"][2]["algorithm"] == "nvls");
  CHECK(log["choices"][2]["channels"] == 16);
  CHECK(log["choices"][2]["of_one_rank"] == false);
}

TEST_CASE(
    "a choice whose collective is not printed is of the one that was called, or the one that is stated") {
  const std::string called =
      std::string(three_nodes) + "h:1:2 [0] NCCL INFO ReduceScatter: opCount 1 sendbuff 0x7f count 4\n";
  CHECK(import_text(kind, three_nodes).document["choices"][0]["collective"] == "");
  CHECK(import_text(kind, called).document["choices"][0]["collective"] == "reduce_scatter");
  const Imported stated =
      import_text(kind, three_nodes, {{"collective", "all_reduce"}, {"machine", "dgx_h100"}});
  CHECK(stated.document["choices"][0]["collective"] == "all_reduce");
  CHECK(stated.answered == std::vector<std::string>{"machine", "collective"});
}

TEST_CASE("lines of one communicator of which one does not say its nodes are of one communicator") {
  const std::string of_nodes =
      "h:1:1 [0] NCCL INFO comm 0x55 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0\n";
  const std::string complete =
      "h:1:1 [0] NCCL INFO ncclCommInitRank comm 0x55 rank 0 nranks 16 cudaDev 0 nvmlDev 0 busId 1 - Init "
      "COMPLETE\n";
  const std::string other =
      "h:1:1 [0] NCCL INFO ncclCommInitRank comm 0x77 rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 1 - Init "
      "COMPLETE\n";
  CHECK(import_text(kind, of_nodes + complete).warnings.empty());
  CHECK_FALSE(import_text(kind, of_nodes + complete + other).warnings.empty());
}

TEST_CASE("what is no log, or holds nonsense, is refused or passed over") {
  CHECK(says(refusal_of(kind, ""), "found an empty file"));
  CHECK(says(refusal_of(kind, std::string(100'000, 'x')), "found no line"));
  const std::string nonsense =
      std::string(three_nodes) +
      "a:1:2 [0] NCCL INFO 99999999999999999999999999 Bytes -> Algo 1 proto 2 time 1\n"
      "a:1:2 [0] NCCL INFO 8 Bytes -> Algo 77 proto 2 time 1\n"
      "a:1:2 [0] NCCL INFO 8 Bytes -> Algo\n"
      "a:1:2 [0] NCCL INFO Channel 00/99999999999 : 1 2 x\n"
      "a:1:2 [0] NCCL INFO " +
      std::string(1'000'000, 'y') +
      "\n"
      "a:1:2 [0] NCCL INFO 16 Bytes -> Algo 1 proto 2 time 1\n";
  const Json log = import_text(kind, nonsense).document;
  CHECK(log["choices"].size() == 2);
  CHECK(log["rings"].size() == 2);
}

TEST_CASE("names of strangers in a log are printed as text, and endless choices are counted") {
  std::string hostile = "NCCL version 2.18.3\n";
  hostile +=
      "a:1:2 [0] NCCL INFO Using network \xe2\x80\xae"
      "evil\n";
  for (int bytes = 0; bytes < 10'050; ++bytes)
    hostile += fmt::format("a:1:2 [0] NCCL INFO {} Bytes -> Algo 1 proto 2 time 1\n", bytes);
  const Imported imported = import_text(kind, hostile);
  CHECK(says(imported.report, "\\u202e"));
  CHECK(imported.document["choices"].size() == 10'000);
  CHECK(says(imported.warnings.at(0), "50 lines are left out"));
}

}  // namespace lockstep::nccl_log_test
