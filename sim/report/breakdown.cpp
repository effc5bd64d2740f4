#include "sim/report/breakdown.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/run/time_account.h"

namespace lockstep {
namespace {

const TimePart& part_for(std::optional<Category> category) {
  const auto found = std::find_if(time_parts.begin(), time_parts.end(),
                                  [&](const TimePart& part) { return part.category == category; });
  LOCKSTEP_CHECK(found != time_parts.end(), "every category is a part of the breakdown");
  return *found;
}

}  // namespace

const TimePart& part_of(Category category) {
  return part_for(category);
}

const TimePart& straggler_part() {
  return part_for(std::nullopt);
}

Duration sum(const Breakdown& breakdown) {
  Duration total;
  for (const TimePart& part : time_parts) total += breakdown.*part.time;
  return total;
}

Breakdown mean_breakdown(const TimeAccount& account, std::int64_t iterations) {
  Breakdown mean;
  Duration whole;
  Duration reported;
  for (const TimePart& part : time_parts) {
    whole += part.category ? account.of(*part.category) : account.straggler_wait;
    mean.*part.time = Duration::picoseconds(whole.picoseconds() / iterations) - reported;
    reported += mean.*part.time;
  }
  return mean;
}

std::string words(std::string_view key) {
  std::string text(key);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

}  // namespace lockstep
