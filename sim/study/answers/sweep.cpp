#include "sim/study/answers/sweep.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/load/reading/spelling.h"
#include "sim/report/prediction.h"
#include "sim/report/report_json.h"
#include "sim/study/answers/program_id.h"
#include "sim/study/answers/sweep_journal.h"
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

// FNV-1a (Fowler, Noll and Vo): the same number on every machine, which std::hash does not promise.
std::string hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

// As a journal knows a profile: what it says, not how it is spaced.
std::string hash_of_profile(const std::string& file) {
  try {
    return hash_of(JsonDocument::from_file(file).value().dump());
  } catch (const std::exception&) {
    return "";
  }
}

// As --set would say it.
std::string said(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
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

// What all cells share.
class Cells {
 public:
  explicit Cells(const SweepOptions& options)
      : options_(options),
        variants_(options.base),
        keys_(result_keys()),
        file_name_(std::filesystem::path(variants_.file_name()).filename().string()) {}

  const std::vector<std::string>& keys() const { return keys_; }
  std::size_t transferred() const { return transferred_; }

  SweepRow run(std::size_t cell) const {
    SweepRow row{.cell = cell, .results = std::vector<ordered_json>(keys_.size())};
    try {
      Prediction prediction = variants_.predict(load_cell(cell));
      drop_lists(prediction.report);
      const ComputeSpec& compute = prediction.scenario.compute;
      transferred_ += compute.single_gpu_iteration && compute.transfer_ppm > 0 ? 1 : 0;
      row.results = pick_results(to_json(prediction.report, prediction.scenario), keys_);
    } catch (const ConfigError& error) {
      row.error = one_line(error.problems);
    }
    return row;
  }

  // Two sweeps of one fingerprint, whose cells read the same files, give the same rows: it covers the program,
  // the scenario and the arguments.
  std::string fingerprint() const {
    ordered_json text{
        {"program", hash_of(program_id())}, {"scenario", variants_.document()}, {"keys", keys_}};
    text["options"] = {options_.shard.index, options_.shard.count, options_.base.fold,
                       fidelity_of(options_.base)};
    for (const auto& [path, value] : options_.base.overrides) {
      text["set"].push_back({path, value});
    }
    for (const SweepAxis& axis : options_.grid.axes()) {
      text["vary"].push_back({axis.path, axis.values});
    }
    return hash_of(text.dump());
  }

  // That cells have read so far and `journal` has not heard of.
  void note_files(SweepJournal& journal) const {
    std::vector<FileState> states;
    for (const ReadFile& read : variants_.files_read())
      if (!journal.knows(read.file))
        states.push_back({read.file, hash_of(read.value->dump())});
    journal.note(states);
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
      variant.file_name += fmt::format("{}{}={}", axis == 0 ? " with " : ", ", path, said(values[axis]));
    }
    return variants_.load(variant);
  }

  const SweepOptions& options_;
  ScenarioVariants variants_;
  std::vector<std::string> keys_;
  std::string file_name_;  // no result holds a path
  mutable std::atomic<std::size_t> transferred_ = 0;
};

// A pipe or /dev/stdout: it has no place beside it, and opening it twice would end it for its reader.
bool is_stream(const std::string& output) {
  std::error_code ignored;
  const auto status = std::filesystem::status(output, ignored);
  return std::filesystem::is_fifo(status) || std::filesystem::is_character_file(status);
}

EarlierCells earlier_cells(const SweepOptions& options) {
  if (options.resume)
    return EarlierCells::resume;
  return options.discard ? EarlierCells::discard : EarlierCells::refuse;
}

std::unique_ptr<SweepJournal> open_journal(const SweepOptions& options, const Cells& cells) {
  if (options.output.empty() || is_stream(options.output)) {
    return nullptr;
  }
  static_cast<void>(AtomicFile(options.output));  // refuses, before anything runs, what cannot be written
  return std::make_unique<SweepJournal>(SweepJournal::Options{.path = partial_of(options.output),
                                                              .fingerprint = cells.fingerprint(),
                                                              .earlier = earlier_cells(options),
                                                              .fingerprint_of = hash_of_profile});
}

// The rows, each at its place, and who is to hear of a new one.
class Rows {
 public:
  Rows(const SweepOptions& options, const Cells& all, SweepJournal* journal)
      : all_(all),
        cells_(options.shard.cells_of(options.grid)),
        rows_(cells_.size()),
        journal_(journal),
        on_progress_(options.on_progress) {
    for (std::size_t place = 0; place < cells_.size(); ++place) {
      missing_.emplace(cells_[place], place);
    }
    if (journal_ != nullptr) {
      for (const SweepRow& row : journal_->finished()) {
        put(row);
      }
    }
  }

  std::vector<std::size_t> missing_cells() const {
    std::vector<std::size_t> cells;
    for (const auto& [cell, place] : missing_) {
      cells.push_back(cell);
    }
    return cells;
  }

  void finish(const SweepRow& row) {
    const std::scoped_lock lock(mutex_);
    if (journal_ != nullptr) {
      all_.note_files(*journal_);
      journal_->append(row);
    }
    put(row);
    if (on_progress_) {
      on_progress_(rows_.size() - missing_.size(), rows_.size());
    }
  }

  std::vector<SweepRow> take() && { return std::move(rows_); }

 private:
  void put(const SweepRow& row) {
    if (const auto found = missing_.find(row.cell); found != missing_.end()) {
      rows_[found->second] = row;
      missing_.erase(found);
    }
  }

  const Cells& all_;
  std::vector<std::size_t> cells_;
  std::vector<SweepRow> rows_;
  std::map<std::size_t, std::size_t> missing_;  // cell to place
  SweepJournal* journal_;
  const std::function<void(std::size_t, std::size_t)>& on_progress_;
  std::mutex mutex_;
};

}  // namespace

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
  const std::unique_ptr<SweepJournal> journal = open_journal(options, cells);
  Rows rows(options, cells, journal.get());
  const std::vector<std::size_t> missing = rows.missing_cells();
  run_in_parallel(options.jobs, missing.size(),
                  [&](std::size_t index) { rows.finish(cells.run(missing[index])); });
  SweepTable table{.grid = options.grid,
                   .keys = cells.keys(),
                   .rows = std::move(rows).take(),
                   .transferred = cells.transferred()};
  if (!options.output.empty()) {
    write_file_atomically(options.output, to_csv(table));
  }
  if (journal) {
    journal->remove();
  }
  return table;
}

}  // namespace lockstep
