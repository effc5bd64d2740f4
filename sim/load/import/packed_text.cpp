#include "sim/load/import/packed_text.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>

#include "sim/base/check.h"
#include "sim/base/error.h"

namespace lockstep {
namespace {

constexpr std::size_t piece_bytes = std::size_t{256} << 10;
constexpr std::size_t packed_bytes = std::size_t{64} << 10;
constexpr std::uint64_t longest_token = std::uint64_t{64} << 10;
constexpr int gzip_window = 15 + 16;  // zlib's way of asking for gzip alone

bool is_gzip(std::string_view beginning) {
  return beginning.size() >= 2 && beginning[0] == '\x1f' && beginning[1] == '\x8b';
}

Bytef* bytes_of(char* text) {
  return reinterpret_cast<Bytef*>(text);
}

}  // namespace

struct PackedText::Inflation {
  z_stream stream = {};
  std::array<char, packed_bytes> packed = {};
  bool is_between_files = false;

  Inflation() { LOCKSTEP_CHECK(inflateInit2(&stream, gzip_window) == Z_OK, "zlib is as it was compiled"); }
  ~Inflation() { inflateEnd(&stream); }
  Inflation(const Inflation&) = delete;
  Inflation& operator=(const Inflation&) = delete;
};

PackedText::PackedText(std::istream& file, std::string file_name)
    : file_(file), file_name_(std::move(file_name)), piece_(piece_bytes) {
  next_ = end_ = piece_.data();
  if (file_.peek() == 0x1f)  // no JSON begins so
    inflation_ = std::make_unique<Inflation>();
}

PackedText::~PackedText() = default;

void PackedText::require_progress() const {
  if (position() - progress_ > longest_token)
    throw ConfigError(
        fmt::format("{}: byte {}: found a text or number longer than 64 KiB", file_name_, progress_));
}

std::size_t PackedText::read_piece() {
  file_.read(piece_.data(), static_cast<std::streamsize>(piece_.size()));
  if (file_.bad())
    throw EnvironmentError(fmt::format("{}: cannot be read", file_name_));
  return static_cast<std::size_t>(file_.gcount());
}

std::size_t PackedText::inflate_piece() {
  z_stream& stream = inflation_->stream;
  stream.next_out = bytes_of(piece_.data());
  stream.avail_out = static_cast<uInt>(piece_.size());
  while (stream.avail_out == piece_.size()) {
    if (stream.avail_in == 0) {
      file_.read(inflation_->packed.data(), packed_bytes);
      stream.next_in = bytes_of(inflation_->packed.data());
      stream.avail_in = static_cast<uInt>(file_.gcount());
    }
    if (stream.avail_in == 0) {
      if (!inflation_->is_between_files)
        throw ConfigError(fmt::format("{}: byte {}: the packed data end early: expected a whole gzip file",
                                      file_name_, position()));
      return 0;
    }
    if (inflation_->is_between_files) {
      inflateReset(&stream);
      inflation_->is_between_files = false;
    }
    const int result = inflate(&stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END)
      inflation_->is_between_files = true;
    else if (result != Z_OK)
      throw ConfigError(fmt::format("{}: byte {}: the packed data are damaged: expected a gzip file",
                                    file_name_, position()));
  }
  return piece_.size() - stream.avail_out;
}

bool PackedText::refill() {
  require_progress();
  before_ = position();
  next_ = end_ = piece_.data();
  const std::size_t count = inflation_ ? inflate_piece() : read_piece();
  end_ = piece_.data() + count;
  return count > 0;
}

std::string unpacked_beginning(std::string_view beginning) {
  if (!is_gzip(beginning))
    return std::string(beginning);
  std::string text(packed_bytes, '\0');
  z_stream stream = {};
  if (inflateInit2(&stream, gzip_window) != Z_OK)
    return {};
  std::string packed(beginning);
  stream.next_in = bytes_of(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = bytes_of(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  inflate(&stream, Z_SYNC_FLUSH);
  text.resize(text.size() - stream.avail_out);
  inflateEnd(&stream);
  return text;
}

}  // namespace lockstep
