#include "sim/load/import/printed_table.h"

#include <algorithm>

namespace lockstep {
namespace {

bool is_control(char letter) {
  return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
}

bool is_blank(char letter) {
  return letter == ' ' || letter == '\t';
}

// Past the sequence that begins at `at` with an escape.
std::size_t after_sequence(std::string_view text, std::size_t at) {
  if (++at >= text.size() || text[at] != '[')
    return std::min(at + 1, text.size());
  do ++at;
  while (at < text.size() && (text[at] < '@' || text[at] > '~'));
  return std::min(at + 1, text.size());
}

std::string cleaned(std::string_view line) {
  std::string text;
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == '\x1b') {
      at = after_sequence(line, at);
      continue;
    }
    if (line[at] == '\t')
      text += ' ';
    else if (!is_control(line[at]))
      text += line[at];
    ++at;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

std::vector<PrintedLine> printed_lines(std::string_view text) {
  std::vector<PrintedLine> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back({lines.size() + 1, cleaned(text.substr(0, end))});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    if (is_blank(text[at])) {
      ++at;
      continue;
    }
    const auto end = std::find_if(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), is_blank);
    words.emplace_back(text.begin() + static_cast<std::ptrdiff_t>(at), end);
    at = static_cast<std::size_t>(end - text.begin());
  }
  return words;
}

long number_of(std::string_view word) {
  const bool is_number = !word.empty() && word.size() <= 9 &&
                         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? std::stol(std::string(word)) : -1;
}

}  // namespace lockstep
