#pragma once

// Text as gzip would pack it.

#include <zlib.h>

#include <string>

#include "sim/base/check.h"

namespace lockstep::testing {

inline std::string packed(const std::string& text) {
  z_stream stream = {};
  LOCKSTEP_CHECK(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib packs");
  std::string result(deflateBound(&stream, text.size()) + 64, '\0');
  std::string source = text;
  stream.next_in = reinterpret_cast<Bytef*>(source.data());
  stream.avail_in = static_cast<uInt>(source.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  LOCKSTEP_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "there is room for all");
  result.resize(result.size() - stream.avail_out);
  deflateEnd(&stream);
  return result;
}

}  // namespace lockstep::testing
