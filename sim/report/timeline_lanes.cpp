#include "sim/report/timeline_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "sim/report/link_use.h"
#include "sim/report/rank_view.h"

namespace lockstep {
namespace {

constexpr std::string_view loading = "loading";
constexpr std::string_view copying = "copy";

class LaneFinder {
 public:
  LaneFinder(const Simulation& simulation, std::size_t representative)
      : simulation_(simulation),
        run_(simulation.steady),
        rank_(simulation.cluster->symmetry.roles.representatives[representative]),
        representative_(representative),
        last_(run_.iterations.size() - 1),
        spans_(run_, last_),
        view_(run_, representative) {}

  std::vector<DrawnLane> find() {
    add("compute", spans_.computing(representative_));
    for (const LaneId lane : spans_.lanes(rank_))
      if (run_.plan.lanes[lane].kind == LaneKind::communication)
        add("communication", spans_.collectives(lane, representative_));
    for (const LaneId lane : spans_.lanes(rank_))
      if (run_.plan.lanes[lane].kind == LaneKind::issue)
        add("host", spans_.issuing(lane));
    for (const WorkLanes& work : work_lanes) add_work(work);
    for (LinkUseTrack& track :
         busiest_links(run_, simulation_.cluster->topology, view_.start_of(last_), end()))
      lanes_.push_back({.name = std::move(track.name), .spans = std::move(track.spans), .tells_busy = true});
    return std::move(lanes_);
  }

 private:
  Time end() const { return view_.end_of(last_); }

  // Numbered from the second on, as in a trace.
  void add(std::string_view kind, std::vector<Span> spans) {
    if (spans.empty())
      return;
    const int number = ++lanes_of_[std::string(kind)];
    lanes_.push_back({.name = number == 1 ? std::string(kind) : fmt::format("{} {}", kind, number),
                      .spans = std::move(spans)});
  }

  void add_work(const WorkLanes& work) {
    std::map<std::uint32_t, std::vector<Span>> by_index = spans_.working(rank_, work);
    if (work.category == loading || (work.category == copying && has_workers()))
      by_index = continued(by_index, work);
    for (auto& [index, spans] : by_index) add(work.name, std::move(spans));
  }

  // Again and again until the iteration ends, each time by the worker whose turn it is; copies and storage on their own
  // lane.
  std::map<std::uint32_t, std::vector<Span>> continued(
      const std::map<std::uint32_t, std::vector<Span>>& by_index, const WorkLanes& work) const {
    const auto batches = static_cast<std::uint32_t>(run_.batches.size() / run_.iterations.size());
    const std::uint32_t workers = work.first_index == first_worker_lane ? count_workers() : 1;
    const Duration period = std::max(view_.length(last_), Duration::picoseconds(1));
    std::map<std::uint32_t, std::vector<Span>> found;
    for (const auto& [index, spans] : by_index)
      for (Span span : spans)
        for (std::uint32_t turn = index - work.first_index; span.start < end(); turn += batches) {
          found[workers > 1 ? turn % workers : index].push_back(span);
          span.start += period;
          span.end += period;
        }
    for (auto& [index, spans] : found)
      std::stable_sort(spans.begin(), spans.end(),
                       [](const Span& left, const Span& right) { return left.start < right.start; });
    return found;
  }

  std::uint32_t count_workers() const {
    const std::vector<LaneId>& lanes = spans_.lanes(rank_);
    return static_cast<std::uint32_t>(std::count_if(lanes.begin(), lanes.end(), [&](LaneId lane) {
      return run_.plan.lanes[lane].kind == LaneKind::host && run_.plan.lanes[lane].index >= first_worker_lane;
    }));
  }
  bool has_workers() const { return count_workers() > 0; }

  const Simulation& simulation_;
  const Run& run_;
  Rank rank_;
  std::size_t representative_;
  std::size_t last_;
  RunSpans spans_;
  RankView view_;
  std::map<std::string, int> lanes_of_;
  std::vector<DrawnLane> lanes_;
};

}  // namespace

std::vector<DrawnLane> timeline_lanes(const Simulation& simulation, std::size_t representative) {
  return LaneFinder(simulation, representative).find();
}

}  // namespace lockstep
