#include "sim/study/logs/collective_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "sim/base/error.h"
#include "sim/base/quantity_text.h"
#include "sim/study/logs/collective_log_row.h"
#include "sim/study/logs/collective_log_run.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t largest_log = std::int64_t{64} << 20;
constexpr std::int64_t most_without_a_sign = std::int64_t{1} << 20;
constexpr std::size_t longest_line = std::size_t{64} << 10;
constexpr std::size_t most_notes = 20;
constexpr std::size_t shown_lines = 3;

// Printable, and short enough for one line of a message.
std::string shown(std::string_view text) {
  constexpr std::size_t longest = 100;
  std::string result(text.substr(0, longest));
  std::replace_if(
      result.begin(), result.end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return result + (text.size() > longest ? "..." : "");
}

// As messages say it.
std::string name_of(const fs::path& file) {
  return file == standard_input ? "standard input" : file.string();
}

// A file's lines, one in memory at a time; of a longer one than the longest its end is passed over.
class LogLines {
 public:
  explicit LogLines(const fs::path& file) : file_(name_of(file)), buffer_(longest_line) {
    if (file == standard_input) {
      is_piped_ = true;
      return;
    }
    std::error_code error;
    const fs::file_status status = fs::status(file, error);
    is_piped_ = fs::is_fifo(status);
    if (status.type() == fs::file_type::not_found) {
      refuse("found no such file");
    }
    if (fs::is_directory(status)) {
      refuse("found a directory");
    }
    if (fs::is_regular_file(status)) {
      const std::uintmax_t size = fs::file_size(file, error);
      refuse_above_largest(error ? 0 : size);
    }
    opened_.open(file, std::ios::binary);
    if (!opened_.is_open()) {
      refuse("cannot be read");
    }
    stream_ = &opened_;
  }

  std::int64_t number() const { return number_; }
  std::int64_t bytes() const { return bytes_; }
  bool is_piped() const { return is_piped_; }
  // The last line had no end.
  bool is_cut() const { return is_cut_; }

  std::optional<std::string_view> next() {
    stream_->getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    std::size_t length = count_taken();
    if (length == 0) {
      return std::nullopt;
    }
    if (stream_->fail()) {
      stream_->clear();
      stream_->ignore(largest_log + 1, '\n');
      count_taken();
    } else if (!stream_->eof()) {
      --length;  // the newline
    } else {
      is_cut_ = true;
    }
    ++number_;
    return std::string_view(buffer_.data(), length);
  }

 private:
  std::size_t count_taken() {
    if (stream_->bad()) {
      refuse("cannot be read");
    }
    bytes_ += stream_->gcount();
    refuse_above_largest(static_cast<std::uintmax_t>(bytes_));
    return static_cast<std::size_t>(stream_->gcount());
  }
  void refuse_above_largest(std::uintmax_t bytes) const {
    if (bytes > static_cast<std::uintmax_t>(largest_log)) {
      refuse("found more than " + format_bytes(Bytes{largest_log}));
    }
  }
  [[noreturn]] void refuse(const std::string& found) const {
    throw ConfigError(fmt::format("{}: {}, expected the log of a collective benchmark", file_, found));
  }

  std::string file_;
  std::ifstream opened_;
  std::istream* stream_ = &std::cin;
  std::vector<char> buffer_;
  std::int64_t number_ = 0;
  std::int64_t bytes_ = 0;
  bool is_piped_ = false;
  bool is_cut_ = false;
};

// What nccl-tests prints below its last row, in any release.
bool ends_a_run(std::string_view line) {
  return line.find("Out of bounds values") != line.npos || line.find("Avg bus bandwidth") != line.npos;
}

bool tells_failure(std::string_view line) {
  return line.find("Out of bounds values") != line.npos && line.find("FAILED") != line.npos;
}

class LogReader {
 public:
  explicit LogReader(std::string file) { log_.file = std::move(file); }

  // Whether anything so far is of such a benchmark or of its library.
  bool has_seen_a_sign() const { return has_seen_a_sign_; }

  void read(std::int64_t number, std::string_view line) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    line.remove_prefix(line.starts_with(byte_order_mark) ? byte_order_mark.size() : 0);
    read_facts(number, line);
    has_ended_ |= ends_a_run(line);
    log_.has_failed |= tells_failure(line);
    const std::string_view text = without_launcher_prefix(line);
    if (auto layout = read_log_header(number, text)) {
      layout_ = *std::move(layout);
      has_seen_a_sign_ = true;
    } else if (devices_.read(number, text)) {
      has_seen_a_sign_ = true;
    } else if (looks_like_row(text, layout_)) {
      read_row(number, text);
    } else if (!text.empty() && !text.starts_with('#') && strangers_.size() < shown_lines) {
      const bool is_header = text.starts_with("size_bytes");
      strangers_.push_back(
          {.line = number,
           .text = fmt::format("\"{}\" is {}", shown(text),
                               is_header ? "a header without the column time_us" : "no row")});
    }
  }

  // A pipe whose writer is gone: what it left of its last line counts for nothing.
  void end_pipe(std::int64_t last_line, bool is_cut) {
    if (is_cut && !log_.rows.empty() && log_.rows.back().line == last_line) {
      log_.rows.pop_back();
      skip(last_line, "the pipe ended within it");
    }
    if (!has_ended_ && layout_.line > 0 && devices_.has_any()) {
      log_.cut_short = "the pipe ended before the benchmark did: no line says \"Avg bus bandwidth\"";
    }
  }

  // `lines` were read of the file, all unless it was given up.
  CollectiveLog finish(std::int64_t lines, bool gave_up) {
    if (log_.rows.empty()) {
      refuse_without_rows(lines, gave_up);
    }
    if (test_) {
      const CollectiveOp* op = find_collective_op(test_->name);
      log_.op = op == nullptr ? std::nullopt : std::optional(*op);
      log_.op_name = test_->name;
    }
    if (placement_) {
      log_.ranks = placement_->ranks;
      log_.nodes = placement_->nodes;
      log_.gpus_per_node = placement_->ranks_per_node;
    }
    log_.gpu = devices_.gpus();
    log_.data_type = common_data_type();
    return std::move(log_);
  }

 private:
  void read_facts(std::int64_t number, std::string_view line) {
    if (const auto concluded = concluded_test_in(number, line); concluded && !log_.rows.empty()) {
      check_same_test(number, *concluded);
    } else {
      tests_.read(number, line);
    }
    if (line.find("CCL") == line.npos && line.find("nccl") == line.npos) {
      return;
    }
    has_seen_a_sign_ = true;
    if (log_.library_version.empty()) {
      log_.library_version = library_version_in(line);
    }
  }

  void read_row(std::int64_t number, std::string_view text) {
    if (has_decimal_comma(text, layout_)) {
      throw ConfigError(fmt::format(
          "{}:{}: found \"{}\", expected numbers with a decimal point, and no comma inside a number",
          log_.file, number, shown(text)));
    }
    auto parsed = read_log_row(text, layout_);
    if (const auto* failure = std::get_if<ParseFailure>(&parsed)) {
      skip(number, failure->message);
      return;
    }
    if (const auto named = tests_.take(test_ ? test_->name : "")) {
      check_same_test(number, *named);
    }
    if (const auto placement = devices_.take()) {
      check_same_placement(number, *placement);
    }
    has_seen_a_sign_ = true;
    log_.rows.push_back(std::get<CollectiveLogRow>(std::move(parsed)));
    log_.rows.back().line = number;
  }

  void skip(std::int64_t number, const std::string& why) {
    ++log_.skipped_lines;
    if (log_.notes.size() < most_notes) {
      log_.notes.push_back({.line = number, .text = shown(why)});
    }
  }

  void check_same_test(std::int64_t number, const NamedTest& named) {
    if (test_ && test_->name != named.name) {
      throw ConfigError(fmt::format(
          "{}:{}: found rows of {} (named on line {}) and of {} (named on line {}), expected one collective "
          "in a file (several files can be given)",
          log_.file, number, test_->name, test_->line, named.name, named.line));
    }
    test_ = test_ ? test_ : named;
  }

  void check_same_placement(std::int64_t number, const RankPlacement& found) {
    if (placement_ && (placement_->ranks != found.ranks || placement_->nodes != found.nodes)) {
      throw ConfigError(fmt::format(
          "{}:{}: found rows of {} ranks on {} nodes (listed on line {}) and of {} on {} (line {}), expected "
          "runs on as many in a file (several files can be given)",
          log_.file, number, placement_->ranks, placement_->nodes, placement_->line, found.ranks, found.nodes,
          found.line));
    }
    placement_ = placement_ ? placement_ : found;
  }

  std::string common_data_type() const {
    const std::string& first = log_.rows.front().data_type;
    const bool is_common = std::all_of(log_.rows.begin(), log_.rows.end(),
                                       [&](const CollectiveLogRow& row) { return row.data_type == first; });
    return is_common ? first : "";
  }

  [[noreturn]] void refuse_without_rows(std::int64_t lines, bool gave_up) const {
    std::vector<std::string> problems{fmt::format(
        "{}: found {}, expected what nccl-tests or rccl-tests print "
        "(size count type redop root time algbw busbw #wrong) or CSV with the header "
        "size_bytes,time_us,algbw_gbs,busbw_gbs",
        log_.file,
        lines == 0 ? "an empty file"
                   : fmt::format("no row of results in {}{} lines", gave_up ? "the first " : "", lines))};
    const bool has_header_alone = layout_.line > 0 && log_.notes.empty();
    const std::vector<CollectiveLogNote> header{{.line = layout_.line, .text = "no row follows this header"}};
    const std::vector<CollectiveLogNote>& unreadable = has_header_alone     ? header
                                                       : log_.notes.empty() ? strangers_
                                                                            : log_.notes;
    for (std::size_t place = 0; place < std::min(unreadable.size(), shown_lines); ++place) {
      problems.push_back(fmt::format("{}:{}: {}", log_.file, unreadable[place].line, unreadable[place].text));
    }
    throw ConfigError(problems);
  }

  CollectiveLog log_;
  LogLayout layout_ = layout_without_header();
  TestNames tests_;
  DeviceList devices_;
  std::optional<NamedTest> test_;
  std::optional<RankPlacement> placement_;
  std::vector<CollectiveLogNote> strangers_;  // the first lines that nothing here reads
  bool has_seen_a_sign_ = false;
  bool has_ended_ = false;
};

}  // namespace

std::vector<std::string> describe_skipped_lines(const CollectiveLog& log) {
  std::vector<std::string> sentences;
  for (const CollectiveLogNote& note : log.notes) {
    sentences.push_back(fmt::format("{}:{}: skipped a row: {}", log.file, note.line, note.text));
  }
  const auto noted = static_cast<std::int64_t>(log.notes.size());
  if (log.skipped_lines > noted) {
    sentences.push_back(
        fmt::format("{}: and {} more rows were skipped", log.file, log.skipped_lines - noted));
  }
  if (!log.cut_short.empty()) {
    sentences.push_back(fmt::format("{}: {}", log.file, log.cut_short));
  }
  return sentences;
}

CollectiveLog read_collective_log(const fs::path& file) {
  LogLines lines(file);
  LogReader reader(name_of(file));
  bool gave_up = false;
  while (!gave_up) {
    const auto line = lines.next();
    if (!line) {
      break;
    }
    reader.read(lines.number(), *line);
    gave_up = !reader.has_seen_a_sign() && lines.bytes() > most_without_a_sign;
  }
  if (lines.is_piped() && !gave_up) {
    reader.end_pipe(lines.number(), lines.is_cut());
  }
  return reader.finish(lines.number(), gave_up);
}

}  // namespace lockstep
