#pragma once

// What the ranks of a run did when: the spans that whoever draws a run draws.
//
// Problem:   pictures of a run made each in their own way would contradict each other and the report.
// Idea:      one view. Iterations are those of the rank's view, computing and waiting are the spans of the run's
//            account, and a collective is active when the report says so (span_of).
// Invariant: computing and waiting fill a rank's iterations without gap or overlap. Spans of collectives and of
//            transfers come in the order in which they begin on a lane of one slot.
// Cost:      linear in the ops of the run.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/report/rank_view.h"
#include "sim/report/run_account.h"
#include "sim/training/input.h"

namespace lockstep {

struct Span {
  std::string name;
  std::string_view category;  // a key of time_parts where it is a rank's time
  Time start;
  Time end;
  const Communication* communication = nullptr;  // of which it is, where the plan tells
  std::int64_t bytes = 0;                        // of a transfer
  double busy = 1;                               // of a link: the part of its bandwidth that is in use
};

// What is neither a kernel nor a collective: which lanes do it, and how it is told.
struct WorkLanes {
  std::string_view name;
  std::string_view category;
  LaneKind kind;
  std::uint32_t first_index;
  std::uint32_t last_index;
  std::optional<Category> only = {};  // ops that are charged to it

  bool has(const Lane& lane) const {
    return lane.kind == kind && lane.index >= first_index && lane.index <= last_index;
  }
};
inline constexpr std::uint32_t last_lane = 0xffffffff;
inline constexpr std::array work_lanes{
    WorkLanes{"host", "host_overhead", LaneKind::host, 0, storage_lane - 1},
    WorkLanes{"copies", "copy", LaneKind::copy, 0, last_lane},
    WorkLanes{"loader", "loading", LaneKind::host, first_worker_lane, last_lane, Category::input_stall},
    WorkLanes{"storage", "loading", LaneKind::host, storage_lane, storage_lane}};

class RunSpans {
 public:
  // Of the iterations from `first_iteration` on. `run` must outlive the view.
  RunSpans(const Run& run, std::size_t first_iteration);

  // Of a rank, by its representative.
  std::vector<Span> iterations(std::size_t representative) const;
  std::vector<Span> computing(std::size_t representative) const;
  std::vector<Span> collectives(LaneId lane, std::size_t representative) const;
  // What the host spends on launching for a GPU that may wait for it.
  std::vector<Span> issuing(LaneId lane) const;
  // A rank's work of one kind by the number of its lane, in order of start.
  std::map<std::uint32_t, std::vector<Span>> working(Rank rank, const WorkLanes& work) const;
  // What the rank's rings move, by channel, in order of start.
  std::map<std::uint32_t, std::vector<Span>> transfers(Rank rank) const;

  std::size_t first_iteration() const { return first_iteration_; }
  // Of a rank, in the order of the plan's.
  const std::vector<LaneId>& lanes(Rank rank) const { return lanes_by_rank_.at(rank.index); }

 private:
  Span computing_span(const TimeSpan& span) const;
  Span collective_span(OpId taken, OpId given_back, std::size_t representative,
                       const Communication* communication) const;
  Span message_span(OpId op, Time start, Time end) const;
  void add_messages(OpId op, std::vector<Span>& spans) const;
  std::map<OpId, const Communication*> communications_by_begin(std::size_t representative) const;
  const std::string& section_name(OpId op) const { return run_.plan.names[section_of(run_.plan, op).name]; }
  Time start_of(OpId op) const { return run_.timeline.start[op.index]; }
  Time end_of(OpId op) const { return run_.timeline.end[op.index]; }

  const Run& run_;
  std::size_t first_iteration_;
  RunAccount account_;
  IdVector<LaneId, std::vector<OpId>> ops_by_lane_;
  std::map<std::uint32_t, std::vector<LaneId>> lanes_by_rank_;
};

}  // namespace lockstep
