#include "sim/report/timeline_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "sim/report/rank_view.h"
#include "sim/report/run_spans.h"
#include "sim/report/timeline_lanes.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr double drawn_pixels = 800;
constexpr double pixels_within_one = 64;       // where not every span can be told
constexpr std::size_t most_detailed = 20'000;  // spans

struct TimelineSpan {
  std::string name;
  std::string category;
  double start = 0;
  double end = 0;
  int spans = 1;    // that were put together
  double busy = 1;  // of a link: on average
};

// Within the iteration, in the order of their start.
std::vector<TimelineSpan> clipped(const std::vector<Span>& spans, Time start, Duration length) {
  const double whole = length.in_seconds();
  std::vector<TimelineSpan> found;
  for (const Span& span : spans) {
    const double from = std::max(0.0, (span.start - start).in_seconds());
    const double to = std::min(whole, (span.end - start).in_seconds());
    if (to > from)
      found.push_back({.name = span.name,
                       .category = std::string(span.category),
                       .start = from,
                       .end = to,
                       .busy = span.busy});
  }
  std::stable_sort(found.begin(), found.end(), [](const TimelineSpan& one, const TimelineSpan& other) {
    return one.start < other.start;
  });
  return found;
}

// Of one category up to a pixel; of several up to half of one, which then looks like the longest of them.
std::vector<TimelineSpan> merged(const std::vector<TimelineSpan>& spans, double pixel) {
  std::vector<TimelineSpan> found;
  double longest = 0;  // of those that the last was put together from
  for (const TimelineSpan& span : spans) {
    const double length = span.end - span.start;
    const bool is_near = !found.empty() && span.start - found.back().end < pixel / 4;
    const double together = found.empty() ? 0 : span.end - found.back().start;
    const bool joins = is_near && together < (found.back().category == span.category ? pixel : pixel / 2);
    if (!joins) {
      found.push_back(span);
      longest = length;
      continue;
    }
    TimelineSpan& last = found.back();
    if (length > longest) {
      last.name = span.name;
      last.category = span.category;
      longest = length;
    }
    const double moved = last.busy * (last.end - last.start) + span.busy * length;
    last.end = std::max(last.end, span.end);
    last.busy = std::min(1.0, moved / (last.end - last.start));
    last.spans += span.spans;
  }
  return found;
}

std::string name_of(const TimelineSpan& span) {
  return span.spans == 1 || span.category == "link"
             ? span.name
             : fmt::format("{} and {} more", span.name, span.spans - 1);
}

struct TimelineLane {
  std::string name;
  std::vector<TimelineSpan> spans;
  bool tells_busy = false;
};

std::size_t count_spans(const std::vector<TimelineLane>& lanes) {
  return std::accumulate(
      lanes.begin(), lanes.end(), std::size_t{0},
      [](std::size_t count, const TimelineLane& lane) { return count + lane.spans.size(); });
}

// Every span, or as finely as a page can hold them.
std::vector<TimelineLane> detailed(std::vector<TimelineLane> lanes, double pixel) {
  for (double finest = pixel / pixels_within_one; count_spans(lanes) > most_detailed && finest < pixel;
       finest *= 2)
    for (TimelineLane& lane : lanes) lane.spans = merged(lane.spans, finest);
  return lanes;
}

// Names and categories once, by their places.
class Places {
 public:
  std::size_t of(const std::string& text) {
    const auto [found, is_new] = places_.try_emplace(text, texts_.size());
    if (is_new)
      texts_.push_back(text);
    return found->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<std::string> texts_;
};

// Parts per thousand.
std::int64_t level_of(const TimelineSpan& span) {
  return std::llround(span.busy * 1e3);
}

std::int64_t nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

// A list for each figure, not an object for each span: a tenth of the bytes.
ordered_json detail_of(const std::vector<TimelineLane>& lanes, double length) {
  Places names;
  Places categories;
  ordered_json detail{{"length_ns", nanoseconds(length)}, {"lanes", ordered_json::array()}};
  for (const TimelineLane& lane : lanes) {
    ordered_json told{{"name", lane.name}};
    for (const char* key : {"starts", "lengths", "categories", "names"}) told[key] = ordered_json::array();
    for (const TimelineSpan& span : lane.spans) {
      told["starts"].push_back(nanoseconds(span.start));
      told["lengths"].push_back(nanoseconds(span.end) - nanoseconds(span.start));
      told["categories"].push_back(categories.of(span.category));
      told["names"].push_back(names.of(name_of(span)));
      if (lane.tells_busy)
        told["levels"].push_back(level_of(span));
    }
    detail["lanes"].push_back(std::move(told));
  }
  detail["categories"] = categories.texts();
  detail["names"] = names.texts();
  return detail;
}

ordered_json row_of(const TimelineLane& lane, double pixel) {
  ordered_json row{{"name", lane.name}, {"spans", ordered_json::array()}};
  for (const TimelineSpan& span : merged(lane.spans, pixel)) {
    ordered_json told{
        {"name", name_of(span)}, {"category", span.category}, {"start_s", span.start}, {"end_s", span.end}};
    if (lane.tells_busy)
      told["busy"] = static_cast<double>(level_of(span)) / 1e3;
    row["spans"].push_back(std::move(told));
  }
  return row;
}

}  // namespace

ordered_json timeline_picture(const Simulation& simulation) {
  const Run& run = simulation.steady;
  if (simulation.updates || run.iterations.empty())
    return {};
  const std::size_t representative = critical_representative(run);
  const RankView view(run, representative);
  const std::size_t last = run.iterations.size() - 1;
  const Duration length = view.length(last);
  const double pixel = length.in_seconds() / drawn_pixels;
  std::vector<TimelineLane> lanes;
  for (const DrawnLane& lane : timeline_lanes(simulation, representative)) {
    TimelineLane drawn{lane.name, clipped(lane.spans, view.start_of(last), length), lane.tells_busy};
    if (drawn.spans.size() > most_detailed)
      drawn.spans = merged(drawn.spans, pixel / pixels_within_one);
    if (!drawn.spans.empty())
      lanes.push_back(std::move(drawn));
  }
  ordered_json picture{{"length_s", length.in_seconds()}, {"rows", ordered_json::array()}};
  for (const TimelineLane& lane : lanes) picture["rows"].push_back(row_of(lane, pixel));
  picture["detail"] = detail_of(detailed(std::move(lanes), pixel), length.in_seconds());
  return picture;
}

}  // namespace lockstep
