#include "sim/report/run_spans.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/report/breakdown.h"

namespace lockstep {
namespace {

std::string_view charged_to(const TimeSpan& span) {
  return span.waits_for_stragglers ? straggler_part().key : part_of(span.category).key;
}

bool is_hop(const Plan& plan, OpId op) {
  return plan.kind[op.index] == OpKind::transfer && plan.paths[plan.path[op.index]].kind == PathKind::hop;
}

}  // namespace

RunSpans::RunSpans(const Run& run, std::size_t first_iteration)
    : run_(run),
      first_iteration_(first_iteration),
      account_(account_of(run, first_iteration)),
      ops_by_lane_(run.plan.lanes.size()) {
  LOCKSTEP_CHECK(run.timeline.start.size() == run.plan.size(), "a run that is drawn has kept its times");
  for (std::uint32_t op = run.iterations[first_iteration].first.index; op < run.plan.size(); ++op)
    ops_by_lane_[run.plan.lane[op]].push_back(OpId{op});
  for (const LaneId lane : run.plan.lanes.ids())
    lanes_by_rank_[run.plan.lanes[lane].rank.index].push_back(lane);
}

std::vector<Span> RunSpans::iterations(std::size_t representative) const {
  const RankView rank(run_, representative);
  std::vector<Span> spans;
  for (std::size_t iteration = first_iteration_; iteration < run_.iterations.size(); ++iteration)
    spans.push_back({.name = iteration == 0 ? "warm-up" : fmt::format("iteration {}", iteration),
                     .category = "iteration",
                     .start = rank.start_of(iteration),
                     .end = rank.end_of(iteration)});
  return spans;
}

// What ran, and in the gaps what was waited for.
std::vector<Span> RunSpans::computing(std::size_t representative) const {
  std::vector<Span> spans;
  for (const TimeSpan& span : account_.spans[representative]) spans.push_back(computing_span(span));
  return spans;
}

Span RunSpans::computing_span(const TimeSpan& span) const {
  const std::string& section = section_name(span.op);
  Span found{.name = section, .category = charged_to(span), .start = span.from, .end = span.to};
  const bool is_wait = span.to <= start_of(span.op);
  if (is_wait && span.waits_for_stragglers)
    found.name = "wait for slower ranks";
  else if (is_wait && !section.starts_with("wait"))
    found.name = "wait before " + section;
  return found;
}

// Every collective takes its lane and gives it back, in the order they were written.
std::vector<Span> RunSpans::collectives(LaneId lane, std::size_t representative) const {
  const std::map<OpId, const Communication*> told = communications_by_begin(representative);
  std::vector<OpId> taken;
  std::vector<OpId> given_back;
  for (const OpId op : ops_by_lane_[lane])
    if (run_.plan.kind[op.index] == OpKind::join && run_.plan.amount[op.index] != 0)
      (run_.plan.amount[op.index] > 0 ? taken : given_back).push_back(op);
  LOCKSTEP_CHECK(taken.size() == given_back.size(), "a lane that is taken is given back");
  std::vector<Span> spans;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const auto found = told.find(taken[i]);
    spans.push_back(collective_span(taken[i], given_back[i], representative,
                                    found == told.end() ? nullptr : found->second));
  }
  return spans;
}

std::vector<Span> RunSpans::issuing(LaneId lane) const {
  std::vector<Span> spans;
  for (const OpId op : ops_by_lane_[lane])
    if (end_of(op) > start_of(op))
      spans.push_back({.name = "issue kernels",
                       .category = part_of(Category::host_overhead).key,
                       .start = start_of(op),
                       .end = end_of(op)});
  return spans;
}

std::map<std::uint32_t, std::vector<Span>> RunSpans::working(Rank rank, const WorkLanes& work) const {
  std::map<std::uint32_t, std::vector<Span>> by_index;
  for (const LaneId lane : lanes(rank))
    if (work.has(run_.plan.lanes[lane]))
      for (const OpId op : ops_by_lane_[lane])
        if (end_of(op) > start_of(op) && (!work.only || section_of(run_.plan, op).category == *work.only))
          by_index[run_.plan.lanes[lane].index].push_back({.name = section_name(op),
                                                           .category = work.category,
                                                           .start = start_of(op),
                                                           .end = end_of(op)});
  for (auto& [index, spans] : by_index)
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span& left, const Span& right) { return left.start < right.start; });
  return by_index;
}

Span RunSpans::collective_span(OpId taken, OpId given_back, std::size_t representative,
                               const Communication* communication) const {
  Span span{.name = section_name(taken),
            .category = "communication",
            .start = end_of(taken),
            .end = end_of(given_back),
            .communication = communication};
  if (communication != nullptr) {
    const CollectiveSpan told = span_of(run_, *communication, representative);
    span.start = told.start;
    span.end = told.end;
  }
  return span;
}

std::map<OpId, const Communication*> RunSpans::communications_by_begin(std::size_t representative) const {
  std::map<OpId, const Communication*> found;
  for (const IterationOps& iteration : run_.iterations)
    for (const Communication& communication : iteration.communications)
      if (communication.has(representative))
        found[communication.of(representative).begin] = &communication;
  return found;
}

Span RunSpans::message_span(OpId op, Time start, Time end) const {
  return {.name = fmt::format("to rank {}", run_.plan.paths[run_.plan.path[op.index]].destination.index),
          .category = "transfer",
          .start = start,
          .end = end,
          .bytes = run_.plan.amount[op.index]};
}

// A message by itself, or those of a relay.
void RunSpans::add_messages(OpId op, std::vector<Span>& spans) const {
  if (run_.plan.kind[op.index] == OpKind::relay) {
    const Relay& relay = relay_of(run_.plan, op);
    for (std::uint32_t message = 0; message < relay.messages; ++message) {
      const auto place = relay.place(message);
      spans.push_back(message_span(op, run_.timeline.message_start[place], run_.timeline.message_end[place]));
    }
  } else if (is_hop(run_.plan, op)) {
    spans.push_back(message_span(op, start_of(op), end_of(op)));
  }
}

std::map<std::uint32_t, std::vector<Span>> RunSpans::transfers(Rank rank) const {
  std::map<std::uint32_t, std::vector<Span>> transfers;
  for (const LaneId lane : lanes(rank)) {
    const Lane& channel = run_.plan.lanes[lane];
    if (channel.kind != LaneKind::channel)
      continue;
    for (const OpId op : ops_by_lane_[lane]) add_messages(op, transfers[channel.index]);
  }
  for (auto& [channel, spans] : transfers)
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span& left, const Span& right) { return left.start < right.start; });
  return transfers;
}

}  // namespace lockstep
