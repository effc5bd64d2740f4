#include "sim/study/sweep.h"

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/report/report_json.h"
#include "sim/study/sweep_journal.h"

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

// What all cells share.
class Cells {
 public:
  explicit Cells(const SweepOptions& options)
      : options_(options), store_(options.base.data_directory), keys_(result_keys()) {
    const std::string name = options.base.text ? "scenario" : options.base.path;
    document_ = options.base.text ? JsonDocument::from_text(*options.base.text, name).value()
                                  : JsonDocument::from_file(name).value();
    load_options_.file_name = std::filesystem::path(name).filename().string();  // no result holds a path
    load_options_.folder = options.base.text ? "" : std::filesystem::path(name).parent_path().string();
    load_options_.fold = options.base.fold;
    load_options_.fidelity = options.base.fidelity;
  }

  const std::vector<std::string>& keys() const { return keys_; }

  SweepRow run(std::size_t cell) const {
    SweepRow row{.cell = cell, .results = std::vector<ordered_json>(keys_.size())};
    try {
      const Scenario scenario = load_cell(cell);
      row.results = pick_results(to_json(predict(scenario), scenario), keys_);
    } catch (const ConfigError& error) {
      row.error = one_line(error.problems);
    }
    return row;
  }

  // Two sweeps of one fingerprint give the same rows: it covers the arguments, and through the first cell as
  // it was resolved the profiles too.
  std::string fingerprint() const {
    ordered_json text{{"scenario", document_}, {"keys", keys_}, {"first_cell", describe_first_cell()}};
    text["options"] = {options_.shard.index, options_.shard.count, options_.base.fold};
    for (const auto& [path, value] : options_.base.overrides) {
      text["set"].push_back({path, value});
    }
    for (const SweepAxis& axis : options_.grid.axes()) {
      text["vary"].push_back({axis.path, axis.values});
    }
    return hash_of(text.dump());
  }

 private:
  Scenario load_cell(std::size_t cell) const {
    LoadOptions load_options = load_options_;
    load_options.overrides = options_.base.overrides;
    const std::vector<ordered_json> values = options_.grid.values_at(cell);
    for (std::size_t axis = 0; axis < values.size(); ++axis) {
      load_options.overrides.emplace_back(options_.grid.axes()[axis].path, values[axis].dump());
    }
    return load_value(document_, load_options);
  }

  ordered_json describe_first_cell() const {
    try {
      return load_cell(0).resolved;
    } catch (const ConfigError& error) {
      return error.problems;
    }
  }

  const SweepOptions& options_;
  ProfileStore store_;
  std::vector<std::string> keys_;
  ordered_json document_;
  LoadOptions load_options_{.store = store_};
};

// A pipe or /dev/stdout: it has no place beside it, and opening it twice would end it for its reader.
bool is_stream(const std::string& output) {
  std::error_code ignored;
  const auto status = std::filesystem::status(output, ignored);
  return std::filesystem::is_fifo(status) || std::filesystem::is_character_file(status);
}

std::unique_ptr<SweepJournal> open_journal(const SweepOptions& options, const Cells& cells) {
  if (options.output.empty() || is_stream(options.output)) {
    return nullptr;
  }
  static_cast<void>(AtomicFile(options.output));  // refuses, before anything runs, what cannot be written
  return std::make_unique<SweepJournal>(SweepJournal::Options{
      .path = options.output + ".partial", .fingerprint = cells.fingerprint(), .resume = options.resume});
}

// The rows, each at its place, and who is to hear of a new one.
class Rows {
 public:
  Rows(const SweepOptions& options, SweepJournal* journal)
      : cells_(options.shard.cells_of(options.grid)),
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

  std::vector<std::size_t> cells_;
  std::vector<SweepRow> rows_;
  std::map<std::size_t, std::size_t> missing_;  // cell to place
  SweepJournal* journal_;
  const std::function<void(std::size_t, std::size_t)>& on_progress_;
  std::mutex mutex_;
};

// One cell is one task: none waits behind a dear one.
void run_in_parallel(int jobs, std::size_t count, const std::function<void(std::size_t)>& task) {
  const int threads = jobs > 0 ? jobs : tbb::info::default_concurrency();
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  arena.execute([&] {
    const tbb::blocked_range<std::size_t> all(0, count, 1);
    tbb::parallel_for(
        all,
        [&](const tbb::blocked_range<std::size_t>& part) {
          for (std::size_t index = part.begin(); index != part.end(); ++index) {
            task(index);
          }
        },
        tbb::simple_partitioner());
  });
}

}  // namespace

SweepTable sweep(const SweepOptions& options) {
  const Cells cells(options);
  const std::unique_ptr<SweepJournal> journal = open_journal(options, cells);
  Rows rows(options, journal.get());
  const std::vector<std::size_t> missing = rows.missing_cells();
  run_in_parallel(options.jobs, missing.size(),
                  [&](std::size_t index) { rows.finish(cells.run(missing[index])); });
  SweepTable table{.grid = options.grid, .keys = cells.keys(), .rows = std::move(rows).take()};
  if (!options.output.empty()) {
    write_file_atomically(options.output, to_csv(table));
  }
  if (journal) {
    journal->remove();
  }
  return table;
}

}  // namespace lockstep
