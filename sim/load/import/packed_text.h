#pragma once

// The characters of a file that may be packed with gzip, one piece at a time.
//
// Problem:   profilers write traces of a gigabyte, mostly packed; neither form fits in memory as a whole.
// Idea:      the stream is read and unpacked in pieces of 256 KiB; whoever parses takes characters from the piece.
// Invariant: memory does not depend on the file. A file may be several packed ones after another, as gzip allows.
// Cost:      a comparison and an increment a character.
// Errors:    ConfigError where packed data are damaged or end early, and where more than 64 KiB pass without the parser
//            saying that it got on (`note_progress`): a name of a gigabyte is refused before it fills the memory.
// Reference: RFC 1952 (gzip); zlib's inflate.

#include <cstddef>
#include <cstdint>
#include <istream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class PackedText {
 public:
  PackedText(std::istream& file, std::string file_name);
  ~PackedText();
  PackedText(const PackedText&) = delete;
  PackedText& operator=(const PackedText&) = delete;

  // False at the end.
  bool has_more() { return next_ != end_ || refill(); }
  char look() const { return *next_; }
  void advance() { ++next_; }

  void note_progress() { progress_ = position(); }
  // Of the next character, in the unpacked text.
  std::uint64_t position() const { return before_ + static_cast<std::uint64_t>(next_ - piece_.data()); }

 private:
  struct Inflation;

  bool refill();
  std::size_t read_piece();
  std::size_t inflate_piece();
  void require_progress() const;

  std::istream& file_;
  std::string file_name_;
  std::vector<char> piece_;
  std::unique_ptr<Inflation> inflation_;  // null: the file is not packed
  const char* next_ = nullptr;
  const char* end_ = nullptr;
  std::uint64_t before_ = 0;  // characters of earlier pieces
  std::uint64_t progress_ = 0;
};

// What nlohmann's parser reads from.
class PackedTextIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  PackedTextIterator() = default;
  explicit PackedTextIterator(PackedText& text) : text_(&text) {}

  char operator*() const { return text_->look(); }
  PackedTextIterator& operator++() {
    text_->advance();
    return *this;
  }
  PackedTextIterator operator++(int) {
    const PackedTextIterator before = *this;
    text_->advance();
    return before;
  }
  // Only the end is ever compared with.
  friend bool operator==(const PackedTextIterator& left, const PackedTextIterator& right) {
    return left.is_at_end() == right.is_at_end();
  }

 private:
  bool is_at_end() const { return text_ == nullptr || !text_->has_more(); }

  PackedText* text_ = nullptr;
};

// The first characters of a file that begins like this, unpacked if it is packed.
std::string unpacked_beginning(std::string_view beginning);

}  // namespace lockstep
