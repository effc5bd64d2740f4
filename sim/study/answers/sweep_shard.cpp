#include "sim/study/answers/sweep_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/base/fingerprint.h"
#include "sim/base/json_reader.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view note_schema = "lockstep.sweep_shard/1";
constexpr std::size_t most_missing_named = 8;
constexpr const char* changed_since = "is not as sweep wrote it: changed or cut since";

struct Shard {
  std::string table;
  ShardNote note;
};

ordered_json to_json(const ShardNote& note) {
  ordered_json json{{"schema", note_schema}, {"shard", note.shard.index}, {"of", note.shard.count},
                    {"cells", note.cells},   {"sweep", note.sweep},       {"program", note.program},
                    {"table", note.table}};
  json["files"] = ordered_json::object();
  for (const FileState& state : note.files) {
    json["files"][state.file] = state.fingerprint;
  }
  return json;
}

std::optional<ShardNote> read_note(const ordered_json& json) {
  if (!json.is_object() || json.at("schema") != note_schema) {
    return std::nullopt;
  }
  for (const char* count : {"shard", "of", "cells"})
    if (!json.at(count).is_number_integer() || json.at(count) < 0)
      return std::nullopt;
  ShardNote note{
      .shard = {.index = json.at("shard").get<std::size_t>(), .count = json.at("of").get<std::size_t>()},
      .cells = json.at("cells").get<std::size_t>(),
      .sweep = json.at("sweep").get<std::string>(),
      .program = json.at("program").get<std::string>(),
      .table = json.at("table").get<std::string>()};
  for (const auto& [file, fingerprint] : json.at("files").items()) {
    note.files.push_back({file, fingerprint.get<std::string>()});
  }
  const bool is_possible = note.shard.index >= 1 && note.shard.index <= note.shard.count;
  return is_possible ? std::optional(note) : std::nullopt;
}

[[noreturn]] void refuse_table(const std::string& table, const std::string& why) {
  throw ConfigError(fmt::format("--merge: {}: {}", table, why));
}

Shard read_shard(const std::string& table) {
  const std::string file = shard_note_of(table);
  if (!std::ifstream(file)) {
    refuse_table(table,
                 fmt::format("is no shard, or {} was left behind: it says which part of which sweep this is, "
                             "and is written beside the table by sweep --shard",
                             file));
  }
  try {
    if (const auto note = read_note(JsonDocument::from_file(file).value())) {
      return {table, *note};
    }
  } catch (const ConfigError&) {  // said below: which part of it is wrong helps nobody
  } catch (const nlohmann::json::exception&) {
  }
  refuse_table(table, fmt::format("{} is not what sweep --shard writes", file));
}

std::string name_of_shard(const SweepShard& shard) {
  return fmt::format("{}/{}", shard.index, shard.count);
}

// What keeps a table from being a part of the sweep that the first is a part of.
std::string difference(const ShardNote& first, const ShardNote& note) {
  if (note.sweep != first.sweep) {
    return "of another sweep: the scenario, --vary, --set or --measured differs";
  }
  if (note.shard.count != first.shard.count) {
    return fmt::format("shard {} where the first is {}", name_of_shard(note.shard),
                       name_of_shard(first.shard));
  }
  if (note.program != first.program) {
    return "made by another build of the program";
  }
  for (const FileState& state : note.files) {
    for (const FileState& other : first.files) {
      if (state.file == other.file && state.fingerprint != other.fingerprint) {
        return fmt::format("made when {} was another", state.file);
      }
    }
  }
  return "";
}

void require_one_sweep(const std::vector<Shard>& shards) {
  std::vector<std::string> problems;
  for (const Shard& shard : shards) {
    if (const std::string found = difference(shards.front().note, shard.note); !found.empty()) {
      problems.push_back(fmt::format("--merge: {} does not belong to {}: it is {}", shard.table,
                                     shards.front().table, found));
    }
  }
  if (!problems.empty()) {
    throw ConfigError(problems);
  }
}

void require_each_once(const std::vector<Shard>& shards) {
  std::map<std::size_t, std::string> tables;
  std::vector<std::string> problems;
  const std::size_t count = shards.front().note.shard.count;
  for (const Shard& shard : shards) {
    const auto [place, is_new] = tables.emplace(shard.note.shard.index, shard.table);
    if (!is_new) {
      problems.push_back(fmt::format("--merge: {} and {} are both shard {}", place->second, shard.table,
                                     name_of_shard(shard.note.shard)));
    }
  }
  std::string missing;
  std::size_t named = 0;
  for (std::size_t index = 1; index <= count && named < most_missing_named; ++index) {
    if (!tables.contains(index)) {
      missing += fmt::format("{}{}/{}", named++ == 0 ? "" : ", ", index, count);
    }
  }
  if (!missing.empty()) {
    problems.push_back(fmt::format("--merge: {} of {} shards missing: {}{}", count - tables.size(), count,
                                   missing, count - tables.size() > named ? ", ..." : ""));
  }
  if (!problems.empty()) {
    throw ConfigError(problems);
  }
}

// A table record by record, as it stands in its file.
class Records {
 public:
  explicit Records(const Shard& shard) : shard_(shard), stream_(shard.table, std::ios::binary) {
    if (!stream_) {
      refuse_table(shard.table, "cannot be read");
    }
  }

  // Empty at the end. A quoted field may hold line breaks.
  std::string next() {
    std::string record;
    std::size_t quotes = 0;
    for (std::string line; std::getline(stream_, line);) {
      quotes += static_cast<std::size_t>(std::count(line.begin(), line.end(), '"'));
      record += stream_.eof() ? line : line + "\n";
      if (quotes % 2 == 0) {
        break;
      }
    }
    fingerprint_.add(record);
    return record;
  }

  // Of a table that was read to its end.
  void require_unchanged() {
    while (!next().empty()) {
    }
    if (fingerprint_.text() != shard_.note.table) {
      refuse_table(shard_.table, changed_since);
    }
  }

 private:
  const Shard& shard_;
  std::ifstream stream_;
  Fingerprint fingerprint_;
};

}  // namespace

std::string shard_note_of(const std::string& output) {
  return output + ".shard";
}

void write_shard_note(const std::string& output, const ShardNote& note) {
  write_file_atomically(shard_note_of(output), to_json(note).dump(2) + "\n");
}

MergedSweep merge_shards(const std::vector<std::string>& tables, const std::string& output) {
  std::vector<Shard> shards;
  for (const std::string& table : tables) {
    shards.push_back(read_shard(table));
  }
  require_one_sweep(shards);
  require_each_once(shards);
  std::sort(shards.begin(), shards.end(), [](const Shard& left, const Shard& right) {
    return left.note.shard.index < right.note.shard.index;
  });
  AtomicFile file(output);
  std::vector<std::unique_ptr<Records>> records;
  for (const Shard& shard : shards) {
    records.push_back(std::make_unique<Records>(shard));
    const std::string header = records.back()->next();
    file.write(records.size() == 1 ? header : "");
  }
  MergedSweep merged{.rows = shards.front().note.cells};
  for (std::size_t row = 0; row < merged.rows; ++row) {
    const std::string record = records[row % records.size()]->next();
    if (record.empty())
      refuse_table(shards[row % shards.size()].table, changed_since);
    merged.errors += record.ends_with(",\n") ? 0 : 1;
    file.write(record);
  }
  for (const auto& each : records) {
    each->require_unchanged();
  }
  file.commit();
  return merged;
}

}  // namespace lockstep
