// Killed at any moment, and begun again: nothing is lost, nothing done twice, no file is half.
//
// Some moments of every verb that writes. LOCKSTEP_KILLS=1000 build/tests/contract_tests -tc="*kill -9*" tries so many
// of them in all.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/program.h"

namespace lockstep::killed_test {

namespace fs = std::filesystem;
using testing::Answer;
using testing::Folder;
using testing::lab_text;
using testing::run_command;
using testing::run_program;
using testing::text_of;

struct Verb {
  std::string name;
  std::string command;             // FOLDER is where it writes
  std::vector<std::string> files;  // that it writes there
};

const std::string source = LOCKSTEP_SOURCE_DIR;

std::vector<Verb> writing_verbs() {
  return {
      {"plan", "plan " + source + "/scenarios/plans/resnet50_rented.json --report FOLDER/p.html", {"p.html"}},
      {"layouts",
       "layouts " + source + "/scenarios/pipeline_four_stages.json --report FOLDER/l.html",
       {"l.html"}},
      {"calibrate",
       "calibrate --machine dgx_a100_40gb --nodes 1 --gpus-per-node 8 --collective all_reduce "
       "FOLDER/../log.txt -o "
       "FOLDER/c.json",
       {"c.json"}},
      {"validate", "validate FOLDER/../v.json --report FOLDER/v.html", {"v.html"}},
      {"predict",
       "predict FOLDER/../s.json --report FOLDER/r.html --trace FOLDER/t.json",
       {"r.html", "t.json"}}};
}

std::string in_folder(std::string text, const std::string& folder) {
  const std::string word = "FOLDER";
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word))
    text.replace(at, word.size(), folder);
  return text;
}

void write_inputs(const Folder& folder) {
  folder.write("s.json", lab_text);
  folder.write("v.json",
               R"({"schema": "lockstep.measurements/1", "source": "ours", "split": "heldout", "cases": [
    {"name": "one", "group": "g", "scenario": "s.json", "measured": {"iteration_time_s": 0.1}}]})");
  // 20 us and 100 GB/s; of eight ranks a bus carries 14/8 of what is reduced.
  std::string log;
  for (int size = 1'024; size <= 64 << 20; size *= 2) {
    const double us = 20 + size / 1e5;
    const double rate = size / us / 1e3;
    log +=
        fmt::format("{} {} float sum -1 {:.3f} {:.4f} {:.4f} 0\n", size, size / 4, us, rate, rate * 14 / 8);
  }
  folder.write("log.txt", log);
}

std::size_t kills() {
  const char* const asked = std::getenv("LOCKSTEP_KILLS");
  return asked == nullptr ? 24 : std::strtoull(asked, nullptr, 10);
}

// How long the program may take until it is killed: anything up to what it takes in peace.
class Moments {
 public:
  explicit Moments(const std::string& command) {
    const auto begin = std::chrono::steady_clock::now();
    const Answer answer = run_command(command);
    CAPTURE(command);
    CAPTURE(answer.diagnostics);
    REQUIRE(answer.exit_code == 0);
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  std::string next() { return std::to_string(std::uniform_real_distribution(0.0005, seconds_)(random_)); }

 private:
  double seconds_ = 0;
  std::mt19937 random_{11};
};

// True where the program had ended before.
bool run_until_killed(const std::string& command, const std::string& seconds) {
  const Answer answer = run_command("timeout -s KILL " + seconds + " " + command);
  CAPTURE(command);
  CAPTURE(answer.diagnostics);
  CHECK((answer.exit_code == 0 || answer.exit_code == 137 || answer.exit_code == -1));
  return answer.exit_code == 0;
}

std::map<std::string, std::string> files_in(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& file : fs::directory_iterator(folder))
    files[file.path().filename().string()] = text_of(file.path().string());
  return files;
}

// What was there stays, or what was asked for is there whole; a kill between naming and renaming leaves it whole
// under the other name.
void check_whole(const std::map<std::string, std::string>& found,
                 const std::map<std::string, std::string>& whole) {
  for (const auto& [name, text] : found) {
    CAPTURE(name);
    const bool is_one_of_them =
        std::any_of(whole.begin(), whole.end(), [&](const auto& one) { return one.second == text; });
    const bool is_expected = whole.contains(name) ? text == "old\n" || text == whole.at(name)
                                                  : name.starts_with(".lockstep-") && is_one_of_them;
    CHECK(is_expected);
  }
}

TEST_CASE("after kill -9 every output is the old one or the new one") {
  const Folder folder;
  write_inputs(folder);
  const std::string place = folder.path() + "/out";
  for (const Verb& verb : writing_verbs()) {
    CAPTURE(verb.name);
    fs::create_directory(place);
    const std::string command = std::string(LOCKSTEP_BINARY) + " " + in_folder(verb.command, place);
    Moments moments(command);
    const auto whole = files_in(place);
    REQUIRE(whole.size() == verb.files.size());
    for (std::size_t kill = 0; kill < std::max<std::size_t>(kills() / 6, 1); ++kill) {
      fs::remove_all(place);
      fs::create_directory(place);
      for (const std::string& file : verb.files)
        if (kill % 2 == 0)
          folder.write("out/" + file, "old\n");
      run_until_killed(command, moments.next());
      check_whole(files_in(place), whole);
    }
    fs::remove_all(place);
  }
}

// The cells whose lines are whole.
std::vector<std::size_t> finished_cells(const std::string& journal) {
  std::vector<std::size_t> cells;
  std::istringstream lines(journal.substr(0, journal.rfind('\n') + 1));
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.is_array())
      cells.push_back(json[0]);
  }
  return cells;
}

TEST_CASE("a sweep that kill -9 ends again and again loses no cell and computes none twice") {
  const Folder folder;
  write_inputs(folder);
  const std::string csv = folder.path() + "/a.csv";
  const std::string command =
      std::string(LOCKSTEP_BINARY) + " sweep " + folder.path() +
      "/s.json --vary cluster.nodes=2:60:+1 --vary training.bucket_cap_mb=1,5,25 --resume -o " + csv;
  Moments moments(command);
  const std::string whole = text_of(csv);
  for (std::size_t kill = 0; kill < std::max<std::size_t>(kills() / 6, 1);) {
    fs::remove(csv);
    std::vector<std::size_t> before;
    for (bool is_done = false; !is_done && kill < kills(); ++kill) {
      is_done = run_until_killed(command, moments.next()) || fs::exists(csv);
      if (is_done)
        continue;
      const std::vector<std::size_t> now = finished_cells(text_of(csv + ".partial"));
      REQUIRE(now.size() >= before.size());
      CHECK(std::equal(before.begin(), before.end(), now.begin()));
      CHECK(std::set(now.begin(), now.end()).size() == now.size());
      before = now;
    }
    CHECK(run_command(command).exit_code == 0);
    CHECK(text_of(csv) == whole);
    CHECK_FALSE(fs::exists(csv + ".partial"));
  }
}

}  // namespace lockstep::killed_test
