#include "sim/report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/check.h"
#include "sim/collectives/collective.h"
#include "sim/report/memory_track.h"
#include "sim/scenario/time_account.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t most_ops_with_channels = 20'000;
constexpr std::int64_t picoseconds_per_microsecond = 1'000'000;

// Rows of one process, in the order they are shown. A channel's number is added to its own.
constexpr std::uint32_t iteration_row = 0;
constexpr std::uint32_t compute_row = 1;
constexpr std::uint32_t communication_row = 2;
constexpr std::uint32_t channel_row = 3;
// Threads of one row: how many events of it may overlap.
constexpr std::uint32_t threads_per_row = 1000;

std::string microseconds(Duration duration) {
  const std::int64_t count = duration.picoseconds();
  return fmt::format("{}.{:06}", count / picoseconds_per_microsecond, count % picoseconds_per_microsecond);
}

struct Event {
  std::string name;
  std::string_view category;
  Time start;
  Time end;
  ordered_json arguments = nullptr;
};

// Lines of one process at a time, and which of its threads are free.
class TraceStream {
 public:
  explicit TraceStream(const TextSink& sink) : sink_(sink) {
    sink_("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
  }
  void finish() { sink_("\n]}\n"); }

  void begin_process(Rank rank, const std::string& name) {
    process_ = rank.index;
    last_end_.clear();
    write_metadata("process_name", 0, fmt::format(R"("name":{})", ordered_json(name).dump()));
  }

  // On the first thread of the row that is free again by then. Events of a row come in order of start.
  void write_event(std::uint32_t row, const std::string& row_name, const Event& event) {
    const std::uint32_t thread = free_thread(row, row_name, event.start);
    last_end_[thread] = event.end;
    std::string line =
        fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"cat":"{}","name":{})", process_, thread,
                    microseconds(event.start.since_start()), microseconds(event.end - event.start),
                    event.category, ordered_json(event.name).dump());
    if (!event.arguments.is_null()) {
      line += ",\"args\":" + event.arguments.dump();
    }
    write_line(line + "}");
  }

  // A track of the process with one band for each part.
  void write_counter(const std::string& name, Time time, const ordered_json& parts) {
    write_line(fmt::format(R"({{"ph":"C","pid":{},"tid":0,"ts":{},"name":"{}","args":{}}})", process_,
                           microseconds(time.since_start()), name, parts.dump()));
  }

 private:
  std::uint32_t free_thread(std::uint32_t row, const std::string& row_name, Time start) {
    for (std::uint32_t extra = 0;; ++extra) {
      const std::uint32_t thread = row * threads_per_row + extra;
      const auto last = last_end_.find(thread);
      if (last == last_end_.end()) {
        const std::string name = extra == 0 ? row_name : fmt::format("{} {}", row_name, extra + 1);
        write_metadata("thread_name", thread, fmt::format(R"("name":"{}")", name));
        write_metadata("thread_sort_index", thread, fmt::format(R"("sort_index":{})", thread));
        return thread;
      }
      if (last->second <= start) {
        return thread;
      }
    }
  }

  void write_metadata(std::string_view kind, std::uint32_t thread, const std::string& arguments) {
    write_line(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})", process_, thread,
                           kind, arguments));
  }

  void write_line(const std::string& line) {
    sink_(is_first_line_ ? "\n" : ",\n");
    sink_(line);
    is_first_line_ = false;
  }

  const TextSink& sink_;
  std::uint32_t process_ = 0;
  std::map<std::uint32_t, Time> last_end_;  // by thread of this process
  bool is_first_line_ = true;
};

// What of a run is worth an event.
class RunTrace {
 public:
  RunTrace(const Scenario& scenario, const Simulation& simulation, const TextSink& sink,
           const TraceExtent& extent)
      : simulation_(simulation),
        run_(simulation.steady),
        first_iteration_(first_of(run_.iterations.size(), extent.iterations)),
        ranks_(static_cast<std::size_t>(extent.ranks.value_or(std::numeric_limits<std::int64_t>::max()))),
        standing_(standing_memory(scenario, simulation)),
        stream_(sink),
        ops_by_lane_(run_.plan.lanes.size()),
        spans_(run_.lanes.compute.size()) {
    account_iterations();
    for (std::uint32_t op = run_.iterations[first_iteration_].first.index; op < run_.plan.size(); ++op) {
      ops_by_lane_[run_.plan.lane[op]].push_back(OpId{op});
    }
    for (const LaneId lane : run_.plan.lanes.ids()) {
      lanes_by_rank_[run_.plan.lanes[lane].rank.index].push_back(lane);
    }
  }

  void write() {
    const Roles& roles = simulation_.cluster->symmetry.roles;
    for (std::size_t i = 0; i < std::min(ranks_, roles.representatives.size()); ++i) {
      const std::string also =
          roles.members[i] > 1 ? fmt::format(" and {} like it", roles.members[i] - 1) : "";
      stream_.begin_process(roles.representatives[i],
                            fmt::format("rank {}{}", roles.representatives[i].index, also));
      write_rank(roles.representatives[i], i);
    }
    stream_.finish();
  }

 private:
  void write_rank(Rank rank, std::size_t representative) {
    const std::vector<LaneId>& lanes = lanes_by_rank_[rank.index];
    for (const LaneId lane : lanes) {
      if (run_.plan.lanes[lane].kind == LaneKind::compute) {
        write_iterations(representative);
        write_compute(representative);
      } else if (run_.plan.lanes[lane].kind == LaneKind::communication) {
        write_collectives(lane, representative);
      }
    }
    write_memory(rank, representative);
    if (run_.plan.step_count() <= most_ops_with_channels) {
      write_channels(lanes);
    }
  }

  // Of the last iteration: a point for the last of the changes at one instant.
  void write_memory(Rank rank, std::size_t representative) {
    const std::string name = fmt::format("memory GPU {}", rank.index);
    const std::vector<MemoryMoment> moments = track_memory(run_, standing_, representative);
    for (std::size_t i = 0; i < moments.size(); ++i) {
      if (i + 1 == moments.size() || moments[i + 1].time > moments[i].time) {
        stream_.write_counter(name, moments[i].time, bands_of(moments[i].use));
      }
    }
  }

  static ordered_json bands_of(const MemoryUse& use) {
    return {{"framework", use.framework.count()},
            {"parameters", use.parameters.count()},
            {"gradients", use.gradients.count()},
            {"optimizer_states", use.optimizer_states.count()},
            {"communication_buffers", use.communication_buffers.count()},
            {"activations", use.activations.count()}};
  }

  // From the end of the iteration before to its own, as the report measures it.
  void write_iterations(std::size_t representative) {
    for (std::size_t iteration = first_iteration_; iteration < run_.iterations.size(); ++iteration)
      stream_.write_event(iteration_row, "iteration",
                          {.name = iteration == 0 ? "warm-up" : fmt::format("iteration {}", iteration),
                           .category = "iteration",
                           .start = iteration == 0 ? Time{} : ends_[iteration - 1][representative],
                           .end = ends_[iteration][representative]});
  }

  // What ran, and in the gaps what was waited for.
  void write_compute(std::size_t representative) {
    for (const TimeSpan& span : spans_[representative]) {
      const Section& section = section_of(run_.plan, span.op);
      const bool is_wait = span.to <= start_of(span.op);
      write_on_compute(is_wait ? waiting_name(span, section) : name_of(section), charged_to(span), span.from,
                       span.to);
    }
  }

  static std::string_view charged_to(const TimeSpan& span) {
    if (span.waits_for_stragglers)
      return "straggler_wait";
    return span.category == Category::communication ? "exposed_communication" : category_name(span.category);
  }

  void write_on_compute(const std::string& name, std::string_view category, Time start, Time end) {
    stream_.write_event(compute_row, "compute",
                        {.name = name, .category = category, .start = start, .end = end});
  }

  // Every collective takes its lane and gives it back, in the order they were written.
  void write_collectives(LaneId lane, std::size_t representative) {
    const std::map<OpId, const Communication*> sent = communications_by_begin(representative);
    std::vector<OpId> taken;
    std::vector<OpId> given_back;
    for (const OpId op : ops_by_lane_[lane]) {
      if (run_.plan.kind[op.index] == OpKind::join && run_.plan.amount[op.index] != 0) {
        (run_.plan.amount[op.index] > 0 ? taken : given_back).push_back(op);
      }
    }
    LOCKSTEP_CHECK(taken.size() == given_back.size(), "a lane that is taken is given back");
    for (std::size_t i = 0; i < taken.size(); ++i) {
      Event event{.name = name_of(section_of(run_.plan, taken[i])),
                  .category = "communication",
                  .start = end_of(taken[i]),
                  .end = end_of(given_back[i])};
      if (const auto found = sent.find(taken[i]); found != sent.end()) {
        event.arguments = arguments_of(*found->second, event, representative);
      }
      stream_.write_event(communication_row, "communication", event);
    }
  }

  std::map<OpId, const Communication*> communications_by_begin(std::size_t representative) const {
    std::map<OpId, const Communication*> found;
    for (const IterationOps& iteration : run_.iterations) {
      for (const Communication& communication : iteration.communications) {
        found[communication.collective.begin[representative]] = &communication;
      }
    }
    return found;
  }

  ordered_json arguments_of(const Communication& sent, const Event& event, std::size_t representative) const {
    const BusFactor factor = bus_factor(sent.op, sent.ranks);
    const double on_bus = static_cast<double>(sent.bytes_on_wire.count()) *
                          static_cast<double>(factor.numerator) / static_cast<double>(factor.denominator);
    const double seconds = (event.end - event.start).in_seconds();
    const Duration waited = event.start - end_of(sent.ready[representative]);
    return {{"bytes", sent.bytes.count()},
            {"tensors", sent.tensors},
            {"algorithm", sent.algorithm},
            {"protocol", sent.protocol},
            {"waited_for_the_lane_us", waited.in_seconds() * 1e6},
            {"busbw_gbs", seconds > 0 ? on_bus / seconds / 1e9 : 0.0}};
  }

  // The transfers of this rank's rings.
  void write_channels(const std::vector<LaneId>& lanes) {
    std::map<std::uint32_t, std::vector<Sent>> transfers;
    for (const LaneId lane : lanes) {
      const Lane& channel = run_.plan.lanes[lane];
      for (const OpId op : ops_by_lane_[lane]) {
        if (channel.kind == LaneKind::channel) {
          list_sent(op, transfers[channel.index]);
        }
      }
    }
    for (auto& [channel, sent] : transfers) {
      std::stable_sort(sent.begin(), sent.end(),
                       [](const Sent& left, const Sent& right) { return left.start < right.start; });
      write_transfers(channel, sent);
    }
  }

  // A message, by itself an op or one of a relay.
  struct Sent {
    OpId op;
    Time start, end;
  };

  void list_sent(OpId op, std::vector<Sent>& sent) const {
    if (run_.plan.kind[op.index] == OpKind::relay) {
      const Relay& relay = relay_of(run_.plan, op);
      for (std::uint32_t message = 0; message < relay.messages; ++message)
        sent.push_back({op, run_.timeline.message_start[relay.place(message)],
                        run_.timeline.message_end[relay.place(message)]});
    } else if (is_hop(op)) {
      sent.push_back({op, start_of(op), end_of(op)});
    }
  }

  bool is_hop(OpId op) const {
    return run_.plan.kind[op.index] == OpKind::transfer &&
           run_.plan.paths[run_.plan.path[op.index]].kind == PathKind::hop;
  }

  void write_transfers(std::uint32_t channel, const std::vector<Sent>& messages) {
    for (const Sent& message : messages) {
      const Path& path = run_.plan.paths[run_.plan.path[message.op.index]];
      Event event{.name = fmt::format("to rank {}", path.destination.index),
                  .category = "transfer",
                  .start = message.start,
                  .end = message.end};
      event.arguments["bytes"] = run_.plan.amount[message.op.index];
      stream_.write_event(channel_row + channel, fmt::format("ring {}", channel), event);
    }
  }

  Time start_of(OpId op) const { return run_.timeline.start[op.index]; }
  Time end_of(OpId op) const { return run_.timeline.end[op.index]; }
  const std::string& name_of(const Section& section) const { return run_.plan.names[section.name]; }

  std::string waiting_name(const TimeSpan& span, const Section& section) const {
    const std::string& name = name_of(section);
    if (span.waits_for_stragglers)
      return "wait for slower ranks";
    return name.starts_with("wait") ? name : "wait before " + name;
  }

  static std::size_t first_of(std::size_t iterations, std::optional<std::int64_t> wanted) {
    const auto most = static_cast<std::int64_t>(iterations);
    return static_cast<std::size_t>(most - std::clamp<std::int64_t>(wanted.value_or(most), 1, most));
  }

  // The account that the report adds up, kept stretch by stretch.
  void account_iterations() {
    TimeKeeper keeper(run_.plan, run_.lanes);
    std::vector<Time> ends(run_.lanes.compute.size());
    std::vector<TimeSpan> spans;
    for (std::size_t iteration = 0; iteration < run_.iterations.size(); ++iteration) {
      spans.clear();
      keeper.account(run_.timeline, run_.iterations[iteration], ends,
                     iteration < first_iteration_ ? nullptr : &spans);
      ends_.push_back(ends);
      for (const TimeSpan& span : spans) spans_[span.representative].push_back(span);
    }
  }

  const Simulation& simulation_;
  const Run& run_;
  std::size_t first_iteration_;
  std::size_t ranks_;
  MemoryUse standing_;
  TraceStream stream_;
  IdVector<LaneId, std::vector<OpId>> ops_by_lane_;
  std::vector<std::vector<TimeSpan>> spans_;  // by representative
  std::vector<std::vector<Time>> ends_;       // by iteration and representative
  std::map<std::uint32_t, std::vector<LaneId>> lanes_by_rank_;
};

}  // namespace

std::string_view category_name(Category category) {
  switch (category) {
    case Category::forward:
      return "forward";
    case Category::backward:
      return "backward";
    case Category::recompute:
      return "recompute";
    case Category::optimizer:
      return "optimizer";
    case Category::gradient_copy:
      return "gradient_copy";
    case Category::host_overhead:
      return "host_overhead";
    case Category::communication:
      return "communication";
    case Category::pipeline_bubble:
      return "pipeline_bubble";
    case Category::input_stall:
      return "input_stall";
    case Category::checkpoint:
      return "checkpoint";
    case Category::other:
      break;
  }
  return "other";
}

void write_trace(const Scenario& scenario, const Simulation& simulation, const TextSink& sink,
                 const TraceExtent& extent) {
  RunTrace(scenario, simulation, sink, extent).write();
}

}  // namespace lockstep
