// Sweeps of a lab of two hosts: the same bytes whatever the threads, kills and shards.

#include "sim/study/answers/sweep.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/base/error.h"
#include "sim/study/answers/sweep_shard.h"
#include "sim/study/answers/sweep_text.h"
#include "tests/support/scenarios.h"

namespace lockstep::sweep_test {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Removed with everything in it when the test ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "lockstep-sweep-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { fs::remove_all(path_); }

  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line + "\n");
  }
  return lines;
}

// Of a journal: lines that hold a cell, not what the sweep is or what was read for it.
std::size_t count_cells(const std::string& journal) {
  const std::vector<std::string> lines = lines_of(journal);
  return static_cast<std::size_t>(std::count_if(
      lines.begin(), lines.end(), [](const std::string& line) { return line.starts_with('['); }));
}

const char* const lab_text = R"({
  "name": "lab",
  "cluster": {"nodes": 2, "machine": {"name": "lab", "source": "test", "gpu": "cpu", "gpus": 1,
      "gpu_links": {"kind": "none"}, "library": "gloo",
      "nics": {"count": 1, "link": {"bandwidth": "0.125 GB/s", "latency": "100 us"}}}},
  "model": {"layers": [
    {"name": "first", "parameters": [3000000], "forward_time": "2 ms", "backward_time": "4 ms"},
    {"name": "second", "parameters": [1000000, 1000], "forward_time": "2 ms", "backward_time": "4 ms"}]},
  "training": {"strategy": "ddp", "bucket_cap_mb": 25}
})";

SweepOptions lab_sweep(const std::vector<std::string>& varied, const std::string& output = "") {
  return {.base = {.text = lab_text, .data_directory = LOCKSTEP_SOURCE_DIR},
          .grid = SweepGrid::parse(varied),
          .jobs = 2,
          .output = output};
}

const std::vector<std::string> twelve_cells{"cluster.nodes=2,3,5", "training.bucket_cap_mb=1:8:x2"};

// Fails as a full disk or a kill would: after this many cells.
struct Killed {};

void kill_after(SweepOptions options, std::size_t cells) {
  options.jobs = 1;
  options.on_progress = [cells](std::size_t finished, std::size_t) {
    if (finished >= cells) {
      throw Killed{};
    }
  };
  CHECK_THROWS_AS(sweep(options), Killed);
}

std::string message_of(const SweepOptions& options) {
  try {
    sweep(options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("A cell says what predict says of the same scenario") {
  const SweepTable table = sweep(lab_sweep({"training.bucket_cap_mb=1,25"}));
  REQUIRE(table.rows.size() == 2);
  for (std::size_t place = 0; place < table.rows.size(); ++place) {
    const SweepRow row = table.rows[place];
    const std::string cap = table.grid.values_at(row.cell).front().dump();
    const Report report = predict(load({.text = lab_text,
                                        .overrides = {{"training.bucket_cap_mb", cap}},
                                        .data_directory = LOCKSTEP_SOURCE_DIR}))
                              .report;
    CHECK(row.results[find_goal("iteration_time_s", false).key] == report.iteration.in_seconds());
    CHECK(row.results[find_goal("communication.bytes_per_gpu", false).key] ==
          report.communication.bytes_per_gpu.count());
  }
}

TEST_CASE("The columns are the varied paths, the scalars of a result, and the error") {
  const std::string csv = to_csv(sweep(lab_sweep({"cluster.nodes=2", "training.bucket_cap_mb=1"})));
  const std::string header = lines_of(csv).front();
  CHECK(header.starts_with("cluster.nodes,training.bucket_cap_mb,iteration_time_s,iteration_time_low_s,"));
  CHECK(header.ends_with(",error\n"));
  for (const char* key :
       {"iteration_time_high_s", "first_iteration_time_s", "samples_per_s", "tokens_per_s",
        "scaling_efficiency", "mfu", "breakdown_s.forward", "breakdown_s.exposed_communication",
        "communication.bytes_per_gpu", "communication.total_s", "communication.overlapped_s",
        "memory_bytes.total", "memory_bytes.fits"}) {
    CAPTURE(key);
    CHECK(contains(header, std::string(",") + key + ","));
  }
}

TEST_CASE("Any number of threads gives the same bytes") {
  const TemporaryFolder folder;
  std::vector<std::string> texts;
  for (const int jobs : {1, 2, 4, 9}) {
    SweepOptions options = lab_sweep(twelve_cells, folder.file("out.csv"));
    options.jobs = jobs;
    sweep(options);
    texts.push_back(read_file(folder.file("out.csv")));
    CHECK(texts.back() == texts.front());
  }
  CHECK(lines_of(texts.front()).size() == 1 + 12);
}

TEST_CASE("After a kill a sweep goes on where it was, to the same bytes") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.csv");
  const std::string whole = to_csv(sweep(lab_sweep(twelve_cells)));
  kill_after(lab_sweep(twelve_cells, output), 5);
  CHECK_FALSE(fs::exists(output));
  CHECK(count_cells(read_file(output + ".partial")) == 5);

  SweepOptions resumed = lab_sweep(twelve_cells, output);
  resumed.resume = true;
  std::atomic<std::size_t> calls = 0;
  resumed.on_progress = [&](std::size_t, std::size_t) { ++calls; };
  sweep(resumed);
  CHECK(calls == 12 - 5);
  CHECK(read_file(output) == whole);
  CHECK_FALSE(fs::exists(output + ".partial"));
}

TEST_CASE("A line torn by the kill is a cell that was not finished") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.csv");
  const std::string whole = to_csv(sweep(lab_sweep(twelve_cells)));
  kill_after(lab_sweep(twelve_cells, output), 4);
  const std::string journal = read_file(output + ".partial");
  const std::size_t header = lines_of(journal).front().size();
  SweepOptions resumed = lab_sweep(twelve_cells, output);
  resumed.resume = true;
  for (const std::size_t kept :
       {std::size_t{0}, std::size_t{7}, header, header + 1, journal.size() - 9, journal.size() - 1}) {
    CAPTURE(kept);
    write_file(output + ".partial", journal.substr(0, kept));
    sweep(resumed);
    CHECK(read_file(output) == whole);
  }
}

TEST_CASE("A line that no sweep wrote, and all after it, are cells that were not finished") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.csv");
  const std::string whole = to_csv(sweep(lab_sweep(twelve_cells)));
  kill_after(lab_sweep(twelve_cells, output), 4);
  const std::string journal = read_file(output + ".partial");
  SweepOptions resumed = lab_sweep(twelve_cells, output);
  resumed.resume = true;
  for (const char* line :
       {R"({"file": 1, "fingerprint": "x"})", R"({"file": "x"})", R"({})", "7", "[12,[],\"\"]", "[1,[],\"\"]",
        "[18446744073709551615,[],\"\"]", "[-1,[],\"\"]", "[1e300,[],\"\"]"}) {
    CAPTURE(line);
    write_file(output + ".partial", journal + line + "\n");
    sweep(resumed);
    CHECK(read_file(output) == whole);
  }
}

TEST_CASE("Cells of another sweep are never taken") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.csv");
  kill_after(lab_sweep(twelve_cells, output), 3);
  SweepOptions other_grid = lab_sweep({"cluster.nodes=2,3,5", "training.bucket_cap_mb=1:16:x2"}, output);
  SweepOptions other_scenario = lab_sweep(twelve_cells, output);
  other_scenario.base.overrides = {{"training.optimizer", "adam"}};
  SweepOptions other_shard = lab_sweep(twelve_cells, output);
  other_shard.shard = {1, 2};
  SweepOptions other_fidelity = lab_sweep(twelve_cells, output);
  other_fidelity.base.fidelity = Fidelity::step;
  for (SweepOptions* options : {&other_grid, &other_scenario, &other_shard, &other_fidelity}) {
    options->resume = true;
    CHECK(contains(message_of(*options), "out.csv.partial: is of another sweep"));
  }
  CHECK(count_cells(read_file(output + ".partial")) == 3);
}

TEST_CASE("Finished cells are dropped only where that is asked for") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.csv");
  kill_after(lab_sweep(twelve_cells, output), 3);
  const std::string before = read_file(output + ".partial");
  SweepOptions other = lab_sweep({"cluster.nodes=2"}, output);
  CHECK(contains(message_of(other), "--resume goes on with those of this sweep, --discard begins again"));
  CHECK(read_file(output + ".partial") == before);
  other.discard = true;
  CHECK(message_of(other).empty());
  CHECK(lines_of(read_file(output)).size() == 1 + 1);
  CHECK_FALSE(fs::exists(output + ".partial"));
}

TEST_CASE("A file beside the output that is no journal is nobody's to delete") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.csv");
  write_file(output + ".partial", "my notes\n");
  SweepOptions fresh = lab_sweep(twelve_cells, output);
  SweepOptions resumed = fresh;
  resumed.resume = true;
  for (const SweepOptions& options : {fresh, resumed}) CHECK_FALSE(message_of(options).empty());
  CHECK(read_file(output + ".partial") == "my notes\n");
}

TEST_CASE("Finished cells are never written through a link") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.csv");
  write_file(folder.file("victim"), "precious\n");
  fs::create_symlink(folder.file("victim"), output + ".partial");
  SweepOptions fresh = lab_sweep(twelve_cells, output);
  fresh.discard = true;
  CHECK(contains(message_of(fresh), "out.csv.partial: is a link"));
  CHECK(read_file(folder.file("victim")) == "precious\n");
}

// The lab's host as a file of its own, which every second cell reads.
std::string host_profile(const std::string& bandwidth) {
  return R"({"name": "slow", "source": "ours", "gpu": "cpu", "gpus": 1, "gpu_links": {"kind": "none"}, "nics":
    {"count": 1, "link": {"bandwidth": ")" +
         bandwidth + R"(", "latency": "100 us"}}, "library": "gloo"})";
}

TEST_CASE("Cells are not taken from before a file changed that any of them read") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.csv");
  const std::string machine = folder.file("slow.json");
  write_file(machine, host_profile("0.1 GB/s"));
  const SweepOptions options =
      lab_sweep({"cluster.machine=cpu_gloo," + machine, "cluster.nodes=2:5:+1"}, output);
  kill_after(options, 6);  // the second machine is read from the fifth cell on
  SweepOptions resumed = options;
  resumed.resume = true;
  write_file(machine, host_profile("0.01 GB/s"));
  CHECK(contains(message_of(resumed), "holds cells that read " + machine + ", which has changed since"));
  write_file(machine, host_profile("0.1 GB/s") + "\n");  // the same, spaced otherwise
  CHECK(message_of(resumed).empty());
}

TEST_CASE("A calibration named on the command line is among the files that cells read") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.csv");
  const std::string calibration = folder.file("mine.json");
  const ordered_json shipped =
      ordered_json::parse(read_file(LOCKSTEP_SOURCE_DIR "/hw_profiles/calibration/cpu_gloo.json"));
  write_file(calibration, shipped.dump());
  SweepOptions options = lab_sweep(twelve_cells, output);
  options.base.overrides = overrides_of({.calibration = calibration});
  kill_after(options, 2);
  options.resume = true;
  ordered_json changed = shipped;
  changed["source"] = "measured again";
  write_file(calibration, changed.dump());
  CHECK(contains(message_of(options), "holds cells that read " + calibration + ", which has changed since"));
  write_file(calibration, shipped.dump());
  CHECK(message_of(options).empty());
}

TEST_CASE("Shards together are the whole") {
  const std::vector<std::string> whole = lines_of(to_csv(sweep(lab_sweep(twelve_cells))));
  const std::size_t count = 5;
  std::vector<std::string> merged(whole.size());
  merged[0] = whole[0];
  for (std::size_t index = 1; index <= count; ++index) {
    SweepOptions options = lab_sweep(twelve_cells);
    options.shard = {index, count};
    const std::vector<std::string> lines = lines_of(to_csv(sweep(options)));
    CHECK(lines[0] == whole[0]);
    for (std::size_t row = 1; row < lines.size(); ++row) {
      merged[index + (row - 1) * count] = lines[row];
    }
  }
  CHECK(merged == whole);
}

TEST_CASE("A mistake in one cell is its error, and the others go on") {
  const SweepTable table = sweep(lab_sweep({"training.bucket_cap_mb=1,-1,25"}));
  CHECK(table.rows[0].error.empty());
  CHECK(contains(table.rows[1].error,
                 "scenario with training.bucket_cap_mb=-1: /training/bucket_cap_mb: found -1"));
  CHECK(table.rows[2].error.empty());
  CHECK_FALSE(table.is_all_errors());
  const std::string line = lines_of(to_csv(table))[2];
  CHECK(line.starts_with("-1,,,,"));
  CHECK(to_json(table, SweepRanking(table, {}))["rows"][1]["iteration_time_s"].is_null());
}

TEST_CASE("A path that no scenario has is an error of every cell, with the nearest name") {
  const SweepTable table = sweep(lab_sweep({"training.bucket_cap_mbs=1,25"}));
  CHECK(table.is_all_errors());
  CHECK(contains(table.rows[0].error, "did you mean \"bucket_cap_mb\""));
}

TEST_CASE("An output that cannot be written is refused before anything runs") {
  const TemporaryFolder folder;
  for (const std::string& output : {folder.file("none/out.csv"), folder.file("")}) {
    SweepOptions options = lab_sweep(twelve_cells, output);
    bool has_run = false;
    options.on_progress = [&](std::size_t, std::size_t) { has_run = true; };
    CHECK(contains(message_of(options), "cannot be written"));
    CHECK_FALSE(has_run);
  }
}

TEST_CASE("Fields are quoted as RFC 4180 has it") {
  CHECK(csv_field("plain text") == "plain text");
  CHECK(csv_field("a,b") == "\"a,b\"");
  CHECK(csv_field("say \"ring\"") == "\"say \"\"ring\"\"\"");
  CHECK(csv_field("two\nlines") == "\"two\nlines\"");
}

TEST_CASE("A spreadsheet computes no field, and numbers stay numbers") {
  CHECK(csv_field("=1+2") == "'=1+2");
  CHECK(csv_field("+cmd|' /C calc'!A0") == "'+cmd|' /C calc'!A0");
  CHECK(csv_field("@SUM(A1,A2)") == "\"'@SUM(A1,A2)\"");
  CHECK(csv_field("-x") == "'-x");
  for (const char* number : {"-1", "-1.5e-09", "0.25", "1e308", "-0.0"}) CHECK(csv_field(number) == number);
}

TEST_CASE("Zipped axes advance together") {
  SweepOptions options = lab_sweep({"cluster.nodes=2,3,5"});
  options.grid = SweepGrid::parse({"cluster.nodes=2,3,5", "training.bucket_cap_mb=1,2,4"}, Pairing::zip);
  const std::vector<std::string> zipped = lines_of(to_csv(sweep(options)));
  const std::vector<std::string> product = lines_of(to_csv(sweep(lab_sweep(twelve_cells))));
  REQUIRE(zipped.size() == 1 + 3);
  CHECK(zipped[1] == product[1 + 0]);  // 2 nodes, 1 MiB
  CHECK(zipped[2] == product[1 + 5]);  // 3 nodes, 2 MiB: four caps for each number of nodes
  CHECK(zipped[3] == product[1 + 10]);
}

TEST_CASE("Cells of a zipped sweep are not taken for those of the product") {
  const TemporaryFolder folder;
  const std::vector<std::string> one_axis{"training.bucket_cap_mb=1:8:x2"};
  SweepOptions options = lab_sweep(one_axis, folder.file("out.csv"));
  kill_after(options, 2);
  options.grid = SweepGrid::parse(one_axis, Pairing::zip);
  options.resume = true;
  CHECK(contains(message_of(options), "is of another sweep"));
}

TEST_CASE("Rows are the same whether they are kept or read from the journal, whose name is gone by then") {
  const TemporaryFolder folder;
  const SweepTable kept = sweep(lab_sweep(twelve_cells));
  const SweepTable read = sweep(lab_sweep(twelve_cells, folder.file("out.csv")));
  CHECK_FALSE(fs::exists(folder.file("out.csv.partial")));
  CHECK(to_csv(read) == to_csv(kept));
}

TEST_CASE("A sweep that is too large is refused before anything is written") {
  const TemporaryFolder folder;
  const std::string output = folder.file("out.csv");
  SweepOptions options = lab_sweep(
      {"training.bucket_cap_mb=1:1000:+1", "simulation.seed=1:100000:+1", "cluster.nodes=2:11:+1"}, output);
  CHECK(contains(message_of(options), "found 1000000000 cells"));
  options.base.accepts_any_size = true;
  CHECK(contains(message_of(options), "take parts of them with --shard"));
  CHECK(fs::is_empty(fs::path(output).parent_path()));
}

TEST_CASE("A shard has a note beside it, and the whole none") {
  const TemporaryFolder folder;
  SweepOptions options = lab_sweep(twelve_cells, folder.file("out.csv"));
  sweep(options);
  CHECK_FALSE(fs::exists(shard_note_of(options.output)));
  options.shard = {.index = 2, .count = 3};
  sweep(options);
  CHECK(fs::exists(shard_note_of(options.output)));
}

}  // namespace lockstep::sweep_test
