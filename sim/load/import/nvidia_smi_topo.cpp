// nvidia-smi topo -m: a matrix of words between GPUs and NICs, with the NUMA node of each GPU.
//
// Idea:      the header names the columns; a row has one word a column, and rows that a terminal wrapped are put together
//            again. What a listing of nvidia-smi -L in the same file calls the GPUs is taken as well.
// Invariant: the matrix is whole and symmetric, or it is refused with the line.
// Reference: nvidia-smi's own legend; "SOC" is what drivers before 384 print for SYS.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "sim/base/error.h"
#include "sim/base/printable.h"
#include "sim/load/import/machine_document.h"
#include "sim/load/import/printed_table.h"

namespace lockstep {
namespace {

struct Cell {
  std::int64_t links = 0;  // NV#
  PciePath path = PciePath::unknown;
  bool is_self = false;
  bool operator==(const Cell&) const = default;
};

std::optional<Cell> cell_of(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, PciePath>, 6> paths{{{"PIX", PciePath::pix},
                                                                        {"PXB", PciePath::pxb},
                                                                        {"PHB", PciePath::phb},
                                                                        {"NODE", PciePath::node},
                                                                        {"SYS", PciePath::sys},
                                                                        {"SOC", PciePath::sys}}};
  if (word == "X")
    return Cell{.is_self = true};
  if (word.starts_with("NV") && number_of(word.substr(2)) > 0 && number_of(word.substr(2)) <= 1000)
    return Cell{.links = number_of(word.substr(2))};
  const auto found =
      std::find_if(paths.begin(), paths.end(), [&](const auto& entry) { return entry.first == word; });
  return found == paths.end() ? std::nullopt : std::optional(Cell{.path = found->second});
}

bool is_gpu(std::string_view word) {
  return word.starts_with("GPU") && number_of(word.substr(3)) >= 0;
}

struct Row {
  std::size_t line = 0;
  std::vector<std::string> words;  // after the device's name
};

// The words of the file's table, before anything is believed.
struct Table {
  std::size_t header_line = 0;
  std::vector<std::string> devices;  // GPUs first, as nvidia-smi prints them
  std::vector<std::string> columns;  // "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"
  std::vector<Row> rows;
  std::map<std::string, std::string> nic_names;  // of the NIC legend: NIC0 is mlx5_0
  std::map<std::string, std::string> gpu_names;  // of nvidia-smi -L: "0" is NVIDIA A100-SXM4-40GB
};

class TableReader {
 public:
  TableReader(const std::vector<PrintedLine>& lines, const std::string& file) : lines_(lines), file_(file) {}

  Table read() {
    read_header();
    for (; at_ < lines_.size() && !is_end(lines_[at_].text); ++at_) read_row(lines_[at_]);
    for (const PrintedLine& line : lines_) read_names(line.text);
    check();
    return std::move(table_);
  }

 private:
  [[noreturn]] void refuse(std::size_t line, const std::string& what) const {
    throw ConfigError(fmt::format("{}:{}: {}", file_, line, what));
  }
  static bool is_end(const std::string& text) {
    return text.starts_with("Legend") || text.starts_with("NIC Legend");
  }
  bool names_a_device(const std::vector<std::string>& words) const {
    return words.size() > 1 &&
           std::find(table_.devices.begin(), table_.devices.end(), words[0]) != table_.devices.end();
  }
  void read_header();
  void add_to_header(const std::vector<std::string>& words);
  void read_row(const PrintedLine& line);
  void read_names(const std::string& text);
  void check() const;

  const std::vector<PrintedLine>& lines_;
  const std::string& file_;
  std::size_t at_ = 0;
  Table table_ = {};
};

void TableReader::add_to_header(const std::vector<std::string>& words) {
  for (std::size_t word = 0; word < words.size(); ++word) {
    const bool is_pair = word + 1 < words.size() && words[word + 1] == "Affinity";
    if (words[word] == "CPU" || words[word] == "NUMA" || words[word] == "GPU") {
      const std::size_t length = is_pair ? 2 : words[word] == "GPU" ? 3 : 1;
      const std::size_t end = std::min(word + length, words.size());
      table_.columns.push_back(
          fmt::format("{}", fmt::join(words.begin() + static_cast<std::ptrdiff_t>(word),
                                      words.begin() + static_cast<std::ptrdiff_t>(end), " ")));
      word = end - 1;
    } else {
      table_.devices.push_back(words[word]);
    }
  }
}

// Up to the first row; a wrapped header goes on in the lines between.
void TableReader::read_header() {
  for (; at_ < lines_.size() && table_.header_line == 0; ++at_) {
    const std::vector<std::string> words = words_of(lines_[at_].text);
    if (words.empty() || words[0] != "GPU0" || (words.size() > 1 && cell_of(words[1])))
      continue;
    table_.header_line = lines_[at_].number;
    add_to_header(words);
  }
  if (table_.header_line == 0)
    throw ConfigError(fmt::format(
        "{}: found no table of nvidia-smi topo -m, expected a line that begins with GPU0", file_));
  for (; at_ < lines_.size(); ++at_) {
    const std::vector<std::string> words = words_of(lines_[at_].text);
    if (names_a_device(words) && cell_of(words[1]))
      return;
    add_to_header(words);
    if (table_.devices.size() > 2 * most_imported_devices)
      refuse(lines_[at_].number, "found no row below the header");
  }
  refuse(table_.header_line, "found a header and no row below it: the listing was cut off");
}

void TableReader::read_row(const PrintedLine& line) {
  const std::vector<std::string> words = words_of(line.text);
  if (words.empty())
    return;
  if (names_a_device(words)) {
    table_.rows.push_back({line.number, {words.begin() + 1, words.end()}});
    return;
  }
  const std::size_t wanted = table_.devices.size() + table_.columns.size() * 2;
  Row& row = table_.rows.back();
  const bool goes_on =
      row.words.size() < table_.devices.size() && (cell_of(words[0]) || number_of(words[0]) >= 0);
  if (goes_on && row.words.size() + words.size() <= wanted)
    row.words.insert(row.words.end(), words.begin(), words.end());
  else if (is_gpu(words[0]) || words[0].starts_with("NIC") || words[0].starts_with("mlx"))
    refuse(
        line.number,
        fmt::format(
            "found a row of {}, which the header (line {}) does not name: the listing's lines were cut off",
            printable_name(words[0]), table_.header_line));
}

// "GPU 0: NVIDIA A100-SXM4-40GB (UUID: ...)", "GPU 0,1: NVIDIA H100 80GB HBM3", "  NIC0: mlx5_0"
void TableReader::read_names(const std::string& text) {
  const std::size_t colon = text.find(": ");
  const std::vector<std::string> words =
      words_of(std::string_view(text).substr(0, std::min(colon, text.size())));
  if (colon == std::string::npos || words.empty() || words.size() > 2)
    return;
  const std::string name = text.substr(colon + 2, text.find(" (UUID") - colon - 2);
  if (words.size() == 1 && words[0].starts_with("NIC") && number_of(words[0].substr(3)) >= 0)
    table_.nic_names[words[0]] = name;
  if (words.size() == 2 && words[0] == "GPU" &&
      words[1].find_first_not_of("0123456789,") == std::string::npos)
    table_.gpu_names[words[1]] = name;
}

void TableReader::check() const {
  const std::size_t devices = table_.devices.size();
  for (const Row& row : table_.rows)
    if (row.words.size() < devices)
      refuse(
          row.line,
          fmt::format("found {} entries, expected one for each of the {} devices that the header (line {}) "
                      "names: the listing's lines were cut off",
                      row.words.size(), devices, table_.header_line));
  if (table_.rows.size() != devices)
    refuse(table_.rows.back().line,
           fmt::format("found {} rows, expected one for each of the {} devices of the header (line {})",
                       table_.rows.size(), devices, table_.header_line));
}

class Matrix {
 public:
  Matrix(const Table& table, const std::string& file) : table_(table), file_(file) {
    for (const Row& row : table.rows) read(row);
    for (std::size_t row = 0; row < cells_.size(); ++row)
      for (std::size_t column = 0; column <= row; ++column) check(row, column);
  }

  const Cell& at(std::size_t row, std::size_t column) const { return cells_[row][column]; }

 private:
  void read(const Row& row) {
    std::vector<Cell>& cells = cells_.emplace_back();
    for (std::size_t column = 0; column < table_.devices.size(); ++column) {
      const std::optional<Cell> cell = cell_of(row.words[column]);
      if (!cell)
        refuse(row, fmt::format("found \"{}\" below {}, expected X, NV#, PIX, PXB, PHB, NODE or SYS",
                                printable_name(row.words[column]), printable_name(table_.devices[column])));
      cells.push_back(*cell);
    }
  }
  void check(std::size_t row, std::size_t column) const {
    if (cells_[row][column] == cells_[column][row] && cells_[row][column].is_self == (row == column))
      return;
    refuse(table_.rows[row],
           fmt::format("found \"{}\" from {} to {} and \"{}\" back (line {}), expected a symmetric matrix",
                       table_.rows[row].words[column], printable_name(table_.devices[row]),
                       printable_name(table_.devices[column]), table_.rows[column].words[row],
                       table_.rows[column].line));
  }
  [[noreturn]] void refuse(const Row& row, const std::string& what) const {
    throw ConfigError(fmt::format("{}:{}: {}", file_, row.line, what));
  }

  const Table& table_;
  const std::string& file_;
  std::vector<std::vector<Cell>> cells_ = {};
};

// The node in a row's last columns; where one of them is empty it is the CPUs' that is. -1: not said.
std::int64_t numa_node(const Table& table, const Row& row) {
  const auto column = std::find(table.columns.begin(), table.columns.end(), "NUMA Affinity");
  if (column == table.columns.end())
    return -1;
  const std::size_t values = row.words.size() - table.devices.size();
  const auto from_right = static_cast<std::size_t>(table.columns.end() - column);
  if (values + 1 < table.columns.size() || values < from_right || values > table.columns.size())
    return -1;
  const std::string& value = row.words[row.words.size() - from_right];
  if (values < table.columns.size() && table.columns.size() < 3)
    return -1;  // which of the two is missing cannot be told
  return number_of(value.substr(0, value.find_first_of("-,")));
}

std::size_t count_gpus(const Table& table, const std::string& file) {
  const auto gpus =
      static_cast<std::size_t>(std::count_if(table.devices.begin(), table.devices.end(), is_gpu));
  const std::size_t nics = table.devices.size() - gpus;
  if (gpus > most_imported_devices || nics > most_imported_devices)
    throw ConfigError(fmt::format("{}:{}: found {} GPUs and {} NICs, expected at most {} of each", file,
                                  table.header_line, gpus, nics, most_imported_devices));
  for (std::size_t device = 0; device < table.devices.size(); ++device) {
    const std::string expected = device < gpus ? fmt::format("GPU{}", device) : "";
    if (is_gpu(table.devices[device]) != (device < gpus) ||
        (device < gpus && table.devices[device] != expected))
      throw ConfigError(
          fmt::format("{}:{}: found {} in the header, expected GPU0 to GPU{} in order, then NICs", file,
                      table.header_line, printable_name(table.devices[device]), gpus - 1));
  }
  return gpus;
}

void add_nics(const Table& table, const Matrix& matrix, MachineFacts& facts) {
  facts.has_nics = true;
  for (std::size_t device = facts.gpus; device < table.devices.size(); ++device) {
    const auto named = table.nic_names.find(table.devices[device]);
    NicFacts& nic = facts.nics.emplace_back();
    nic.name = named == table.nic_names.end() ? table.devices[device] : named->second;
    for (std::size_t gpu = 0; gpu < facts.gpus; ++gpu) nic.to_gpus.push_back(matrix.at(device, gpu).path);
  }
}

MachineFacts facts_of(const Table& table, const std::string& file) {
  MachineFacts facts{.gpus = count_gpus(table, file)};
  const Matrix matrix(table, file);
  for (std::size_t gpu = 0; gpu < facts.gpus; ++gpu) {
    std::vector<std::int64_t>& links = facts.peer_links.emplace_back();
    std::vector<PciePath>& paths = facts.gpu_paths.emplace_back();
    for (std::size_t other = 0; other < facts.gpus; ++other) {
      links.push_back(matrix.at(gpu, other).links);
      paths.push_back(matrix.at(gpu, other).path);
    }
    facts.numa.push_back(numa_node(table, table.rows[gpu]));
    facts.shows_peer_links = false;
  }
  for (const auto& links : facts.peer_links)
    facts.shows_peer_links |=
        std::any_of(links.begin(), links.end(), [](std::int64_t count) { return count > 0; });
  for (const auto& [gpu, name] : table.gpu_names) facts.gpu_names.push_back(name);
  facts.sockets = count_sockets(facts.numa);
  add_nics(table, matrix, facts);
  return facts;
}

std::vector<KeyUse> keys_of(const Table& table, const MachineFacts& facts) {
  std::vector<KeyUse> keys{
      {"GPU0 to GPU" + std::to_string(facts.gpus - 1), KeyFate::used, "gpus, gpu_links, host.pcie_switches"}};
  for (const std::string& column : table.columns) {
    const bool is_node = column == "NUMA Affinity";
    keys.push_back({column, is_node && facts.sockets > 0 ? KeyFate::used : KeyFate::left_aside,
                    is_node && facts.sockets > 0 ? "host.sockets"
                    : is_node                    ? "its nodes may be parts of sockets"
                    : column == "CPU Affinity"   ? "ranks are taken to run on cores near their GPU"
                                                 : "memory of GPUs as NUMA nodes is not simulated"});
  }
  if (!table.gpu_names.empty())
    keys.push_back({"nvidia-smi -L", KeyFate::used, "gpu"});
  return keys;
}

Imported import_matrix(const ImportRequest& request) {
  const std::vector<PrintedLine> lines = printed_lines(read_dump(request));
  const Table table = TableReader(lines, request.file_name).read();
  const MachineFacts facts = facts_of(table, request.file_name);
  return write_machine(facts, request, keys_of(table, facts));
}

bool recognises_matrix(std::string_view beginning) {
  for (const PrintedLine& line : printed_lines(beginning)) {
    const std::vector<std::string> words = words_of(line.text);
    if (words.size() > 1 && words[0] == "GPU0" && words[1] == "X")
      return true;
  }
  return false;
}

const Registration<Importer> nvidia_smi_topo_registration{"nvidia_smi_topo",
                                                          {.import = import_matrix,
                                                           .recognises = recognises_matrix,
                                                           .makes = ImportedThing::machine,
                                                           .description = "what nvidia-smi topo -m printed",
                                                           .asks_for = machine_questions()}};

}  // namespace
}  // namespace lockstep
