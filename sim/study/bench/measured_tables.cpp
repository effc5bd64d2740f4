#include "sim/study/bench/measured_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/load/hardware/read_hardware.h"
#include "sim/load/reading/fields.h"
#include "sim/study/bench/collective_of_table.h"

namespace lockstep {
namespace {

constexpr const char* schema = "lockstep.collective_tables/1";
constexpr std::int64_t kibi = 1024;

void read_rows(MeasuredTable& table, const CollectiveLog& log) {
  for (const CollectiveLogRow& row : log.rows)
    if (row.size > Bytes{0} && row.time > Duration::zero())
      table.rows.push_back({row.size, row.time, row.line});
  table.skipped_lines = describe_skipped_lines(log);
}

StatedChoice read_choice(const JsonReader& json) {
  StatedChoice choice{.from = json.required("from").bytes(),
                      .to = json.required("to").bytes(),
                      .algorithm = json.required("algorithm").text(),
                      .protocol = text_or(json, "protocol", "")};
  if (choice.from > choice.to)
    json.problem("expected a range of sizes that ends where it begins or later");
  json.finish();
  return choice;
}

MeasuredTable read_table(const JsonReader& json) {
  MeasuredTable table;
  table.id = json.required("id").text();
  table.source = json.required("source").text();
  table.group = json.required("group").text();
  table.machine = json.required("machine").text();
  table.profile = text_or(json, "profile", table.machine);
  table.network = text_or(json, "network", "");
  const std::string collective = json.required("collective").one_of(collective_op_names());
  if (const CollectiveOp* op = find_collective_op(collective))
    table.op = *op;
  table.nodes = json.required("nodes").integer(1, 1'000'000);
  table.gpus_per_node = json.required("gpus_per_node").integer(1, 1'000);
  table.healthy = boolean_or(json, "healthy", true);
  table.single_process = boolean_or(json, "single_process", false);
  table.library_version = text_or(json, "library_version", "");
  table.algorithm = text_or(json, "algorithm", "auto");
  table.protocol = text_or(json, "protocol", "auto");
  if (const auto protocols = json.optional("protocols"))
    table.protocols = read_protocols_left(*protocols);
  if (const auto chosen = json.optional("chosen"))
    for (const JsonReader& element : chosen->elements()) table.chosen.push_back(read_choice(element));
  text_or(json, "notes", "");
  return table;
}

}  // namespace

std::string MeasuredTable::cell() const {
  return fmt::format("{}, {}, {} ranks", group, collective_op_name(op), ranks());
}

const StatedChoice* MeasuredTable::chosen_for(Bytes size) const {
  const auto found = std::find_if(chosen.begin(), chosen.end(), [&](const StatedChoice& choice) {
    return choice.from <= size && size <= choice.to;
  });
  return found == chosen.end() ? nullptr : &*found;
}

std::vector<MeasuredTable> read_measured_tables(const std::string& index_file) {
  JsonDocument document = JsonDocument::from_file(index_file);
  const JsonReader root = document.root();
  root.required("schema").one_of(std::array<std::string, 1>{schema});
  document.throw_if_problems();  // of another schema nothing else would be as expected
  text_or(root, "about", "");
  const std::filesystem::path folder = std::filesystem::path(index_file).parent_path();
  std::vector<MeasuredTable> tables;
  for (const JsonReader& element : root.required("tables").elements()) {
    MeasuredTable table = read_table(element);
    const std::string file = element.required("file").text();
    element.finish();
    if (!file.empty()) {
      const CollectiveLog log = read_collective_log(folder / file);
      const auto other =
          table.healthy ? describe_other_collective(log, table.op, table.ranks()) : std::nullopt;
      if (other)
        element.problem(*other);
      read_rows(table, log);
    }
    tables.push_back(std::move(table));
  }
  root.finish();
  document.throw_if_problems();
  return tables;
}

std::map<std::string, std::vector<MeasuredTable>> tables_by_profile(std::span<const MeasuredTable> tables) {
  std::map<std::string, std::vector<MeasuredTable>> result;
  for (const MeasuredTable& table : tables)
    if (!table.rows.empty())
      result[table.profile].push_back(table);
  return result;
}

MeasuredTable table_of_log(const CollectiveLog& log, const std::string& machine) {
  if (!log.op)
    throw ConfigError(
        log.op_name.empty()
            ? fmt::format("{}: the log does not say which collective it measured; keep its "
                          "header lines, or name it with --collective",
                          log.file)
            : fmt::format("{}: found the collective \"{}\", which is not simulated", log.file, log.op_name));
  if (!log.ranks)
    throw ConfigError(fmt::format(
        "{}: the log does not list its devices; keep its header lines, or give --nodes and --gpus-per-node",
        log.file));
  const std::int64_t nodes = log.nodes.value_or(1);
  if (*log.ranks % nodes != 0)
    throw ConfigError(fmt::format("{}: found {} ranks on {} nodes, expected as many GPUs on every node",
                                  log.file, *log.ranks, nodes));
  MeasuredTable table{.id = log.file, .source = log.file, .group = log.file, .machine = machine};
  table.profile = machine;
  table.op = *log.op;
  table.nodes = nodes;
  table.gpus_per_node = *log.ranks / nodes;
  table.library_version = log.library_version;
  read_rows(table, log);
  return table;
}

SizeClass size_class(Bytes size) {
  if (size < Bytes{64 * kibi})
    return SizeClass::small;
  return size < Bytes{kibi * kibi} ? SizeClass::middle : SizeClass::large;
}

const char* size_class_name(SizeClass size_class) {
  static constexpr std::array names{"below 64 KiB", "64 KiB to 1 MiB", "1 MiB and more"};
  return names[static_cast<std::size_t>(size_class)];
}

Bytes first_of(SizeClass size_class) {
  static constexpr std::array firsts{std::int64_t{0}, 64 * kibi, kibi * kibi};
  return Bytes{firsts[static_cast<std::size_t>(size_class)]};
}

}  // namespace lockstep
