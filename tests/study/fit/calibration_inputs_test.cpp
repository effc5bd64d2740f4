#include "sim/study/fit/calibration_inputs.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/program.h"
#include "tests/support/scenarios.h"

namespace lockstep::calibration_inputs_test {

using testing::Folder;

const std::string csv_header = "size_bytes,time_us\n";

// 20 sizes from 8 B to 4 MiB; a run whose busbw rises throughout.
std::string csv_rows() {
  std::string text = csv_header;
  for (int power = 3; power < 23; ++power)
    text += std::to_string(1 << power) + "," + std::to_string(10 + (1 << power) / 20'000) + "\n";
  return text;
}

std::string device_line(int rank) {
  return "#  Rank  " + std::to_string(rank) + " Group  0 Pid  " + std::to_string(10 + rank) +
         " on   host device  " + std::to_string(rank) + " [0x07] Tesla V100-SXM2-16GB\n";
}

// Two ranks on one node.
std::string log_text() {
  return "./all_reduce_perf -b 8\nNCCL version 2.18.3+cuda12.1\n" + device_line(0) + device_line(1) +
         csv_rows();
}

CalibrationRequest request_of(const std::string& file, LogFacts facts = {}) {
  return {.files = {file}, .machine = "dgx1_v100", .facts = std::move(facts)};
}

LogFacts all_facts() {
  return {.collective = "all_gather", .nodes = 2, .gpus_per_node = 8};
}

CalibrationInputs read(const CalibrationRequest& request) {
  return read_calibration_inputs(request, shipped_profiles());
}

std::string refusal_of(const CalibrationRequest& request) {
  try {
    read(request);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

void check_refused(const CalibrationRequest& request, const std::vector<std::string>& says) {
  testing::check_says(refusal_of(request), says);
}

TEST_CASE("a log speaks for itself") {
  const Folder folder;
  const CalibrationInputs inputs = read(request_of(folder.write("a.log", log_text())));
  REQUIRE(inputs.tables.size() == 1);
  const MeasuredTable& table = inputs.tables.front();
  CHECK(table.op == CollectiveOp::all_reduce);
  CHECK(table.ranks() == 2);
  CHECK(table.library_version == "2.18.3");
  CHECK(table.rows.size() == 20);
  CHECK_FALSE(table.single_process);
  CHECK(inputs.profile == "dgx1_v100");
}

TEST_CASE("what a CSV does not say is said beside it") {
  const Folder folder;
  const std::string file = folder.write("a.csv", csv_rows());
  LogFacts facts = all_facts();
  facts.library_version = "2.12";
  facts.algorithm = "ring";
  facts.protocol = "simple";
  facts.is_single_process = true;
  const MeasuredTable table = read(request_of(file, facts)).tables.front();
  CHECK(table.op == CollectiveOp::all_gather);
  CHECK(table.nodes == 2);
  CHECK(table.gpus_per_node == 8);
  CHECK(table.library_version == "2.12");
  CHECK(table.algorithm == "ring");
  CHECK(table.protocol == "simple");
  CHECK(table.single_process);
  check_refused(request_of(file), {"--collective"});
  check_refused(request_of(file, {.collective = "all_gather"}), {"--gpus-per-node"});
}

TEST_CASE("what a log says is not overruled") {
  const Folder folder;
  const std::string file = folder.write("a.log", log_text());
  check_refused(request_of(file, {.collective = "all_gather"}), {"all_reduce", "--collective", "all_gather"});
  check_refused(request_of(file, {.nodes = 2}), {"1 nodes", "--nodes", "2 nodes"});
  check_refused(request_of(file, {.gpus_per_node = 8}), {"2 ranks", "--gpus-per-node", "8 ranks"});
  check_refused(request_of(file, {.library_version = "2.20"}), {"2.18.3", "--library-version", "2.20"});
  CHECK(refusal_of(request_of(file, {.collective = "allreduce", .gpus_per_node = 2})).empty());
}

// 20 sizes with the busbw of an operation whose factor this is; algbw is size over time.
std::string rows_with_factor(double factor) {
  std::string text = "size_bytes,time_us,algbw_gbs,busbw_gbs\n";
  for (int power = 3; power < 23; ++power) {
    const double time = 10 + (1 << power) / 20'000;
    const double algbw = (1 << power) / time / 1e3;
    text += fmt::format("{},{},{:.2f},{:.2f}\n", 1 << power, time, algbw, algbw * factor);
  }
  return text;
}

// 16 ranks: 2 x 15/16 = 1.875 and 15/16 = 0.9375.
TEST_CASE("a table without a name is of the collective that its busbw is of") {
  const Folder folder;
  const std::string reduced = folder.write("a.csv", rows_with_factor(1.875));
  const CalibrationInputs inputs = read(request_of(reduced, {.nodes = 2, .gpus_per_node = 8}));
  CHECK(inputs.tables.front().op == CollectiveOp::all_reduce);
  testing::check_says(inputs.notes.front(), {"a.csv: is taken for all_reduce"});
  const std::string gathered = folder.write("b.csv", rows_with_factor(0.9375));
  check_refused(request_of(gathered, {.nodes = 2, .gpus_per_node = 8}),
                {"b.csv: ", "all_gather, reduce_scatter, all_to_all", "--collective"});
  CHECK(refusal_of(request_of(gathered, all_facts())).empty());
  check_refused(request_of(reduced, {.nodes = 1, .gpus_per_node = 8}),
                {"1.875 times", "as nothing of 8 ranks prints"});
}

TEST_CASE("a collective that the figures contradict is refused with the line") {
  const Folder folder;
  const std::string file = folder.write("a.csv", rows_with_factor(1.875));
  CalibrationRequest request = request_of(file, all_facts());
  check_refused(request, {"a.csv:", "beside an algbw of", "as all_reduce of 16 ranks prints",
                          "expected 0.9375 times for all_gather"});
  request.accepts_broken_runs = true;
  CHECK(refusal_of(request).empty());
}

TEST_CASE("repeats of a run share their cell") {
  const Folder folder;
  CalibrationRequest request = request_of(folder.write("a.log", log_text()));
  request.files.push_back(folder.write("b.log", log_text()));
  const CalibrationInputs inputs = read(request);
  CHECK(inputs.tables[0].cell() == inputs.tables[1].cell());
  CHECK(inputs.tables[0].id != inputs.tables[1].id);
}

TEST_CASE("a broken run is refused with its sentence unless it is accepted") {
  const Folder folder;
  const std::string file = folder.write("bad.log", log_text() + "8388608,0\n");
  CalibrationRequest request = request_of(file);
  check_refused(request, {"bad.log: the run is broken: took 0 us at 8388608 B", "--accept-broken"});
  request.accepts_broken_runs = true;
  const CalibrationInputs inputs = read(request);
  CHECK(inputs.tables.front().rows.size() == 20);  // a row without a time is none
  CHECK(inputs.notes.front().find("took 0 us") != std::string::npos);
}

TEST_CASE("more GPUs than the machine has are refused with both numbers") {
  const Folder folder;
  const std::string file = folder.write("a.csv", csv_rows());
  LogFacts facts = all_facts();
  facts.gpus_per_node = 16;
  check_refused(request_of(file, facts), {"a.csv: found 16 GPUs on each node", "dgx1_v100 has 8"});
  check_refused(request_of(file, {.collective = "all_reduce", .nodes = 1, .gpus_per_node = 1}), {"one rank"});
}

TEST_CASE("too little to fit to is refused with what is missing") {
  const Folder folder;
  const std::string few = csv_header + "8,10\n1048576,50\n";
  check_refused(request_of(folder.write("few.csv", few), all_facts()), {"2 rows", "at least 12"});
  std::string small = csv_header;
  for (int row = 1; row <= 12; ++row) small += std::to_string(8 * row) + ",10\n";
  check_refused(request_of(folder.write("small.csv", small), all_facts()), {"no row of 1 MiB", "96 B"});
}

// 900 GB/s is the memory bandwidth of a V100: 4 MiB in 4.66 us. The table's 4 MiB take 219 us.
TEST_CASE("times in another unit are refused with what they would mean") {
  const Folder folder;
  std::string milliseconds = csv_header;
  std::string nanoseconds = csv_header;
  for (int power = 3; power < 23; ++power) {
    const int nanos = 10'000 + (1 << power) / 20;
    milliseconds += std::to_string(1 << power) + ",0.00" + std::to_string(nanos) + "\n";
    nanoseconds += std::to_string(1 << power) + "," + std::to_string(nanos) + "\n";
  }
  CalibrationRequest request = request_of(folder.write("ms.csv", milliseconds), all_facts());
  check_refused(request, {"ms.csv: ", "900 GB/s", "times in microseconds", "--accept-broken"});
  check_refused(request_of(folder.write("ns.csv", nanoseconds), all_facts()),
                {"ns.csv: 8 B take 1e+04 us", "times in microseconds"});
  request.accepts_broken_runs = true;
  CHECK(read(request).tables.size() == 1);
}

// A V100 of a DGX-1 has six NVLinks of 25 GB/s and PCIe 3 beside them: 8 MiB in 20 us are 419 GB/s, which its memory
// could read but its links not carry. Between two ranks an all-reduce moves its size once.
TEST_CASE("lines that are faster than the links are named one by one") {
  const Folder folder;
  const std::string file = folder.write("a.log", log_text() + "8388608,20\n16777216,400\n33554432,80\n");
  CalibrationRequest request = request_of(file);
  const std::string refusal = refusal_of(request);
  testing::check_says(refusal, {file + ":26: 8388608 B in 20 us", "419.4 GB/s", "1 x 2 GPUs of a dgx1_v100",
                                file + ":28: 33554432 B", "--accept-broken"});
  CHECK(refusal.find(":27:") == std::string::npos);
  request.accepts_broken_runs = true;
  CHECK(read(request).tables.front().rows.size() == 23);
}

TEST_CASE("a file that is given twice is refused, however it is spelled") {
  const Folder folder;
  const std::string file = folder.write("a.csv", csv_rows());
  CalibrationRequest request = request_of(file, all_facts());
  request.files.push_back(folder.path() + "/./a.csv");
  check_refused(request, {"./a.csv: is given twice"});
}

TEST_CASE("a log of another GPU than the machine's is noted with both") {
  const Folder folder;
  CalibrationRequest request = request_of(folder.write("a.log", log_text()));
  CHECK(read(request).notes.empty());
  request.machine = "dgx_h100";
  REQUIRE(read(request).notes.size() == 1);
  testing::check_says(read(request).notes.front(),
                      {"a.log: was measured on \"Tesla V100", "dgx_h100 has h100"});
}

TEST_CASE("whether a run is quick is said with its inputs") {
  const Folder folder;
  CalibrationRequest request = request_of(folder.write("a.log", log_text()));
  CHECK_FALSE(read(request).holds_nothing_out);
  request.holds_nothing_out = true;
  CHECK(read(request).holds_nothing_out);
}

TEST_CASE("facts that nobody can mean are refused by their option") {
  const Folder folder;
  const std::string file = folder.write("a.csv", csv_rows());
  const auto with = [&](auto change) {
    LogFacts facts = all_facts();
    change(facts);
    return request_of(file, facts);
  };
  check_refused(with([](LogFacts& facts) { facts.collective = "all_gatter"; }),
                {"--collective", "did you mean \"all_gather\""});
  check_refused(with([](LogFacts& facts) { facts.protocol = "simpel"; }),
                {"--protocol", "did you mean \"simple\""});
  check_refused(with([](LogFacts& facts) { facts.library_version = "new"; }),
                {"--library-version", "2.18.3"});
  check_refused(with([](LogFacts& facts) { facts.nodes = 0; }), {"--nodes", "found 0"});
  CalibrationRequest request = with([](LogFacts&) {});
  request.profile = "mine";
  check_refused(request, {"--profile"});
  request.profile.clear();
  request.machine = "cpu_gloo";
  check_refused(request, {"cpu_gloo", "Gloo"});
}

TEST_CASE("every file's problems are told at once") {
  const Folder folder;
  CalibrationRequest request = request_of(folder.path() + "/none.log");
  request.files.push_back(folder.write("a.csv", csv_rows()));
  check_refused(request, {"none.log: found no such file", "a.csv: the log does not say"});
}

TEST_CASE("lines that only resemble rows are noted with their place") {
  const Folder folder;
  const std::string file = folder.write("a.log", log_text() + "16777216,x\n");
  const std::vector<std::string> notes = read(request_of(file)).notes;
  REQUIRE(notes.size() == 1);
  CHECK(notes.front().starts_with(file + ":26: "));  // after 4 lines, a header and 20 rows
}

std::string entry(const std::string& id, const std::string& machine, const std::string& more) {
  return R"({"id": ")" + id + R"(", "file": "a.csv", "source": "here", "group": "g", "machine": ")" +
         machine + R"(", "collective": "all_reduce", "nodes": 1, "gpus_per_node": 8)" + more + "}";
}

TEST_CASE("an index gives the sound tables of the machine, or of one of its profiles") {
  const Folder folder;
  folder.write("a.csv", csv_rows());
  const std::string file =
      folder.write("index.json", R"({"schema": "lockstep.collective_tables/1", "tables": [)" +
                                     entry("one", "dgx1_v100", "") + "," + entry("other", "dgx_h100", "") +
                                     "," + entry("bad", "dgx1_v100", R"(, "healthy": false)") + "," +
                                     entry("tcp", "dgx1_v100", R"(, "profile": "v100_tcp")") + "]}");
  CalibrationRequest request = request_of(file);
  const CalibrationInputs all = read(request);
  REQUIRE(all.tables.size() == 2);
  CHECK(all.tables[1].profile == "dgx1_v100");
  CHECK(all.notes.front().find("1 table marked as not healthy") != std::string::npos);
  request.profile = "v100_tcp";
  const CalibrationInputs one = read(request);
  REQUIRE(one.tables.size() == 1);
  CHECK(one.tables.front().id == "tcp");
  CHECK(one.profile == "v100_tcp");
  request.profile = "v100_tcq";
  check_refused(
      request, {"index.json: found no table of dgx1_v100 and profile v100_tcq", "did you mean \"v100_tcp\""});
  request = request_of(file);
  request.machine = "dgx2_v100";
  check_refused(request, {"no table of dgx2_v100", "did you mean \"dgx1_v100\""});
  check_refused(request_of(file, {.collective = "all_reduce"}), {"--collective", "only indexes"});
}

}  // namespace lockstep::calibration_inputs_test
