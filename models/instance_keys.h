#pragma once

// The keys of a model instance, read so that a mistake cannot reach the arithmetic behind it.
//
// Idea:      a JsonReader records a mistake and goes on; a size that goes on must still be a size: every
//            count is at least 1 and at most its limit.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_reader.h"

namespace lockstep {

inline std::int64_t count_of(const JsonReader& json, std::int64_t limit) {
  return std::clamp<std::int64_t>(json.integer(1, limit), 1, limit);
}

inline std::int64_t required_count(const JsonReader& json, std::string_view key, std::int64_t limit) {
  return count_of(json.required(key), limit);
}

inline std::int64_t count_or(const JsonReader& json, std::string_view key, std::int64_t fallback,
                             std::int64_t limit) {
  const auto found = json.optional(key);
  return found ? count_of(*found, limit) : fallback;
}

inline bool flag_or(const JsonReader& json, std::string_view key, bool fallback) {
  const auto found = json.optional(key);
  return found ? found->boolean() : fallback;
}

// One number for each stage of a network.
inline std::vector<std::int64_t> counts_of(const JsonReader& list, std::int64_t limit) {
  std::vector<std::int64_t> counts;
  for (const JsonReader& element : list.elements()) counts.push_back(count_of(element, limit));
  return counts;
}

// How many blocks each stage of a network has. Stages halve the image and widen the channels, so `most` is
// small.
inline std::vector<std::int64_t> required_depths(const JsonReader& json, std::size_t most,
                                                 std::int64_t limit) {
  const JsonReader list = json.required("depths");
  std::vector<std::int64_t> depths = counts_of(list, limit);
  if (depths.size() > most) {
    list.expected("at most " + std::to_string(most) + " stages");
    depths.resize(most);
  }
  return depths;
}

// How many channels each of as many stages has.
inline std::vector<std::int64_t> required_widths(const JsonReader& json, std::size_t stages,
                                                 std::int64_t limit) {
  const JsonReader list = json.required("widths");
  std::vector<std::int64_t> widths = counts_of(list, limit);
  if (widths.size() != stages) {
    list.expected("one for each of the " + std::to_string(stages) + " \"depths\"");
    widths.resize(stages, 1);
  }
  return widths;
}

// Every image network has these two.
struct ImageTask {
  std::int64_t image_size = 224;
  std::int64_t classes = 1000;
};

// Below its smallest image a network has layers of no size.
inline ImageTask read_image_task(const JsonReader& json, std::int64_t smallest) {
  ImageTask task{.image_size = std::max<std::int64_t>(224, smallest)};
  if (const auto size = json.optional("image_size"))
    task.image_size = std::clamp<std::int64_t>(size->integer(smallest, 1024), smallest, 1024);
  task.classes = count_or(json, "classes", task.classes, 100'000);
  return task;
}

}  // namespace lockstep
