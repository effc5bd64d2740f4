#include "sim/report/timeline_picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/report/rank_view.h"
#include "sim/report/run_spans.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr double drawn_pixels = 800;

struct TimelineSpan {
  std::string name;
  std::string category;
  double start = 0;
  double end = 0;
  int spans = 1;  // that were put together
};

// Within the iteration, in the order of their start.
std::vector<TimelineSpan> clipped(const std::vector<Span>& spans, Time start, Duration length) {
  const double whole = length.in_seconds();
  std::vector<TimelineSpan> found;
  for (const Span& span : spans) {
    const double from = std::max(0.0, (span.start - start).in_seconds());
    const double to = std::min(whole, (span.end - start).in_seconds());
    if (to > from)
      found.push_back({.name = span.name, .category = std::string(span.category), .start = from, .end = to});
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
    last.end = std::max(last.end, span.end);
    ++last.spans;
  }
  return found;
}

ordered_json row_of(const std::string& name, const std::vector<TimelineSpan>& spans) {
  ordered_json row{{"name", name}, {"spans", ordered_json::array()}};
  for (const TimelineSpan& span : spans)
    row["spans"].push_back(
        {{"name", span.spans == 1 ? span.name : fmt::format("{} and {} more", span.name, span.spans - 1)},
         {"category", span.category},
         {"start_s", span.start},
         {"end_s", span.end}});
  return row;
}

}  // namespace

ordered_json timeline_picture(const Simulation& simulation) {
  const Run& run = simulation.steady;
  if (simulation.updates || run.iterations.empty())
    return {};
  const std::size_t representative = critical_representative(run);
  const Rank rank = simulation.cluster->symmetry.roles.representatives[representative];
  const RunSpans spans(run, run.iterations.size() - 1);
  const RankView view(run, representative);
  const std::size_t last = run.iterations.size() - 1;
  const Duration length = view.length(last);
  ordered_json picture{{"length_s", length.in_seconds()}, {"rows", ordered_json::array()}};
  const auto add = [&](const std::string& name, const std::vector<Span>& found) {
    const std::vector<TimelineSpan> drawn =
        merged(clipped(found, view.start_of(last), length), length.in_seconds() / drawn_pixels);
    if (!drawn.empty())
      picture["rows"].push_back(row_of(name, drawn));
  };
  add("compute", spans.computing(representative));
  for (const LaneId lane : spans.lanes(rank)) {
    if (run.plan.lanes[lane].kind == LaneKind::communication)
      add("communication", spans.collectives(lane, representative));
    if (run.plan.lanes[lane].kind == LaneKind::issue)
      add("host", spans.issuing(lane));
  }
  return picture;
}

}  // namespace lockstep
