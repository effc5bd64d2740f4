#include "sim/study/sweep_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

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

constexpr std::string_view schema = "lockstep.sweep_journal/1";

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
std::optional<SweepRow> read_row(std::string_view line) {
  const ordered_json json = ordered_json::parse(line, nullptr, false);
  const bool is_row = json.is_array() && json.size() == 3 && json[0].is_number_unsigned() &&
                      json[1].is_array() && json[2].is_string();
  if (!is_row) {
    return std::nullopt;
  }
  return SweepRow{.cell = json[0].get<std::size_t>(),
                  .results = json[1].get<std::vector<ordered_json>>(),
                  .error = json[2].get<std::string>()};
}

}  // namespace

SweepJournal::Descriptor::~Descriptor() {
  if (number >= 0) {
    ::close(number);
  }
}

SweepJournal::SweepJournal(Options options)
    : options_(std::move(options)),
      descriptor_{::open(options_.path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)} {
  if (descriptor_.number < 0) {
    throw ConfigError(
        fmt::format("{}: cannot be written ({}); finished cells are kept there until the CSV is complete",
                    options_.path, describe(errno)));
  }
  lock();
  if (options_.resume) {
    read_back();
  } else {
    start_over();
  }
}

// The lock goes with the process, however it ends.
void SweepJournal::lock() const {
  if (::flock(descriptor_.number, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw ConfigError(
        fmt::format("{}: another sweep is writing it now; expected another -o for this one", options_.path));
  }
}

void SweepJournal::read_back() {
  const std::string text = read_all(descriptor_.number);
  const std::size_t header_end = text.find('\n');
  if (header_end == std::string::npos) {
    start_over();
    return;
  }
  if (text.substr(0, header_end) != first_line().dump()) {
    refuse_other_sweep();
  }
  std::size_t begin = header_end + 1;
  for (std::size_t end = text.find('\n', begin); end != std::string::npos; end = text.find('\n', begin)) {
    const auto row = read_row(std::string_view(text).substr(begin, end - begin));
    if (!row) {
      break;
    }
    finished_.push_back(*row);
    begin = end + 1;
  }
  cut_after(begin);
}

void SweepJournal::start_over() {
  cut_after(0);
  write_line(first_line());
}

void SweepJournal::cut_after(std::size_t bytes) {
  if (::ftruncate(descriptor_.number, static_cast<off_t>(bytes)) != 0) {
    throw EnvironmentError(fmt::format("{}: writing failed: {}", options_.path, describe(errno)));
  }
}

void SweepJournal::append(const SweepRow& row) {
  write_line({row.cell, row.results, row.error});
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
}

void SweepJournal::remove() {
  ::unlink(options_.path.c_str());
}

ordered_json SweepJournal::first_line() const {
  return {{"schema", schema}, {"fingerprint", options_.fingerprint}};
}

void SweepJournal::refuse_other_sweep() const {
  throw ConfigError(
      fmt::format("{}: holds cells of another sweep: the scenario, a profile it names, --vary, --set "
                  "or --shard differs; expected the same command as before, or none of --resume to "
                  "begin again",
                  options_.path));
}

}  // namespace lockstep
