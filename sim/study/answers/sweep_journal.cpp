#include "sim/study/answers/sweep_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "sim/base/error.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view schema = "lockstep.sweep_journal/2";

std::string describe(int error_number) {
  return std::generic_category().message(error_number);
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 65536> block{};
  for (ssize_t got = 1; got > 0;) {
    got = ::read(descriptor, block.data(), block.size());
    text.append(block.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  }
  return text;
}

// Nothing for a line that is not a finished cell: it was torn.
std::optional<SweepRow> read_row(const ordered_json& json) {
  const bool is_row = json.is_array() && json.size() == 3 && json[0].is_number_unsigned() &&
                      json[1].is_array() && json[2].is_string();
  if (!is_row) {
    return std::nullopt;
  }
  return SweepRow{.cell = json[0].get<std::size_t>(),
                  .results = json[1].get<std::vector<ordered_json>>(),
                  .error = json[2].get<std::string>()};
}

std::optional<FileState> read_file_state(const ordered_json& json) {
  const auto is_text = [&](const char* key) { return json.contains(key) && json[key].is_string(); };
  if (!json.is_object() || !is_text("file") || !is_text("fingerprint"))
    return std::nullopt;
  return FileState{json["file"].get<std::string>(), json["fingerprint"].get<std::string>()};
}

}  // namespace

SweepJournal::Descriptor::~Descriptor() {
  if (number >= 0) {
    ::close(number);
  }
}

SweepJournal::SweepJournal(Options options) : options_(std::move(options)) {
  open();
  lock();
  const std::string text = read_all(descriptor_.number);
  if (text.empty() || options_.earlier == EarlierCells::discard)
    start_over();
  else if (options_.earlier == EarlierCells::resume)
    read_back(text);
  else
    refuse(fmt::format("holds what an earlier sweep had finished ({} lines)",
                       std::count(text.begin(), text.end(), '\n')));
}

// Never through a link: what it leads to is not ours to write.
void SweepJournal::open() {
  constexpr int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  descriptor_.number = ::open(options_.path.c_str(), flags, 0666);
  const int error_number = errno;
  struct stat status {};
  if (descriptor_.number < 0 && error_number == ELOOP)
    refuse("is a link");
  if (descriptor_.number < 0)
    refuse(fmt::format("cannot be written ({})", describe(error_number)));
  if (::fstat(descriptor_.number, &status) != 0 || !S_ISREG(status.st_mode))
    refuse("is no regular file");
}

// The lock goes with the process, however it ends.
void SweepJournal::lock() const {
  if (::flock(descriptor_.number, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw ConfigError(
        fmt::format("{}: another sweep is writing it now; expected another -o for this one", options_.path));
  }
}

void SweepJournal::read_back(const std::string& text) {
  const std::size_t header_end = text.find('\n');
  if (header_end == std::string::npos && first_line().dump().starts_with(text))
    return start_over();  // killed within its first line
  if (header_end == std::string::npos || text.substr(0, header_end) != first_line().dump())
    refuse("is of another sweep: the scenario, --vary, --set, --shard or the program differs");
  std::size_t begin = header_end + 1;
  for (std::size_t end = text.find('\n', begin); end != std::string::npos; end = text.find('\n', begin)) {
    const ordered_json line = ordered_json::parse(std::string_view(text).substr(begin, end - begin), nullptr, false);
    if (!take_line(line, static_cast<std::int64_t>(begin)))
      break;
    begin = end + 1;
  }
  cut_after(begin);
}

// False: nothing that this sweep wrote.
bool SweepJournal::take_line(const ordered_json& line, std::int64_t place) {
  if (const auto state = read_file_state(line)) {
    check_file(*state);
    return true;
  }
  const auto row = read_row(line);
  if (!row || (options_.is_of_sweep && !options_.is_of_sweep(*row)))
    return false;
  finished_.push_back({.cell = row->cell, .place = place, .has_error = !row->error.empty()});
  return true;
}

void SweepJournal::check_file(const FileState& then) {
  const std::string now = options_.fingerprint_of(then.file);
  if (now.empty() || now != then.fingerprint)
    refuse(fmt::format("holds cells that read {}, which has {} since", then.file,
                       now.empty() ? "gone" : "changed"));
  files_.insert(then.file);
}

void SweepJournal::start_over() {
  cut_after(0);
  write_line(first_line());
}

void SweepJournal::cut_after(std::size_t bytes) {
  if (::ftruncate(descriptor_.number, static_cast<off_t>(bytes)) != 0) {
    throw EnvironmentError(fmt::format("{}: writing failed: {}", options_.path, describe(errno)));
  }
  end_ = static_cast<std::int64_t>(bytes);
}

void SweepJournal::note(const std::vector<FileState>& files) {
  for (const auto& [file, fingerprint] : files)
    if (files_.insert(file).second)
      write_line({{"file", file}, {"fingerprint", fingerprint}});
}

std::int64_t SweepJournal::append(const SweepRow& row) {
  const std::int64_t place = end_;
  write_line({row.cell, row.results, row.error});
  return place;
}

SweepRow SweepJournal::read(std::int64_t place) const {
  std::string line;
  std::array<char, 4096> block{};
  while (line.find('\n') == std::string::npos) {
    const ssize_t got = ::pread(descriptor_.number, block.data(), block.size(),
                                static_cast<off_t>(place) + static_cast<off_t>(line.size()));
    if (got <= 0)
      throw EnvironmentError(fmt::format("{}: reading failed: {}", options_.path, describe(errno)));
    line.append(block.data(), static_cast<std::size_t>(got));
  }
  line.resize(line.find('\n'));
  const auto row = read_row(ordered_json::parse(line, nullptr, false));
  if (!row)
    throw EnvironmentError(fmt::format("{}: was changed by somebody else", options_.path));
  return *row;
}

void SweepJournal::write_line(const ordered_json& line) {
  const std::string text = line.dump() + "\n";
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_.number, rest.data(), rest.size());
    if (written < 0 && errno != EINTR) {
      throw EnvironmentError(
          fmt::format("{}: writing failed: {}; what was finished before is kept: go on with "
                      "--resume",
                      options_.path, describe(errno)));
    }
    rest.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
  end_ += static_cast<std::int64_t>(text.size());
}

void SweepJournal::remove() {
  ::unlink(options_.path.c_str());
}

ordered_json SweepJournal::first_line() const {
  return {{"schema", schema},
          {"fingerprint", options_.fingerprint},
          {"go_on", "the same command with --resume; --discard begins again"}};
}

void SweepJournal::refuse(const std::string& found) const {
  throw ConfigError(fmt::format(
      "{}: {}; finished cells are kept there until the CSV is complete: --resume goes on with those of this "
      "sweep, --discard begins again",
      options_.path, found));
}

}  // namespace lockstep
