#include "sim/report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sim/base/printable.h"
#include "sim/collectives/collective.h"
#include "sim/report/memory_track.h"
#include "sim/report/rank_view.h"
#include "sim/report/run_spans.h"

namespace lockstep {
namespace {

constexpr std::size_t most_ops_with_channels = 20'000;
constexpr std::int64_t picoseconds_per_microsecond = 1'000'000;

// Rows of one process, in the order they are shown. A channel's number is added to its own.
constexpr std::uint32_t iteration_row = 0;
constexpr std::uint32_t compute_row = 1;
constexpr std::uint32_t communication_row = 2;
constexpr std::uint32_t host_row = 3;
constexpr std::uint32_t channel_row = 4 + work_lanes.size();
// Threads of one row: how many events of it may overlap.
constexpr std::uint32_t threads_per_row = 1000;

std::string microseconds(Duration duration) {
  const std::int64_t count = duration.picoseconds();
  return fmt::format("{}.{:06}", count / picoseconds_per_microsecond, count % picoseconds_per_microsecond);
}

// JSON that no terminal obeys either.
std::string json_text(const std::string& name) {
  return printable(nlohmann::json(name).dump());
}

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
    write_metadata("process_name", 0, fmt::format(R"("name":{})", json_text(name)));
  }

  // On the first thread of the row that is free again by then, which it returns. Events of a row come in order of start.
  // `arguments`: members of a JSON object.
  std::uint32_t write_event(std::uint32_t row, const std::string& row_name, const Span& event,
                            const std::string& arguments = {}) {
    const std::uint32_t thread = free_thread(row, row_name, event.start);
    last_end_[thread] = event.end;
    write_line(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"cat":"{}","name":{}{}{}{}}})", process_,
               thread, microseconds(event.start.since_start()), microseconds(event.end - event.start),
               event.category, quoted(event.name), arguments.empty() ? "" : R"(,"args":{)", arguments,
               arguments.empty() ? "" : "}");
    return thread;
  }

  // One end of an arrow between processes: it leaves the event that a thread runs then, or leads to it.
  enum class ArrowEnd : std::uint8_t { tail, head };
  void write_arrow(ArrowEnd end, std::uint32_t id, std::uint32_t thread, std::string_view name, Time time) {
    write_line(R"({{"ph":"{}","id":{},"pid":{},"tid":{},"ts":{},"cat":"message",{}"name":{}}})",
               end == ArrowEnd::tail ? "s" : "f", id, process_, thread, microseconds(time.since_start()),
               end == ArrowEnd::tail ? "" : R"("bp":"e",)", quoted(std::string(name)));
  }

  // A track of the process with one band for each part; `parts`: members of a JSON object.
  void write_counter(const std::string& name, Time time, const std::string& parts) {
    write_line(R"({{"ph":"C","pid":{},"tid":0,"ts":{},"name":"{}","args":{{{}}}}})", process_,
               microseconds(time.since_start()), name, parts);
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
      if (last->second <= start)
        return thread;
    }
  }

  void write_metadata(std::string_view kind, std::uint32_t thread, const std::string& arguments) {
    write_line(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})", process_, thread, kind,
               arguments);
  }

  // Names recur with every layer, micro-batch and rank.
  const std::string& quoted(const std::string& name) {
    const auto [known, is_new] = quoted_.try_emplace(name);
    if (is_new)
      known->second = json_text(name);
    return known->second;
  }

  template <class... Parts>
  void write_line(fmt::format_string<Parts...> form, Parts&&... parts) {
    line_ = is_first_line_ ? "\n" : ",\n";
    fmt::format_to(std::back_inserter(line_), form, std::forward<Parts>(parts)...);
    sink_(line_);
    is_first_line_ = false;
  }

  const TextSink& sink_;
  std::uint32_t process_ = 0;
  std::map<std::uint32_t, Time> last_end_;  // by thread of this process
  std::unordered_map<std::string, std::string> quoted_;
  std::string line_;
  bool is_first_line_ = true;
};

std::string bands_of(const MemoryUse& use) {
  return fmt::format(
      R"("framework":{},"parameters":{},"gradients":{},"optimizer_states":{},"communication_buffers":{},)"
      R"("activations":{},"workspaces":{},"allocator":{})",
      use.framework.count(), use.parameters.count(), use.gradients.count(), use.optimizer_states.count(),
      use.communication_buffers.count(), use.activations.count(), use.workspaces.count(),
      use.allocator.count());
}

// The last `wanted` of the iterations, or all.
std::size_t first_of(std::size_t iterations, std::optional<std::int64_t> wanted) {
  const auto most = static_cast<std::int64_t>(iterations);
  return static_cast<std::size_t>(most - std::clamp<std::int64_t>(wanted.value_or(most), 1, most));
}

// What of a run is worth an event.
class RunTrace {
 public:
  RunTrace(const Scenario& scenario, const Simulation& simulation, const TextSink& sink,
           const TraceExtent& extent)
      : run_(simulation.steady),
        roles_(simulation.cluster->symmetry.roles),
        ranks_(static_cast<std::size_t>(extent.ranks.value_or(std::numeric_limits<std::int64_t>::max()))),
        standing_(standing_memory(scenario, simulation)),
        spans_(run_, first_of(run_.iterations.size(), extent.iterations)),
        stream_(sink) {}

  void write() {
    for (std::size_t i = 0; i < std::min(ranks_, roles_.representatives.size()); ++i) {
      const Rank rank = roles_.representatives[i];
      const std::string also =
          roles_.members[i] > 1 ? fmt::format(" and {} like it", roles_.members[i] - 1) : "";
      stream_.begin_process(rank, fmt::format("rank {}{}", rank.index, also));
      write_lanes(rank, i);
      write_memory(rank, i);
      if (run_.plan.step_count() <= most_ops_with_channels)
        write_channels(rank);
    }
    stream_.finish();
  }

 private:
  void write_lanes(Rank rank, std::size_t representative) {
    for (const LaneId lane : spans_.lanes(rank)) {
      const LaneKind kind = run_.plan.lanes[lane].kind;
      if (kind == LaneKind::compute) {
        write_row(iteration_row, "iteration", spans_.iterations(representative));
        write_row(compute_row, "compute", spans_.computing(representative));
        write_heads(representative);
      } else if (kind == LaneKind::communication) {
        for (const Span& span : spans_.collectives(lane, representative))
          write_collective(span, representative);
      } else if (kind == LaneKind::issue) {
        write_row(host_row, "host", spans_.issuing(lane));
      }
    }
    for (std::uint32_t i = 0; i < work_lanes.size(); ++i) write_work(rank, work_lanes[i], host_row + 1 + i);
  }

  // Lanes of one kind share a row, in order of start.
  void write_work(Rank rank, const WorkLanes& work, std::uint32_t row) {
    std::vector<Span> all;
    for (const auto& [index, spans] : spans_.working(rank, work))
      all.insert(all.end(), spans.begin(), spans.end());
    std::stable_sort(all.begin(), all.end(),
                     [](const Span& left, const Span& right) { return left.start < right.start; });
    write_row(row, std::string(work.name), all);
  }

  // Both ends of a message between stages know the op that it begins with.
  void write_collective(const Span& span, std::size_t representative) {
    const std::uint32_t thread =
        stream_.write_event(communication_row, "communication", span, arguments_of(span, representative));
    if (span.communication != nullptr && span.communication->is_between_stages())
      stream_.write_arrow(TraceStream::ArrowEnd::tail, span.communication->of(representative).begin.index,
                          thread, span.name, span.start);
  }

  // To what the compute lane does when a message from another stage arrives.
  void write_heads(std::size_t representative) {
    for (std::size_t iteration = spans_.first_iteration(); iteration < run_.iterations.size(); ++iteration)
      for (const Communication& sent : run_.iterations[iteration].communications)
        if (sent.comes_to(representative))
          stream_.write_arrow(TraceStream::ArrowEnd::head, sent.of(representative).begin.index,
                              compute_row * threads_per_row, sent.name,
                              span_of(run_, sent, representative).end);
  }

  void write_row(std::uint32_t row, const std::string& row_name, const std::vector<Span>& spans) {
    for (const Span& span : spans) stream_.write_event(row, row_name, span);
  }

  std::string arguments_of(const Span& span, std::size_t representative) const {
    if (span.communication == nullptr)
      return {};
    const Communication& sent = *span.communication;
    const BusFactor factor = bus_factor(sent.op, sent.ranks);
    const double on_bus = static_cast<double>(sent.bytes_on_wire.count()) *
                          static_cast<double>(factor.numerator) / static_cast<double>(factor.denominator);
    const double seconds = (span.end - span.start).in_seconds();
    const Duration waited = span.start - span_of(run_, sent, representative).ready;
    return fmt::format(
        R"("bytes":{},"tensors":{},"algorithm":"{}","protocol":"{}","waited_for_the_lane_us":{},"busbw_gbs":{})",
        sent.bytes.count(), sent.tensors, std::string_view(sent.algorithm), std::string_view(sent.protocol),
        microseconds(waited), seconds > 0 ? on_bus / seconds / 1e9 : 0.0);
  }

  // Of the last iteration: a point for the last of the changes at one instant.
  void write_memory(Rank rank, std::size_t representative) {
    const std::string name = fmt::format("memory GPU {}", rank.index);
    const std::vector<MemoryMoment> moments = track_memory(run_, standing_[representative], representative);
    for (std::size_t i = 0; i < moments.size(); ++i)
      if (i + 1 == moments.size() || moments[i + 1].time > moments[i].time)
        stream_.write_counter(name, moments[i].time, bands_of(moments[i].use));
  }

  // The transfers of this rank's rings.
  void write_channels(Rank rank) {
    for (const auto& [channel, spans] : spans_.transfers(rank))
      for (const Span& span : spans)
        stream_.write_event(channel_row + channel, fmt::format("ring {}", channel), span,
                            fmt::format(R"("bytes":{})", span.bytes));
  }

  const Run& run_;
  const Roles& roles_;
  std::size_t ranks_;
  std::vector<MemoryUse> standing_;  // by representative
  RunSpans spans_;
  TraceStream stream_;
};

}  // namespace

void write_trace(const Scenario& scenario, const Simulation& simulation, const TextSink& sink,
                 const TraceExtent& extent) {
  RunTrace(scenario, simulation, sink, extent).write();
}

}  // namespace lockstep
