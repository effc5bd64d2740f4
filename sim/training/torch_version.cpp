#include "sim/training/torch_version.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace lockstep {

bool is_torch_before(const TrainingSpec& training, int major, int minor) {
  if (!training.framework.starts_with("pytorch"))
    return false;
  const std::string_view text = training.framework_version;
  std::pair<int, int> found;
  const char* end = text.data() + text.size();
  const char* dot = std::from_chars(text.data(), end, found.first).ptr;
  if (dot != end)
    std::from_chars(dot + 1, end, found.second);
  return found < std::pair{major, minor};
}

}  // namespace lockstep
