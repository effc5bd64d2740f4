// Shipped scenarios, changed value by value, through the whole of `predict`: `lockstep_mutated_predictions --count N`.
//
// Problem:   what a scenario asks may take a thousand times what the one beside it takes, and a mistake that ends the
//            program may hide behind any combination of values.
// Idea:      a child process a scenario, which the parent measures: how it ends, its processor time, its memory.
// Invariant: a scenario is answered or refused (exit 0 or 2), in at most 5 s and 1 GB; what is more is a finding, told
//            by its draw: `--show DRAW` prints the scenario. What it was expected to take stands beside what it took.
// Cost:      a fork and a prediction each, most of which are refused by load.

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/failure.h"
#include "sim/base/json_reader.h"
#include "sim/report/html.h"
#include "sim/report/prediction.h"
#include "sim/report/report_json.h"
#include "sim/report/report_text.h"
#include "sim/report/timeline_picture.h"
#include "sim/study/answers/strategy_comparison.h"
#include "tests/fuzz/mutation.h"

namespace lockstep::fuzz {
namespace {

using Json = nlohmann::ordered_json;

constexpr double most_seconds_of_all = 5;
constexpr double most_bytes_of_all = 1e9;
// What took less is not compared.
constexpr double least_seconds = 0.2;
constexpr double least_bytes = 3e7;
constexpr rlim_t ended_after_seconds = 30;
constexpr rlim_t ended_above_bytes = rlim_t{8} << 30;

// In memory that parent and child share.
struct Told {
  int exit_code = 0;
  double own_bytes = 0;  // before anything is read
  double expected_bytes = 0;
  double expected_seconds = 0;
  double seconds_beside = 0;  // of what no estimate is of: remedies, and a comparison
  std::array<char, 400> line{};
};

struct Ending {
  Told told;
  int signal = 0;
  double seconds = 0;  // of a processor
  double bytes = 0;    // at the highest
};

struct Seed {
  std::string folder;
  Json scenario;
};

std::vector<Seed> seeds() {
  std::vector<std::string> files;
  for (const auto& file :
       std::filesystem::directory_iterator(std::string(LOCKSTEP_SOURCE_DIR) + "/scenarios"))
    if (file.path().extension() == ".json")
      files.push_back(file.path().string());
  std::sort(files.begin(), files.end());
  std::vector<Seed> list;
  for (const std::string& file : files)
    list.push_back(
        {std::filesystem::path(file).parent_path().string(), JsonDocument::from_file(file).value()});
  return list;
}

// As shipped, and with every default written out.
Material material_of_seeds(const std::vector<Seed>& seeds, const ProfileStore& store) {
  std::vector<Json> documents;
  for (const Seed& seed : seeds) {
    documents.push_back(seed.scenario);
    documents.push_back(load_value(seed.scenario, {.store = store, .folder = seed.folder}).resolved);
  }
  return material_of(std::move(documents));
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double seconds_of_processor(const rusage& usage) {
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

double highest_bytes(const rusage& usage) {
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

rusage own_usage() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage;
}

// What the verb does, all outputs included.
void predict_all(const Json& scenario, const std::string& folder, Told& told) {
  const std::string path = folder + "/mutated.json";
  const ScenarioVariants variants(
      {.path = path, .text = scenario.dump(), .data_directory = LOCKSTEP_SOURCE_DIR});
  const LoadedScenario loaded = variants.load();
  Prediction prediction = variants.predict(loaded, {.with_times = true});
  told.expected_bytes = prediction.simulation.size.bytes();
  told.expected_seconds = prediction.simulation.size.seconds();
  const double before = seconds_of_processor(own_usage());
  MemoryReport& memory = prediction.report.memory;
  if (!memory.fits())
    memory.remedies = variants.find_remedies(loaded);
  if (loaded.comparison)
    to_text(compare_strategies(loaded), loaded);
  told.seconds_beside = seconds_of_processor(own_usage()) - before;
  LOCKSTEP_CHECK(!to_text(prediction.report, prediction.scenario).empty(), "a report has a text");
  LOCKSTEP_CHECK(!to_json(prediction.report, prediction.scenario).dump().empty(), "a report has a document");
  LOCKSTEP_CHECK(
      !to_html(prediction.report, prediction.scenario, timeline_picture(prediction.simulation)).empty(),
      "a report has a page");
}

void limit(decltype(RLIMIT_CPU) what, rlim_t most) {
  const rlimit limits{most, most};
  ::setrlimit(what, &limits);
}

[[noreturn]] void be_child(const Json& scenario, const std::string& folder, Told& told) {
  limit(RLIMIT_CPU, ended_after_seconds);
  limit(RLIMIT_AS, ended_above_bytes);
  limit(RLIMIT_CORE, 0);
  told.own_bytes = highest_bytes(own_usage());
  try {
    predict_all(scenario, folder, told);
  } catch (...) {
    const Failure failure = describe_failure();
    told.exit_code = failure.exit_code;
    std::strncpy(told.line.data(), failure.lines.empty() ? "nothing said" : failure.lines.front().c_str(),
                 told.line.size() - 1);
  }
  std::_Exit(0);
}

Ending run(const Json& scenario, const std::string& folder, Told& shared) {
  shared = {};
  const pid_t child = ::fork();
  LOCKSTEP_CHECK(child >= 0, "a process can be made");
  if (child == 0)
    be_child(scenario, folder, shared);
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  return {.told = shared,
          .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
          .seconds = seconds_of_processor(usage),
          .bytes = highest_bytes(usage)};
}

// Empty: as it should be.
std::string finding_of(const Ending& ending) {
  if (ending.signal != 0)
    return fmt::format("signal {}", ending.signal);
  if (ending.told.exit_code != exit_done && ending.told.exit_code != exit_wrong_input)
    return fmt::format("exit {}", ending.told.exit_code);
  if (ending.seconds > most_seconds_of_all)
    return "time";
  return ending.bytes > most_bytes_of_all ? "memory" : "";
}

// What was expected over what it took, of what took enough to be compared.
class Estimates {
 public:
  void add(double took, double expected, double least) {
    if (took >= least || expected >= least)
      ratios_.push_back(expected / std::max(took, least / 100));
  }

  void print(const std::string& what) {
    if (ratios_.empty())
      return;
    std::sort(ratios_.begin(), ratios_.end());
    const auto at = [&](double part) {
      return ratios_[static_cast<std::size_t>(part * static_cast<double>(ratios_.size() - 1))];
    };
    const auto near = std::count_if(ratios_.begin(), ratios_.end(),
                                    [](double ratio) { return ratio >= 0.5 && ratio <= 2; });
    fmt::print(
        "{}: expected over taken {:.2f} {:.2f} {:.2f} {:.2f} {:.2f} (least, 5 %, median, 95 %, most); "
        "{} of {} within a factor of two\n",
        what, ratios_.front(), at(0.05), at(0.5), at(0.95), ratios_.back(), near, ratios_.size());
  }

 private:
  std::vector<double> ratios_;
};

// Of all that ended by itself.
struct Worst {
  double seconds = 0, bytes = 0;
  std::uint64_t longest = 0, largest = 0;  // draws

  void add(std::uint64_t draw, const Ending& ending) {
    if (ending.seconds > seconds) {
      seconds = ending.seconds;
      longest = draw;
    }
    if (ending.bytes > bytes) {
      bytes = ending.bytes;
      largest = draw;
    }
  }
};

struct Options {
  std::uint64_t first = 0;
  std::uint64_t count = 1000;
  bool shows = false;
  std::string file = {};  // as it is, instead
};

Options options_of(int count, char** values) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = values[i];
    const std::uint64_t number = std::strtoull(values[i + 1], nullptr, 10);
    if (name == "--first")
      options.first = number;
    else if (name == "--count")
      options.count = number;
    else if (name == "--show")
      options = {.first = number, .count = 1, .shows = true};
    else if (name == "--file")
      options = {.shows = true, .file = values[i + 1]};
  }
  return options;
}

void print_ending(const std::string& what, const std::string& finding, const Ending& ending) {
  fmt::print("{}: {}: {:.2f} s (expected {:.2f}), {:.0f} MB (expected {:.0f}) {}\n", what,
             finding.empty() ? "as it should be" : finding, ending.seconds, ending.told.expected_seconds,
             ending.bytes / 1e6, ending.told.expected_bytes / 1e6, ending.told.line.data());
  std::fflush(stdout);
}

Told& shared_memory() {
  void* const memory =
      ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  LOCKSTEP_CHECK(memory != MAP_FAILED, "memory can be shared");
  return *new (memory) Told;
}

int run_file(const std::string& file) {
  const std::string folder = std::filesystem::path(file).parent_path().string();
  const Ending ending = run(JsonDocument::from_file(file).value(), folder, shared_memory());
  print_ending(file, finding_of(ending), ending);
  return finding_of(ending).empty() ? exit_done : exit_check_failed;
}

int print_summary(const std::map<std::string, int>& endings, const Worst& worst) {
  int findings = 0;
  for (const auto& [word, number] : endings) {
    fmt::print("{:>8} {}\n", number, word);
    findings += word == "answered" || word == "refused" || word == "too large" ? 0 : number;
  }
  fmt::print("the longest took {:.2f} s (--show {}), the largest {:.0f} MB (--show {})\n", worst.seconds,
             worst.longest, worst.bytes / 1e6, worst.largest);
  return findings == 0 ? exit_done : exit_check_failed;
}

std::string word_of(const Ending& ending) {
  if (ending.told.exit_code == exit_done)
    return "answered";
  return std::strstr(ending.told.line.data(), "found what would take") != nullptr ? "too large" : "refused";
}

int run_draws(const Options& options) {
  const ProfileStore store(LOCKSTEP_SOURCE_DIR);
  const std::vector<Seed> all = seeds();
  const Material material = material_of_seeds(all, store);
  Told& shared = shared_memory();
  std::map<std::string, int> endings;
  Estimates times, sizes;
  Worst worst;
  for (std::uint64_t draw = options.first; draw < options.first + options.count; ++draw) {
    const Seed& seed = all[draw % all.size()];
    const Json scenario = mutated(seed.scenario, material, draw);
    if (options.shows)
      fmt::print("{}\n", scenario.dump(2, ' ', false, Json::error_handler_t::replace));
    const Ending ending = run(scenario, seed.folder, shared);
    const std::string finding = finding_of(ending);
    ++endings[finding.empty() ? word_of(ending) : finding];
    worst.add(draw, ending);
    if (!finding.empty() || options.shows)
      print_ending(fmt::format("draw {}", draw), finding, ending);
    if (ending.told.expected_bytes > 0) {
      times.add(ending.seconds - ending.told.seconds_beside, ending.told.expected_seconds, least_seconds);
      sizes.add(ending.bytes - ending.told.own_bytes, ending.told.expected_bytes, least_bytes);
    }
  }
  times.print("time of a processor");
  sizes.print("memory");
  return print_summary(endings, worst);
}

}  // namespace
}  // namespace lockstep::fuzz

int main(int count, char** values) {
  const lockstep::fuzz::Options options = lockstep::fuzz::options_of(count, values);
  return options.file.empty() ? lockstep::fuzz::run_draws(options) : lockstep::fuzz::run_file(options.file);
}
