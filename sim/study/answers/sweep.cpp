#include "sim/study/answers/sweep.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/base/fingerprint.h"
#include "sim/base/json_reader.h"
#include "sim/load/reading/spelling.h"
#include "sim/report/prediction.h"
#include "sim/report/report_json.h"
#include "sim/study/answers/outcome_bytes.h"
#include "sim/study/answers/program_id.h"
#include "sim/study/answers/sweep_journal.h"
#include "sim/study/answers/sweep_shard.h"
#include "sim/study/answers/sweep_size.h"
#include "sim/study/parallel.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

std::string one_line(const std::vector<std::string>& problems) {
  std::string line;
  for (const std::string& problem : problems) {
    line += (line.empty() ? "" : "; ") + problem;
  }
  for (char& letter : line) {
    letter = letter == '\n' || letter == '\r' ? ' ' : letter;
  }
  return line;
}

// As a journal knows a profile: what it says, not how it is spaced.
std::string hash_of_profile(const std::string& file) {
  try {
    return fingerprint_of(state_of_file(file).dump());
  } catch (const std::exception&) {
    return "";
  }
}

std::string fidelity_of(const LoadRequest& request) {
  return request.fidelity ? name_of(*request.fidelity, fidelity_spellings) : "";
}

// A row has none of these.
void drop_lists(Report& report) {
  report.critical_path.clear();
  report.communication.collectives.clear();
  report.communication.buckets.clear();
}

struct RanCell {
  SweepRow row;
  bool is_transferred = false;  // its computing was carried over from another step
  std::vector<std::string> warnings = {};
};

// And what they held, as a fingerprint.
using KnownFiles = std::map<std::string, std::string>;

std::string bytes_of(const RanCell& ran, const KnownFiles& files) {
  return pack({ran.row.cell, ran.row.results, ran.row.error, ran.is_transferred, files, ran.warnings});
}

RanCell cell_in(const ordered_json& record) {
  return {.row = {.cell = record[0], .results = record[1], .error = record[2]},
          .is_transferred = record[3],
          .warnings = record[5]};
}

// What all cells share.
class Cells {
 public:
  explicit Cells(const SweepOptions& options)
      : options_(options),
        variants_(options.base),
        keys_(result_keys()),
        file_name_(std::filesystem::path(variants_.file_name()).filename().string()) {}

  const std::vector<std::string>& keys() const { return keys_; }

  RanCell run(std::size_t cell) const {
    RanCell ran{.row = {.cell = cell, .results = std::vector<ordered_json>(keys_.size())}};
    try {
      Prediction prediction = variants_.predict(load_cell(cell));
      drop_lists(prediction.report);
      const ComputeSpec& compute = prediction.scenario.compute;
      ran.is_transferred = compute.single_gpu_iteration && compute.transfer > Ratio{};
      ran.warnings = prediction.report.warnings;
      ran.row.results = pick_results(to_json(prediction.report, prediction.scenario), keys_);
    } catch (const ConfigError& error) {
      ran.row.error = one_line(error.problems);
    }
    return ran;
  }

  // Two sweeps of one fingerprint, whose cells read the same files and that one program runs, give the same rows:
  // it covers the scenario and the arguments. A shard is a part of the same sweep.
  std::string sweep_fingerprint() const {
    ordered_json text{{"scenario", variants_.document()}, {"keys", keys_}};
    text["options"] = {options_.base.fold, fidelity_of(options_.base),
                       options_.grid.pairing() == Pairing::zip};
    for (const auto& [path, value] : options_.base.overrides) {
      text["set"].push_back({path, value});
    }
    for (const SweepAxis& axis : options_.grid.axes()) {
      text["vary"].push_back({axis.path, axis.values});
    }
    return fingerprint_of(text.dump());
  }

  std::string fingerprint() const {
    return fingerprint_of(fmt::format("{} {} {}/{}", sweep_fingerprint(), fingerprint_of(program_id()),
                                      options_.shard.index, options_.shard.count));
  }

  // Of what has run, whose table has this fingerprint.
  ShardNote shard_note(const std::string& table) const {
    ShardNote note{.shard = options_.shard,
                   .cells = options_.grid.cells(),
                   .sweep = fingerprint_of(sweep_fingerprint() + fingerprint_of_measured()),
                   .program = fingerprint_of(program_id()),
                   .table = table};
    for (const ReadFile& read : variants_.files_read()) {
      note.files.push_back({read.file, fingerprint_of(read.value->dump())});
    }
    return note;
  }

  // Its columns are the table's, and of no journal.
  std::string fingerprint_of_measured() const {
    if (!options_.measured)
      return "";
    ordered_json text;
    for (const MeasuredPoint& point : options_.measured->points)
      text.push_back({point.settings, point.median_s, point.p10_s.value_or(0), point.p90_s.value_or(0)});
    return fingerprint_of(text.dump());
  }

  // Adds what cells have read so far and `known` has not.
  void add_files(KnownFiles& known) const {
    for (const ReadFile& read : variants_.files_read())
      if (!known.contains(read.file))
        known.emplace(read.file, fingerprint_of(read.value->dump()));
  }

  std::vector<std::string> files_of_first_cell() const {
    try {
      load_cell(0);
    } catch (const ConfigError&) {
      // Its files were read all the same; the cell's row will say what is wrong.
    }
    std::vector<std::string> files;
    for (const ReadFile& read : variants_.files_read()) files.push_back(read.file);
    return files;
  }

 private:
  LoadedScenario load_cell(std::size_t cell) const {
    ScenarioVariant variant{.file_name = file_name_, .writes_resolved = false};
    const std::vector<ordered_json> values = options_.grid.values_at(cell);
    for (std::size_t axis = 0; axis < values.size(); ++axis) {
      const std::string& path = options_.grid.axes()[axis].path;
      variant.changes.emplace_back(path, values[axis].dump());
      variant.file_name += fmt::format("{}{}={}", axis == 0 ? " with " : ", ", path, as_set(values[axis]));
    }
    return variants_.load(variant);
  }

  const SweepOptions& options_;
  ScenarioVariants variants_;
  std::vector<std::string> keys_;
  std::string file_name_;  // no result holds a path
};

// A pipe or /dev/stdout: it has no place beside it, and opening it twice would end it for its reader.
bool is_stream(const std::string& output) {
  std::error_code ignored;
  const auto status = std::filesystem::status(output, ignored);
  return std::filesystem::is_fifo(status) || std::filesystem::is_character_file(status);
}

bool has_journal(const SweepOptions& options) {
  return !options.output.empty() && !is_stream(options.output);
}

EarlierCells earlier_cells(const SweepOptions& options) {
  if (options.resume)
    return EarlierCells::resume;
  return options.discard ? EarlierCells::discard : EarlierCells::refuse;
}

std::unique_ptr<SweepJournal> open_journal(const SweepOptions& options, const Cells& cells) {
  if (!has_journal(options)) {
    return nullptr;
  }
  const auto is_of_sweep = [&options, results = cells.keys().size()](const SweepRow& row) {
    return options.shard.has(row.cell, options.grid.cells()) && row.results.size() == results;
  };
  return std::make_unique<SweepJournal>(SweepJournal::Options{.path = partial_of(options.output),
                                                              .fingerprint = cells.fingerprint(),
                                                              .earlier = earlier_cells(options),
                                                              .fingerprint_of = hash_of_profile,
                                                              .is_of_sweep = is_of_sweep});
}

// The rows, each at its place, and who is to hear of a new one.
class Progress {
 public:
  Progress(const SweepOptions& options, const Cells& all, std::unique_ptr<SweepJournal> journal)
      : all_(all),
        rows_(options.shard.size_in(options.grid.cells()), std::move(journal)),
        grid_(options.grid),
        on_progress_(options.on_progress) {
    if (rows_.journal() != nullptr) {
      for (const JournalLine& line : rows_.journal()->finished()) {
        finished_ += rows_.has(options.shard.place_of(line.cell)) ? 0 : 1;
        rows_.find(options.shard.place_of(line.cell), line);
      }
    }
  }

  // From any thread, each of its own places.
  bool has(std::size_t place) const { return rows_.has(place); }

  void finish(std::size_t place, RanCell ran) {
    const std::scoped_lock lock(mutex_);
    all_.add_files(files_);
    put(place, std::move(ran));
  }

  // What another process has computed.
  void take(std::size_t place, std::string_view bytes) {
    const ordered_json record = unpack(bytes);
    const std::scoped_lock lock(mutex_);
    for (const auto& [file, fingerprint] : record[4].get<KnownFiles>())
      if (files_.try_emplace(file, fingerprint).first->second != fingerprint)
        throw ConfigError(fmt::format("{}: the machines of this sweep do not hold the same", file));
    put(place, cell_in(record));
  }

  SweepTable take_table() && {
    return {.grid = grid_,
            .keys = all_.keys(),
            .rows = std::move(rows_),
            .ran = ran_,
            .transferred = transferred_,
            .warnings = std::move(warnings_)};
  }

 private:
  // What a cell has read stands in the journal before it.
  void put(std::size_t place, RanCell ran) {
    if (rows_.journal() != nullptr)
      for (const auto& [file, fingerprint] : files_)
        if (!rows_.journal()->knows(file))
          rows_.journal()->note({{file, fingerprint}});
    ran_ += ran.row.error.empty() ? 1 : 0;
    rows_.put(place, std::move(ran.row));
    transferred_ += ran.is_transferred ? 1 : 0;
    count(std::set<std::string>(ran.warnings.begin(), ran.warnings.end()));
    ++finished_;
    if (on_progress_) {
      on_progress_(finished_, rows_.size());
    }
  }

  // Texts that belong to a cell alone are as many as cells: no more of them are kept than anybody reads.
  void count(const std::set<std::string>& warnings) {
    constexpr std::size_t most_kept = 100;
    for (const std::string& warning : warnings)
      if (warnings_.size() < most_kept || warnings_.contains(warning))
        ++warnings_[warning];
  }

  const Cells& all_;
  SweepRows rows_;
  KnownFiles files_;
  const SweepGrid& grid_;
  std::size_t finished_ = 0;
  std::size_t ran_ = 0;
  std::size_t transferred_ = 0;
  std::map<std::string, std::size_t> warnings_;
  const std::function<void(std::size_t, std::size_t)>& on_progress_;
  std::mutex mutex_;
};

void refuse_if_large(const SweepOptions& options, const Cells& cells) {
  refuse_large_sweep(
      {.cells = options.shard.size_in(options.grid.cells()),
       .threads = threads_for(options.jobs) * (options.team == nullptr ? 1 : options.team->size()),
       .is_accepted = options.base.accepts_any_size},
      [&](std::size_t place) { cells.run(options.shard.cell_at(place)); });
}

SweepTable run_cells(const SweepOptions& options, const Cells& cells, std::unique_ptr<SweepJournal> journal) {
  Progress progress(options, cells, std::move(journal));
  run_shared(
      options.team, options.jobs,
      {.count = options.shard.size_in(options.grid.cells()),
       .question = cells.fingerprint(),
       .run = [&](std::size_t place) { progress.finish(place, cells.run(options.shard.cell_at(place))); },
       .take = [&](std::size_t place, std::string_view bytes) { progress.take(place, bytes); },
       .has_run = [&](std::size_t place) { return progress.has(place); },
       .is_for_all = false});
  return std::move(progress).take_table();
}

// Answers the fingerprint of what it wrote.
std::string write_table(const SweepTable& table, const std::string& output) {
  AtomicFile file(output);
  Fingerprint fingerprint;
  write_csv(table, [&](std::string_view line) {
    file.write(line);
    fingerprint.add(line);
  });
  file.commit();
  return fingerprint.text();
}

void write_output(const SweepTable& table, const SweepOptions& options, const Cells& cells) {
  const std::string fingerprint = write_table(table, options.output);
  if (options.shard.count > 1 && !is_stream(options.output)) {
    write_shard_note(options.output, cells.shard_note(fingerprint));
  }
}

// Whoever has waited for the cells must hear that they are not lost.
void write_output_or_say_what_is_kept(SweepTable& table, const SweepOptions& options, const Cells& cells) {
  try {
    write_output(table, options, cells);
  } catch (const EnvironmentError& error) {
    if (table.rows.journal() == nullptr) {
      throw;
    }
    throw EnvironmentError(
        fmt::format("{}; all cells are kept in {}: the same command with --resume writes the "
                    "table",
                    error.what(), partial_of(options.output)));
  }
}

}  // namespace

void help_to_sweep(const SweepOptions& options) {
  const Cells cells(options);
  KnownFiles files;
  std::mutex mutex;  // guards the files
  const auto tell = [&](std::size_t place) {
    const RanCell ran = cells.run(options.shard.cell_at(place));
    const std::scoped_lock lock(mutex);
    cells.add_files(files);
    return bytes_of(ran, files);
  };
  run_shared(options.team, options.jobs,
             {.count = options.shard.size_in(options.grid.cells()),
              .question = cells.fingerprint(),
              .tell = tell,
              .is_for_all = false});
}

std::string partial_of(const std::string& output) {
  return output + ".partial";
}

std::vector<std::string> files_of_sweep(const SweepOptions& options) {
  std::vector<std::string> files = Cells(options).files_of_first_cell();
  const auto add = [&](const std::string& value) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(value, ignored))
      files.push_back(value);
  };
  add(options.base.path);
  for (const auto& [path, value] : options.base.overrides) add(value);
  for (const SweepAxis& axis : options.grid.axes())
    for (const ordered_json& value : axis.values)
      if (value.is_string())
        add(value.get<std::string>());
  return files;
}

SweepTable sweep(const SweepOptions& options) {
  const Cells cells(options);
  if (has_journal(options)) {
    static_cast<void>(AtomicFile(options.output));  // refuses, before anything runs, what cannot be written
  }
  refuse_if_large(options, cells);
  SweepTable table = run_cells(options, cells, open_journal(options, cells));
  table.measured = options.measured;
  if (!options.output.empty()) {
    write_output_or_say_what_is_kept(table, options, cells);
  }
  if (table.rows.journal() != nullptr) {
    table.rows.journal()->remove();
  }
  return table;
}

}  // namespace lockstep
