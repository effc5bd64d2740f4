#include "sim/base/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/nearest_name.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t deepest_nesting = 64;
constexpr std::size_t largest_file = std::size_t{64} << 20;
constexpr std::size_t most_neighbours = 4096;

bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// Where the first byte stands that no UTF-8 text without NUL contains.
std::optional<std::size_t> find_binary(std::string_view text) {
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t length = text[offset] == '\0' ? 0 : utf8_length(text.substr(offset));
    if (length == 0)
      return offset;
    offset += length;
  }
  return std::nullopt;
}

std::string describe_position(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const std::string_view in_line = before.substr(line_start);
  const auto column =
      1 + std::count_if(in_line.begin(), in_line.end(), [](char byte) { return !is_continuation(byte); });
  return fmt::format("{}:{}", line, column);
}

// Walks the text and tells how far the parser has read, which its callbacks do not.
class CountingIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}

  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    const CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) { return a.at_ == b.at_; }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return a.at_ != b.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

// Receives nlohmann's events; every function returns whether to go on, and `failure` says why not.
class Builder {
 public:
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(ordered_json::binary_t& /*value*/) { return fail("found a binary value, expected JSON text"); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) {
    return value > INT64_MAX ? fail_number(std::to_string(value)) : add(static_cast<std::int64_t>(value));
  }
  // Integers too large for 64 bits arrive here as well, already rounded.
  bool number_float(double value, const std::string& written) {
    return written.find_first_of(".eE") == std::string::npos ? fail_number(written) : add(value);
  }

  bool start_object(std::size_t /*unknown_size*/) { return open(ordered_json::object()); }
  bool end_object() { return close(); }
  bool start_array(std::size_t /*unknown_size*/) { return open(ordered_json::array()); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    Container& container = open_.back();
    container.key = name;
    if (!container.keys.insert(name).second) {
      return fail(fmt::format("found the key {} twice ({}), expected each key once", describe_value(name),
                              abbreviated(pointer_to_next())));
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) {
    // Behind "[json.exception.parse_error.101] parse error at line 1, column 2: ", as the place is said our
    // way.
    std::string_view reason = error.what();
    reason.remove_prefix(std::min(reason.size(), reason.find("] ") + 2));
    if (reason.starts_with("parse error at "))
      reason.remove_prefix(std::min(reason.size(), reason.find(": ") + 2));
    failure_offset_ = position == 0 ? 0 : position - 1;
    return fail(std::string(reason));
  }

  ordered_json& value() { return root_; }
  const std::string& failure() const { return failure_; }
  std::optional<std::size_t> failure_offset() const { return failure_offset_; }

 private:
  struct Container {
    ordered_json* value;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  bool add(ordered_json value) {
    place(std::move(value));
    return true;
  }

  // Pointers into containers stay valid: only the innermost open one grows, and nothing inside it is open.
  ordered_json* place(ordered_json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    ordered_json& parent = *open_.back().value;
    if (parent.is_array())
      return &parent.get_ref<ordered_json::array_t&>().emplace_back(std::move(value));
    // The map's own emplace searches for the key, which would make a large object quadratic.
    using Members = ordered_json::object_t::Container;
    Members& members = parent.get_ref<ordered_json::object_t&>();
    return &members.emplace_back(std::move(open_.back().key), std::move(value)).second;
  }

  bool open(ordered_json empty) {
    if (open_.size() == deepest_nesting) {
      return fail(fmt::format("found nesting deeper than {} levels, expected at most {}", deepest_nesting,
                              deepest_nesting));
    }
    ordered_json* value = place(std::move(empty));
    open_.push_back({.value = value, .key = {}, .keys = {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  bool fail(std::string message) {
    failure_ = std::move(message);
    return false;
  }
  bool fail_number(const std::string& written) {
    return fail(fmt::format("found {}, expected an integer of at most 64 bits", abbreviated(written)));
  }

  // The pointer of the member whose key was read last; members of open objects have moved their key into the
  // value.
  std::string pointer_to_next() const {
    std::string pointer;
    for (std::size_t level = 0; level + 1 < open_.size(); ++level) {
      const ordered_json& container = *open_[level].value;
      pointer = extended_pointer(
          pointer, container.is_array() ? std::to_string(container.size() - 1)
                                        : container.get_ref<const ordered_json::object_t&>().back().first);
    }
    return extended_pointer(pointer, open_.back().key);
  }

  ordered_json root_;
  std::vector<Container> open_;
  std::string failure_;
  std::optional<std::size_t> failure_offset_;
};

[[noreturn]] void refuse_text(std::string_view text, const std::string& file_name, std::size_t offset,
                              std::string_view message) {
  throw ConfigError(
      fmt::format("{}:{}: {}", file_name, describe_position(text, offset), abbreviated(message)));
}

[[noreturn]] void refuse_file(const std::string& path, std::string_view message) {
  throw ConfigError(fmt::format("{}: {}", path, message));
}

// Names beside the missing file, sorted because directories are not.
std::vector<std::string> neighbours(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::vector<std::string> names;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(folder, ignored), end;
       !ignored && entry != end && names.size() < most_neighbours; entry.increment(ignored))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void refuse_missing(const std::string& path) {
  const std::filesystem::path wanted(path);
  const auto nearest = nearest_name(wanted.filename().string(), neighbours(wanted));
  refuse_file(path, "found no such file, expected a readable JSON file" +
                        (nearest ? fmt::format("; did you mean \"{}\"?", *nearest) : ""));
}

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OpenFile = std::unique_ptr<std::FILE, FileCloser>;

OpenFile open_json_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    refuse_file(path, "found a directory, expected a readable JSON file");
  OpenFile file(std::fopen(path.c_str(), "rb"));
  if (!file && (errno == ENOENT || errno == ENOTDIR))
    refuse_missing(path);
  if (!file) {
    refuse_file(path, fmt::format("cannot be read ({}), expected a readable JSON file",
                                  std::generic_category().message(errno)));
  }
  return file;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80)
    return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length ||
      !std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(length), is_continuation))
    return 0;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool is_overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool is_out_of_range = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);
  return is_overlong || is_out_of_range ? 0 : length;
}

bool is_utf8(std::string_view text) {
  return !find_binary(text);
}

ordered_json parse_json_text(std::string_view text, const std::string& file_name) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    refuse_text(text, file_name, 0, "found an empty file, expected a JSON object");
  if (const auto offset = find_binary(text))
    refuse_text(text, file_name, *offset, "found binary data, expected JSON as UTF-8 text");
  const char* furthest = text.data();
  Builder builder;
  constexpr bool whole_text = true;
  constexpr bool with_comments = true;
  const CountingIterator begin(text.data(), &furthest);
  const CountingIterator end(text.data() + text.size(), &furthest);
  if (!ordered_json::sax_parse(begin, end, &builder, ordered_json::input_format_t::json, whole_text,
                               with_comments)) {
    const auto read = static_cast<std::size_t>(furthest - text.data());
    refuse_text(text, file_name, builder.failure_offset().value_or(read - std::min<std::size_t>(read, 1)),
                builder.failure());
  }
  return std::move(builder.value());
}

// What a schema itself names, and no file that it describes.
constexpr std::string_view schema_dialects = "https://json-schema.org/";

ordered_json parse_lockstep_file(std::string_view text, const std::string& file_name) {
  ordered_json value = parse_json_text(text, file_name);
  const auto schema = value.is_object() ? value.find("$schema") : value.end();
  if (schema == value.end())
    return value;
  if (!schema->is_string())
    throw ConfigError(
        fmt::format("{}: /$schema: found {}, expected text: where the JSON Schema of this file is", file_name,
                    describe_value(*schema)));
  if (schema->get_ref<const std::string&>().starts_with(schema_dialects) && value.contains("properties"))
    refuse_file(file_name,
                "found a JSON Schema, by which editors check files; expected a file that it describes");
  value.erase(schema);
  return value;
}

std::string read_json_file(const std::string& path) {
  const OpenFile file = open_json_file(path);
  std::string text;
  std::array<char, std::size_t{1} << 14> block;
  while (const std::size_t count = std::fread(block.data(), 1, block.size(), file.get())) {
    text.append(block.data(), count);
    if (text.size() > largest_file)
      refuse_file(path, "found more than 64 MiB, expected a smaller JSON file");
  }
  if (std::ferror(file.get()) != 0) {
    throw EnvironmentError(
        fmt::format("{}: reading failed: {}", path, std::generic_category().message(errno)));
  }
  return text;
}

std::string extended_pointer(std::string_view pointer, std::string_view key) {
  std::string result;
  result.reserve(pointer.size() + 1 + key.size());
  result.append(pointer) += '/';
  for (const char letter : key)
    if (letter == '~' || letter == '/')
      result.append(letter == '~' ? "~0" : "~1");
    else
      result += letter;
  return result;
}

std::string describe_value(const ordered_json& value) {
  if (value.is_structured())
    return value.is_object() ? "an object" : "an array";
  return abbreviated(value.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

std::string abbreviated(std::string_view text) {
  constexpr std::size_t longest = 240;
  constexpr std::size_t kept = 110;
  std::string result(text);
  if (text.size() > longest) {
    std::size_t head = kept;
    std::size_t tail = text.size() - kept;
    while (head > 0 && is_continuation(text[head])) --head;
    while (tail < text.size() && is_continuation(text[tail])) ++tail;
    result = std::string(text.substr(0, head)) + " ... " + std::string(text.substr(tail));
  }
  const auto is_control = [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F;
  };
  std::replace_if(result.begin(), result.end(), is_control, '?');
  return result;
}

}  // namespace lockstep
