#include "sim/study/fit/calibration_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"
#include "sim/base/quantity_text.h"
#include "sim/collectives/nccl_tuner.h"
#include "sim/study/bench/collective_of_table.h"
#include "sim/study/bench/collective_table.h"
#include "sim/study/bench/narrowest_cut.h"

namespace lockstep {
namespace {

constexpr std::size_t fewest_rows = 12;
// Of a kilobyte the slowest shipped table takes 0.7 ms: all_to_all of 32 ranks over TCP.
constexpr Bytes largest_start{1024};
constexpr Duration slowest_start = Duration::milliseconds(4);
constexpr Duration slowest_start_of_a_rank = Duration::microseconds(100);
// Whoever calibrates has measured at one site, so that logs given together are one group.
constexpr const char* group_of_logs = "own logs";

using Strings = std::vector<std::string>;
using Names = std::set<std::string>;

bool is_index(const std::string& file) {
  return file.ends_with(".json");
}

Strings list_of(const Names& names) {
  return {names.begin(), names.end()};
}

// What a problem of all files together is said of.
std::string place_of(const Strings& files) {
  return files.size() == 1 ? files.front()
                           : fmt::format("{} and {} more files", files.front(), files.size() - 1);
}

std::optional<CollectiveOp> parse_collective(const std::string& name) {
  if (name.empty())
    return std::nullopt;
  const std::string stem = name.ends_with("_perf") ? name.substr(0, name.size() - 5) : name;
  if (const CollectiveOp* op = find_collective_op(stem))
    return *op;
  throw ConfigError(
      fmt::format("--collective: found \"{}\"; {}", name, describe_choices(stem, collective_op_names())));
}

void check_version(const std::string& place, const std::string& version) {
  if (!version.empty() && !parse_nccl_version(version))
    throw ConfigError(
        fmt::format("{}: found \"{}\", expected a release such as \"2.28\" or \"2.18.3\"", place, version));
}

void check_protocol(const std::string& place, const std::string& protocol) {
  static const Strings valid{"auto", "ll", "ll128", "simple"};
  if (!protocol.empty() && std::find(valid.begin(), valid.end(), protocol) == valid.end())
    throw ConfigError(
        fmt::format("{}: found \"{}\"; {}", place, protocol, describe_choices(protocol, valid)));
}

void check_counts(const LogFacts& facts) {
  const auto check = [](const char* option, const std::optional<std::int64_t>& count, std::int64_t most) {
    if (count && (*count < 1 || *count > most))
      throw ConfigError(fmt::format("{}: found {}, expected 1 to {}", option, *count, most));
  };
  check("--nodes", facts.nodes, 1'000'000);
  check("--gpus-per-node", facts.gpus_per_node, 1'000);
}

// Rows of a file that is named twice would count twice.
void check_files_differ(const Strings& files) {
  for (auto file = files.begin(); file != files.end(); ++file)
    for (auto earlier = files.begin(); earlier != file; ++earlier) {
      std::error_code ignored;
      if (*earlier == *file || std::filesystem::equivalent(*earlier, *file, ignored))
        throw ConfigError(fmt::format("{}: is given twice, expected each file once", *file));
    }
}

void check_request(const CalibrationRequest& request) {
  check_files_differ(request.files);
  const bool has_index = std::any_of(request.files.begin(), request.files.end(), is_index);
  const bool has_log = !std::all_of(request.files.begin(), request.files.end(), is_index);
  if (!has_index && !request.profile.empty())
    throw ConfigError("--profile: picks tables of an index (.json), and none was given");
  if (const Strings given = given_options(request.facts); !has_log && !given.empty())
    throw ConfigError(fmt::format("{}: is said of logs and CSV, and only indexes were given", given.front()));
  check_counts(request.facts);
  check_version("--library-version", request.facts.library_version);
  check_protocol("--protocol", request.facts.protocol);
}

template <class T>
void refuse_contradiction(const std::string& file, const char* option, const T& said, const T& given) {
  if (said != given)
    throw ConfigError(fmt::format("{}: found {}, and {} says {}; an index (.json) can say each file's own",
                                  file, said, option, given));
}

void complete_collective(CollectiveLog& log, std::optional<CollectiveOp> given) {
  if (given && !log.op_name.empty())
    refuse_contradiction(log.file, "--collective",
                         log.op ? std::string(collective_op_name(*log.op)) : log.op_name,
                         std::string(collective_op_name(*given)));
  log.op = log.op ? log.op : given;
}

void complete_ranks(CollectiveLog& log, const LogFacts& facts) {
  if (!log.ranks) {
    if (facts.nodes && facts.gpus_per_node) {
      log.nodes = facts.nodes;
      log.ranks = *facts.nodes * *facts.gpus_per_node;
    }
    return;
  }
  if (facts.nodes && log.nodes)
    refuse_contradiction(log.file, "--nodes", fmt::format("{} nodes", *log.nodes),
                         fmt::format("{} nodes", *facts.nodes));
  log.nodes = log.nodes ? log.nodes : facts.nodes;
  if (facts.gpus_per_node)
    refuse_contradiction(log.file, "--gpus-per-node", fmt::format("{} ranks", *log.ranks),
                         fmt::format("{} ranks", *facts.gpus_per_node * log.nodes.value_or(1)));
}

void complete_version(CollectiveLog& log, const std::string& given) {
  if (!given.empty() && !log.library_version.empty())
    refuse_contradiction(log.file, "--library-version", log.library_version, given);
  if (log.library_version.empty())
    log.library_version = given;
}

// A machine as far as its tables are concerned.
struct Machine {
  std::string asked;  // as the user named it
  ClusterSpec cluster;

  const std::string& name() const { return cluster.machine.name; }
  std::int64_t gpus() const { return cluster.machine.gpus; }
};

Machine find_machine(const CalibrationRequest& request, const ProfileStore& store) {
  const Scenario scenario = load_collective_setting({.machine = request.machine}, store);
  const MachineSpec& machine = scenario.cluster.machine;
  if (machine.library == LibraryKind::gloo)
    throw ConfigError(fmt::format(
        "--machine: {} runs Gloo, and what is fitted are the protocols of NCCL and RCCL", machine.name));
  return {.asked = request.machine, .cluster = scenario.cluster};
}

// "NVIDIA GeForce RTX 3090" is an rtx3090 and "Tesla V100-SXM2-16GB" a v100_sxm2_16gb.
bool is_named_for(const std::string& printed, const std::string& gpu) {
  std::string letters;
  for (const char letter : printed)
    if (letter != ' ')
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return letters.find(gpu.substr(0, gpu.find('_'))) != letters.npos;
}

// No GPU sends faster than it reads its own memory: such times are of a larger unit.
std::optional<std::string> describe_too_fast(const MeasuredTable& table, const Machine& machine) {
  const double most = static_cast<double>(machine.cluster.gpu.memory_bandwidth.count());
  for (const MeasuredRow& row : table.rows)
    if (const double rate = static_cast<double>(row.size.count()) / row.time.in_seconds();
        most > 0 && rate > most)
      return fmt::format(
          "{} B in {:.4g} us make {:.4g} GB/s, and the memory of a GPU in a {} gives {:.4g} GB/s",
          row.size.count(), row.time.in_seconds() * 1e6, rate / 1e9, machine.name(), most / 1e9);
  return std::nullopt;
}

// No network needs so long for so little: such times are of a smaller unit.
std::optional<std::string> describe_too_slow(const MeasuredTable& table) {
  const MeasuredRow* fastest = nullptr;
  for (const MeasuredRow& row : table.rows)
    if (row.size <= largest_start && (fastest == nullptr || row.time < fastest->time))
      fastest = &row;
  if (fastest == nullptr || fastest->time <= std::max(slowest_start, slowest_start_of_a_rank * table.ranks()))
    return std::nullopt;
  return fmt::format("{} B take {:.4g} us, longer than any network needs", fastest->size.count(),
                     fastest->time.in_seconds() * 1e6);
}

// Of a time that is printed to three digits.
constexpr double printed_part = 0.995;
constexpr std::size_t most_lines_named = 20;

double in_gigabytes(Bytes size, double seconds) {
  return static_cast<double>(size.count()) / seconds / 1e9;
}

// What no wire of the machine carries, line by line.
Strings describe_beyond_wires(const MeasuredTable& table, const Machine& machine, const std::string& place) {
  ClusterSpec cluster = machine.cluster;
  cluster.nodes = table.nodes;
  cluster.gpus_per_node = table.gpus_per_node;
  Strings sentences;
  for (const MeasuredRow& row : table.rows) {
    const double least = narrowest_cut_time(cluster, table.op, row.size).in_seconds();
    if (const double taken = row.time.in_seconds(); taken < printed_part * least)
      sentences.push_back(
          fmt::format("{}:{}: {} B in {:.4g} us make an algbw of {:.4g} GB/s, and {} over the links of {} x "
                      "{} GPUs of a {} "
                      "has at most {:.4g} GB/s",
                      place, row.line, row.size.count(), taken * 1e6, in_gigabytes(row.size, taken),
                      collective_op_name(table.op), table.nodes, table.gpus_per_node, machine.name(),
                      in_gigabytes(row.size, least)));
  }
  return sentences;
}

// Gathers tables, notes and problems of one file after the other.
class Reader {
 public:
  Reader(const CalibrationRequest& request, const Machine& machine)
      : request_(request), machine_(machine), op_(parse_collective(request.facts.collective)) {}

  void read(const std::string& file) {
    try {
      if (is_index(file))
        read_index(file);
      else
        read_log(file);
    } catch (const ConfigError& error) {
      problems_.insert(problems_.end(), error.problems.begin(), error.problems.end());
    }
  }

  CalibrationInputs finish() && {
    if (problems_.empty())
      check_enough();
    if (!problems_.empty())
      throw ConfigError(problems_);
    return std::move(inputs_);
  }

 private:
  void read_index(const std::string& file) {
    std::size_t broken = 0;
    std::size_t without_rows = 0;
    for (MeasuredTable& table : read_measured_tables(file)) {
      const std::string place = file + ": " + table.id;
      machines_.insert(table.machine);
      if (!is_of_machine(table))
        continue;
      profiles_.insert(table.profile);
      if (!request_.profile.empty() && table.profile != request_.profile)
        continue;
      if (!table.healthy && !request_.accepts_broken_runs)
        ++broken;
      else if (table.rows.empty())
        ++without_rows;
      else
        add(std::move(table), place);
    }
    note_passed_over(file, broken, "marked as not healthy (--accept-broken takes them)");
    note_passed_over(file, without_rows, "without rows");
  }

  bool is_of_machine(const MeasuredTable& table) const {
    return table.machine == machine_.name() || table.machine == machine_.asked;
  }

  void note_passed_over(const std::string& file, std::size_t tables, std::string_view why) {
    if (tables > 0)
      inputs_.notes.push_back(
          fmt::format("{}: passed over {} table{} {}", file, tables, tables == 1 ? "" : "s", why));
  }

  void read_log(const std::string& file) {
    CollectiveLog log = read_collective_log(file);
    check_sound(log);
    if (!log.gpu.empty() && !is_named_for(log.gpu, machine_.cluster.gpu.name))
      inputs_.notes.push_back(fmt::format("{}: was measured on \"{}\", and a {} has {}", log.file, log.gpu,
                                          machine_.name(), machine_.cluster.gpu.name));
    complete_collective(log, op_);
    complete_ranks(log, request_.facts);
    complete_collective_by_ratio(log);
    complete_version(log, request_.facts.library_version);
    MeasuredTable table = table_of_log(log, machine_.asked);
    table.group = group_of_logs;
    table.single_process = request_.facts.is_single_process;
    if (!request_.facts.algorithm.empty())
      table.algorithm = request_.facts.algorithm;
    if (!request_.facts.protocol.empty())
      table.protocol = request_.facts.protocol;
    add(std::move(table), file);
  }

  // From busbw and algbw, where the log does not say it; else they must agree with what is said.
  void complete_collective_by_ratio(CollectiveLog& log) {
    if (!log.ranks || *log.ranks < 2 || (!log.op && !log.op_name.empty()))
      return;
    if (log.op) {
      if (const auto contradiction = describe_other_collective(log, *log.op, *log.ranks))
        doubt(*contradiction);
      return;
    }
    const std::vector<CollectiveOp> possible = possible_collectives(log, *log.ranks);
    const auto nothing_fits = describe_other_collective(log, CollectiveOp::all_reduce, *log.ranks);
    if (possible.empty() && nothing_fits)
      throw ConfigError(*nothing_fits + ", or another number of ranks");
    if (possible.size() > 1)
      throw ConfigError(fmt::format(
          "{}: found no name of a collective, and busbw and algbw of {} ranks are alike for {}; expected "
          "--collective with one of them",
          log.file, *log.ranks, names_of(possible)));
    if (possible.size() == 1) {
      log.op = possible.front();
      inputs_.notes.push_back(fmt::format("{}: is taken for {}, by its busbw beside algbw", log.file,
                                          collective_op_name(*log.op)));
    }
  }

  void check_sound(const CollectiveLog& log) {
    for (const std::string& sentence : find_broken_run(log))
      doubt(log.file, "the run is broken: " + sentence);
  }

  void check_units(const MeasuredTable& table, const std::string& place) {
    const std::array wrong{describe_too_fast(table, machine_), describe_too_slow(table)};
    for (const auto& sentence : wrong)
      if (sentence)
        doubt(place, *sentence + "; expected times in microseconds and sizes in bytes");
    if (!wrong.front())
      check_wires(table, place);
  }

  void check_wires(const MeasuredTable& table, const std::string& place) {
    const Strings sentences = describe_beyond_wires(table, machine_, place);
    for (std::size_t i = 0; i < std::min(sentences.size(), most_lines_named); ++i) doubt(sentences[i]);
    if (sentences.size() > most_lines_named)
      doubt(place,
            fmt::format("{} more lines are faster than the links", sentences.size() - most_lines_named));
  }

  void doubt(const std::string& place, const std::string& sentence) { doubt(place + ": " + sentence); }

  // A problem, unless broken runs are accepted.
  void doubt(const std::string& sentence) {
    if (request_.accepts_broken_runs)
      inputs_.notes.push_back(sentence + "; accepted all the same");
    else
      problems_.push_back(sentence + " (--accept-broken takes it all the same)");
  }

  void add(MeasuredTable table, const std::string& place) {
    check_version(place, table.library_version);
    check_protocol(place, table.protocol);
    if (table.gpus_per_node > machine_.gpus())
      throw ConfigError(fmt::format("{}: found {} GPUs on each node, and a {} has {}", place,
                                    table.gpus_per_node, machine_.name(), machine_.gpus()));
    if (table.ranks() < 2)
      throw ConfigError(fmt::format("{}: found one rank, which communicates with nobody", place));
    check_units(table, place);
    inputs_.notes.insert(inputs_.notes.end(), table.skipped_lines.begin(), table.skipped_lines.end());
    table.machine = machine_.asked;
    inputs_.tables.push_back(std::move(table));
  }

  void check_enough() {
    if (inputs_.tables.empty()) {
      problems_.push_back(describe_absence());
      problems_.insert(problems_.end(), inputs_.notes.begin(), inputs_.notes.end());
      return;
    }
    std::size_t rows = 0;
    Bytes largest{0};
    for (const MeasuredTable& table : inputs_.tables)
      for (const MeasuredRow& row : table.rows) {
        ++rows;
        largest = std::max(largest, row.size);
      }
    const std::string where = place_of(request_.files);
    if (rows < fewest_rows)
      problems_.push_back(
          fmt::format("{}: found {} rows in all of {}, expected at least {} to fit to, as -b 8 -e 1G gives",
                      where, rows, machine_.name(), fewest_rows));
    if (size_class(largest) != SizeClass::large)
      problems_.push_back(
          fmt::format("{}: found no row of 1 MiB and more (the largest is {}): bandwidth shows "
                      "only there, expected sizes up to 256 MiB or so",
                      where, format_bytes(largest)));
  }

  std::string describe_absence() const {
    const std::string text =
        fmt::format("{}: found no table of {}", place_of(request_.files), machine_.name());
    const bool knows_profile = request_.profile.empty() || profiles_.contains(request_.profile);
    if (machines_.empty() || (!profiles_.empty() && knows_profile))
      return text + " that can be fitted";
    if (profiles_.empty())
      return fmt::format("{}; {}", text, describe_choices(machine_.name(), list_of(machines_)));
    return fmt::format("{} and profile {}; {}", text, request_.profile,
                       describe_choices(request_.profile, list_of(profiles_)));
  }

  const CalibrationRequest& request_;
  const Machine& machine_;
  std::optional<CollectiveOp> op_;
  CalibrationInputs inputs_;
  Names machines_;  // of all tables of the indexes
  Names profiles_;  // of the machine's
  Strings problems_;
};

}  // namespace

std::vector<std::string> given_options(const LogFacts& facts) {
  Strings options;
  const auto add = [&](bool is_given, const char* option) {
    if (is_given)
      options.emplace_back(option);
  };
  add(!facts.collective.empty(), "--collective");
  add(facts.nodes.has_value(), "--nodes");
  add(facts.gpus_per_node.has_value(), "--gpus-per-node");
  add(!facts.library_version.empty(), "--library-version");
  add(!facts.algorithm.empty(), "--algorithm");
  add(!facts.protocol.empty(), "--protocol");
  add(facts.is_single_process, "--single-process");
  return options;
}

CalibrationInputs read_calibration_inputs(const CalibrationRequest& request, const ProfileStore& store) {
  check_request(request);
  const Machine machine = find_machine(request, store);
  Reader reader(request, machine);
  for (const std::string& file : request.files) reader.read(file);
  CalibrationInputs inputs = std::move(reader).finish();
  inputs.machine = machine.name();
  inputs.holds_nothing_out = request.holds_nothing_out;
  inputs.profile = request.profile.empty() ? machine.name() : request.profile;
  for (MeasuredTable& table : inputs.tables) table.profile = inputs.profile;
  return inputs;
}

}  // namespace lockstep
