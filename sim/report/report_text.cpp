#include "sim/report/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "sim/base/printable.h"
#include "sim/base/quantity_text.h"
#include "sim/collectives/collective.h"
#include "sim/load/reading/spelling.h"
#include "sim/report/report_json.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

constexpr std::size_t indent = 2;
constexpr std::int64_t bar_width = 76;
constexpr std::int64_t histogram_width = 50;
constexpr std::size_t most_buckets_shown = 12;
constexpr std::size_t buckets_at_each_end = 5;
constexpr std::size_t path_kinds_shown = 6;

// How a part of the breakdown looks in the bar, by its place in parts_of.
struct Look {
  std::string_view glyph;
  std::string_view colour;
};
constexpr std::array<Look, 12> looks{{{"█", "\x1b[34m"},
                                      {"▓", "\x1b[36m"},
                                      {"▚", "\x1b[96m"},
                                      {"▒", "\x1b[32m"},
                                      {"▞", "\x1b[33m"},
                                      {"┼", "\x1b[90m"},
                                      {"░", "\x1b[31m"},
                                      {"╌", "\x1b[35m"},
                                      {"╳", "\x1b[95m"},
                                      {"≈", "\x1b[91m"},
                                      {"◆", "\x1b[93m"},
                                      {"·", "\x1b[37m"}}};

class TextReport {
 public:
  TextReport(const Report& report, const LoadedScenario& scenario, const TextStyle& style)
      : report_(report), scenario_(scenario), style_(style) {}

  std::string write() {
    write_headline();
    write_breakdown();
    write_buckets();
    write_collectives();
    write_communication();
    write_asynchrony();
    write_memory();
    write_input();
    write_goodput();
    write_critical_path();
    write_warnings();
    return std::move(text_);
  }

 private:
  std::string coloured(std::string_view text, std::string_view colour) const {
    return style_.has_colour ? fmt::format("{}{}\x1b[0m", colour, text) : std::string(text);
  }
  std::string bold(std::string_view text) const { return coloured(text, "\x1b[1m"); }

  void write_heading(std::string_view heading) { text_ += fmt::format("\n{}\n", bold(heading)); }

  void write_headline() {
    text_ += bold(printable_name(report_.name)) + "\n" + printable_name(summary_of(scenario_)) + "\n\n";
    TextTable table({Align::left, Align::left});
    table.add_row({"iteration time", bold(format_duration(report_.iteration)) + band()});
    table.add_row({"throughput", throughput()});
    table.add_row({"scaling efficiency", of_one_gpu()});
    table.add_row({"MFU", report_.mfu ? percentage(*report_.mfu, 1) : "unknown"});
    // A picosecond of rounding is no variation.
    if (report_.longest - report_.p5 > Duration::nanoseconds(1)) {
      table.add_row({"iterations vary", spread()});
    }
    if (report_.waiting.max > Duration::zero()) {
      table.add_row({"waiting for stragglers", waiting()});
    }
    if (report_.timed_out) {
      table.add_row(
          {"ended", fmt::format("in iteration {}: {} timed out after {}", report_.timed_out->iteration,
                                printable_name(report_.timed_out->collective),
                                format_duration(report_.timed_out->waited))});
    }
    text_ += table.text(indent);
  }

  std::string spread() const {
    return fmt::format("p5 {}, p50 {}, p95 {}, p99 {}, longest {}", format_duration(report_.p5),
                       format_duration(report_.p50), format_duration(report_.p95),
                       format_duration(report_.p99), format_duration(report_.longest));
  }

  std::string waiting() const {
    return fmt::format("{} of an iteration on average over all ranks, {} at most",
                       percentage(report_.waiting.mean.in_seconds(), report_.iteration.in_seconds()),
                       percentage(report_.waiting.max.in_seconds(), report_.iteration.in_seconds()));
  }

  std::string band() const {
    if (!report_.iteration_low || !report_.iteration_high) {
      return "";
    }
    return fmt::format("   ({} to {}: 10th to 90th percentile)", format_duration(*report_.iteration_low),
                       format_duration(*report_.iteration_high));
  }

  std::string rate(std::int64_t per_iteration, std::string_view unit) const {
    const auto value = per_second(per_iteration, report_.iteration);
    if (!value) {
      return "unknown";
    }
    const bool is_small = *value < 100;
    return is_small ? fmt::format("{:.2f} {}/s", *value, unit)
                    : fmt::format("{} {}/s", grouped(std::llround(*value)), unit);
  }

  std::string throughput() const {
    std::string text = rate(report_.samples_per_iteration, "samples");
    if (report_.tokens_per_iteration) {
      text += "   " + rate(*report_.tokens_per_iteration, "tokens");
    }
    return text;
  }

  std::string of_one_gpu() const {
    if (!report_.scaling_efficiency) {
      return "unknown: " + report_.scaling_efficiency_reason;
    }
    return percentage(*report_.scaling_efficiency, 1) + " of linear from one GPU";
  }

  void write_breakdown() {
    write_heading("Where the time goes");
    const std::vector<BreakdownPart> parts = parts_of(report_.breakdown);
    text_ += std::string(indent, ' ') + bar(parts) + "\n";
    const Duration whole = sum(parts);
    TextTable table({Align::left, Align::left, Align::right, Align::right});
    for (std::size_t part = 0; part < parts.size(); ++part) {
      if (parts[part].time > Duration::zero()) {
        table.add_row({coloured(looks[part].glyph, looks[part].colour), words(parts[part].name),
                       format_duration(parts[part].time),
                       percentage(parts[part].time.in_seconds(), whole.in_seconds())});
      }
    }
    text_ += table.text(indent);
  }

  static Duration sum(const std::vector<BreakdownPart>& parts) {
    Duration total;
    for (const BreakdownPart& part : parts) {
      total += part.time;
    }
    return total;
  }

  // The key as words: "exposed_communication" is "exposed communication".
  static std::string words(std::string name) {
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
  }

  // Every part ends where its running sum falls, so that the bar is as long as it says.
  std::string bar(const std::vector<BreakdownPart>& parts) const {
    const double whole = std::max(sum(parts).in_seconds(), 1e-12);
    std::string result;
    Duration so_far;
    std::int64_t drawn = 0;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      so_far += parts[part].time;
      const std::int64_t end = std::llround(so_far.in_seconds() / whole * static_cast<double>(bar_width));
      std::string stretch;
      for (; drawn < end; ++drawn) {
        stretch += looks[part].glyph;
      }
      result += stretch.empty() ? "" : coloured(stretch, looks[part].colour);
    }
    return result;
  }

  void write_buckets() {
    if (report_.buckets.empty()) {
      return;
    }
    write_heading(
        fmt::format("Gradient buckets ({}), times from the start of the iteration", report_.buckets.size()));
    TextTable table({Align::right, Align::right, Align::right, Align::right, Align::right, Align::right,
                     Align::left, Align::left, Align::right, Align::right});
    table.add_row(
        {"bucket", "size", "tensors", "ready", "start", "end", "algorithm", "protocol", "busbw", "exposed"});
    const std::size_t count = report_.buckets.size();
    const bool is_long = count > most_buckets_shown;
    for (std::size_t bucket = 0; bucket < count; ++bucket) {
      const bool is_middle = bucket >= buckets_at_each_end && bucket < count - buckets_at_each_end;
      if (!is_long || !is_middle) {
        table.add_row(bucket_cells(report_.buckets[bucket]));
      } else if (bucket == buckets_at_each_end) {
        table.add_note(middle_note(count));
      }
    }
    text_ += table.text(indent);
  }

  static std::vector<std::string> bucket_cells(const BucketReport& bucket) {
    return {std::to_string(bucket.index),
            format_bytes(bucket.bytes),
            std::to_string(bucket.parameters),
            format_duration(bucket.ready),
            format_duration(bucket.start),
            format_duration(bucket.end),
            bucket.algorithm,
            bucket.protocol,
            format_bandwidth(bucket.busbw),
            time_cell(bucket.exposed)};
  }

  std::string middle_note(std::size_t count) const {
    Bytes bytes;
    Duration exposed;
    for (std::size_t bucket = buckets_at_each_end; bucket < count - buckets_at_each_end; ++bucket) {
      bytes += report_.buckets[bucket].bytes;
      exposed += report_.buckets[bucket].exposed;
    }
    return fmt::format("... {} more: {}, {} exposed ...", count - 2 * buckets_at_each_end,
                       format_bytes(bytes), format_duration(exposed));
  }

  // Where more is exchanged than the buckets above.
  void write_collectives() {
    if (report_.collectives.size() > report_.buckets.size()) {
      write_heading(fmt::format("Collectives ({}) of one iteration", report_.collectives.size()));
      text_ += to_text(grouped_alike(report_.collectives), indent);
    }
  }

  void write_communication() {
    if (report_.collectives.empty() && report_.servers.empty()) {
      return;
    }
    write_heading("Communication");
    const Duration active = report_.communication_total;
    TextTable table({Align::left, Align::left});
    const Duration hidden = report_.communication_overlapped;
    table.add_row({"sent by each GPU", format_bytes(report_.bytes_per_gpu) + " per iteration"});
    table.add_row(
        {report_.servers.empty() ? "collectives active" : "messages under way", format_duration(active)});
    table.add_row(
        {"hidden behind computation", fmt::format("{} ({})", format_duration(hidden),
                                                  percentage(hidden.in_seconds(), active.in_seconds()))});
    if (!report_.bottleneck_link.empty()) {
      table.add_row({"bottleneck link", printable_name(report_.bottleneck_link)});
    }
    add_servers(table);
    text_ += table.text(indent);
  }

  // The busiest of many.
  void add_servers(TextTable& table) const {
    if (report_.servers.empty()) {
      return;
    }
    const auto by_work = [](const ServerReport& a, const ServerReport& b) { return a.busy < b.busy; };
    const auto busiest = std::max_element(report_.servers.begin(), report_.servers.end(), by_work);
    table.add_row({"servers", std::to_string(report_.servers.size())});
    table.add_row(
        {"busiest server", fmt::format("number {}: {} in, {} out, {} at work ({}), {} of memory",
                                       busiest - report_.servers.begin(), format_bytes(busiest->bytes_in),
                                       format_bytes(busiest->bytes_out), format_duration(busiest->busy),
                                       percentage(busiest->busy.in_seconds(), report_.iteration.in_seconds()),
                                       format_bytes(busiest->memory))});
  }

  void write_asynchrony() {
    if (!report_.asynchrony) {
      return;
    }
    const AsynchronyReport& found = *report_.asynchrony;
    write_heading(
        fmt::format("Asynchrony: {} workers, {} updates measured", found.workers, grouped(found.updates)));
    TextTable table({Align::left, Align::left});
    table.add_row({"updates", fmt::format("{:.4g} a second", found.updates_per_s)});
    table.add_row(
        {"staleness", fmt::format("mean {:.2f}, median {}, 95 % {}, at most {} updates", found.staleness.mean,
                                  found.staleness.p50, found.staleness.p95, found.staleness.maximum)});
    table.add_row(
        {"waiting for turns or bound", percentage(found.waiting_fraction, 1) + " of the workers' time"});
    table.add_row({"updates that overlapped", grouped(found.conflicts)});
    const auto busiest =
        std::max_element(found.servers.begin(), found.servers.end(),
                         [](const AsynchronousServer& left, const AsynchronousServer& right) {
                           return left.utilisation < right.utilisation;
                         });
    if (busiest != found.servers.end()) {
      table.add_row({"busiest server",
                     percentage(busiest->utilisation, 1) + " busy, holds " + format_bytes(busiest->bytes)});
    }
    text_ += table.text(indent);
    write_histogram(found.staleness);
  }

  void write_histogram(const StalenessReport& staleness) {
    std::int64_t most = 1;
    for (const StalenessBar& bar : staleness.histogram) {
      most = std::max(most, bar.updates);
    }
    TextTable table({Align::right, Align::right, Align::left});
    for (const StalenessBar& bar : staleness.histogram) {
      const std::int64_t length = (bar.updates * histogram_width + most - 1) / most;
      const std::string range =
          bar.from == bar.to ? std::to_string(bar.from) : fmt::format("{}-{}", bar.from, bar.to);
      table.add_row({range, grouped(bar.updates), std::string(static_cast<std::size_t>(length), '#')});
    }
    text_ += std::string(indent, ' ') + "staleness, updates\n" + table.text(indent);
  }

  void write_memory() {
    write_heading("Memory of one GPU");
    const MemoryUse& memory = report_.memory.peak;
    TextTable table({Align::left, Align::right});
    const std::array<std::pair<const char*, Bytes>, 6> parts{
        {{"parameters", memory.parameters},
         {"gradients", memory.gradients},
         {"optimizer states", memory.optimizer_states},
         {"activations", memory.activations},
         {"communication buffers", memory.communication_buffers},
         {"framework", memory.framework}}};
    for (const auto& [name, bytes] : parts) {
      if (bytes > Bytes{0}) {
        table.add_row({name, format_bytes(bytes)});
      }
    }
    table.add_row({"total", format_bytes(memory.total())});
    text_ += table.text(indent);
    if (!report_.memory.moment.empty()) {
      text_ +=
          fmt::format("{:{}}most {} into the iteration, {}\n", "", indent,
                      format_duration(report_.memory.since_start), printable_name(report_.memory.moment));
    }
    text_ += std::string(indent, ' ') + verdict() + "\n";
    write_remedies();
    if (report_.imbalance) {
      write_imbalance(*report_.imbalance);
    }
  }

  void write_remedies() {
    const std::vector<MemoryRemedy>& remedies = report_.memory.remedies;
    if (remedies.empty()) {
      return;
    }
    write_heading("What would make it fit (each part with --set)");
    TextTable table({Align::left, Align::right, Align::left});
    for (const MemoryRemedy& remedy : remedies) {
      table.add_row(
          {printable_name(describe(remedy)), format_bytes(remedy.total), remedy.fits ? "fits" : "does not"});
    }
    text_ += table.text(indent);
    if (const std::string hopeless = describe_hopelessness(remedies, report_.memory.capacity);
        !hopeless.empty()) {
      text_ += std::string(indent, ' ') + hopeless + "\n";
    }
  }

  void write_imbalance(const Imbalance& imbalance) {
    text_ += fmt::format("{:{}}GPU 0 computes {} of an iteration, the others {}; it holds {}, they {}\n", "",
                         indent, format_duration(imbalance.busy), format_duration(imbalance.others_busy),
                         format_bytes(imbalance.memory), format_bytes(imbalance.others_memory));
  }

  std::string verdict() const {
    const Bytes total = report_.memory.peak.total();
    const Bytes capacity = report_.memory.capacity;
    const bool fits = report_.memory.fits();
    return fmt::format("{} {}: {} used",
                       coloured(fits ? "fits" : "DOES NOT FIT", fits ? "\x1b[32m" : "\x1b[31m"),
                       format_bytes(capacity),
                       percentage(static_cast<double>(total.count()), static_cast<double>(capacity.count())));
  }

  static std::string epoch_text(const InputReport& input) {
    const Epoch& epoch = *input.epoch;
    std::string text = fmt::format("{} iterations in {}; {} samples a rank", grouped(epoch.iterations),
                                   format_horizon(Horizon{std::llround(input.epoch_seconds)}),
                                   grouped(epoch.samples_per_rank));
    if (epoch.repeated > 0) {
      text += fmt::format(", {} repeated", epoch.repeated);
    }
    if (epoch.left_out > 0) {
      text += fmt::format(", {} left out", epoch.left_out);
    }
    return text;
  }

  void write_input() {
    if (!report_.input) {
      return;
    }
    const InputReport& input = *report_.input;
    write_heading("Input of one GPU, a batch");
    TextTable table({Align::left, Align::left});
    if (input.work.reading > Duration::zero()) {
      table.add_row({"read from storage", format_duration(input.work.reading)});
    }
    if (input.work.preparing > Duration::zero()) {
      table.add_row(
          {"prepared by one process",
           fmt::format("{}, {} workers", format_duration(input.work.preparing), input.work.workers)});
    }
    if (input.work.copying > Duration::zero()) {
      table.add_row({"copied to the device", format_duration(input.work.copying)});
    }
    if (!input.slowest.empty()) {
      table.add_row({"at best every",
                     fmt::format("{} (the {})", format_duration(input.batch_interval), input.slowest)});
    }
    if (input.padding) {
      table.add_row({"padding", percentage(*input.padding, 1) + " of all tokens"});
    }
    if (input.epoch) {
      table.add_row({"epoch", epoch_text(input)});
    }
    text_ += table.text(indent);
  }

  static std::string time_text(Microseconds time) {
    constexpr std::int64_t minute = 60'000'000;
    return time.count() < minute ? format_duration(Duration::microseconds(time.count()))
                                 : format_horizon(Horizon{time.count() / 1'000'000});
  }

  static std::string lost(const Goodput& goodput, double share) {
    const double seconds = share * static_cast<double>(goodput.horizon.count());
    return fmt::format("{} ({})", format_horizon(Horizon{std::llround(seconds)}), percentage(share, 1));
  }

  static std::string choice_text(const IntervalChoice& choice) {
    return fmt::format("{}: {} useful", time_text(choice.interval), percentage(choice.fraction, 1));
  }

  void write_goodput() {
    if (!report_.goodput) {
      return;
    }
    const Goodput& goodput = *report_.goodput;
    const Checkpointing& checkpointing = goodput.checkpointing;
    write_heading(fmt::format("Goodput over {}", format_horizon(goodput.horizon)));
    TextTable table({Align::left, Align::left});
    table.add_row(
        {"useful time",
         fmt::format("{}   (simulated {} to {}: 5th to 95th percentile of {} histories)",
                     bold(percentage(goodput.expected.useful, 1)), percentage(goodput.simulated_p5, 1),
                     percentage(goodput.simulated_p95, 1), goodput.histories)});
    table.add_row({"failures", fmt::format("{:.1f}, one every {}", goodput.expected_failures,
                                           time_text(checkpointing.failures.mtbf))});
    table.add_row(
        {"checkpoint", fmt::format("{} in {}, every {} of work", format_bytes(checkpointing.bytes),
                                   format_duration(checkpointing.time), time_text(checkpointing.interval))});
    table.add_row({"lost to checkpoints", lost(goodput, goodput.expected.checkpoint)});
    table.add_row({"lost to rework", lost(goodput, goodput.expected.rework)});
    table.add_row({"lost to restarts", lost(goodput, goodput.expected.restart)});
    table.add_row({"best interval, Young", choice_text(goodput.young)});
    table.add_row({"best interval, Daly", choice_text(goodput.daly)});
    table.add_row({"best interval, simulated", choice_text(goodput.simulated)});
    text_ += table.text(indent);
  }

  // Pieces by the first word of their name: "backward layer4.2" is a piece of backward.
  struct PathKind {
    std::string name;
    Duration total;
    std::size_t pieces = 0;
    PathItem longest;
  };

  std::vector<PathKind> path_kinds() const {
    std::vector<PathKind> kinds;
    for (const PathItem& item : report_.critical_path) {
      const std::string name = item.what.substr(0, item.what.find(' '));
      auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const PathKind& k) { return k.name == name; });
      if (kind == kinds.end()) {
        kind = kinds.insert(kinds.end(), {.name = name, .total = {}, .pieces = 0, .longest = item});
      }
      kind->total += item.end - item.start;
      kind->pieces += 1;
      if (item.end - item.start > kind->longest.end - kind->longest.start) {
        kind->longest = item;
      }
    }
    std::stable_sort(kinds.begin(), kinds.end(),
                     [](const PathKind& left, const PathKind& right) { return left.total > right.total; });
    return kinds;
  }

  void write_critical_path() {
    if (report_.critical_path.empty()) {
      return;
    }
    write_heading("Critical path: what the end of the iteration waits for");
    TextTable table({Align::left, Align::right, Align::right, Align::left});
    const std::vector<PathKind> kinds = path_kinds();
    const Duration whole =
        report_.critical_path.back().end;  // the last iteration, which may be unlike the mean
    for (std::size_t kind = 0; kind < std::min(kinds.size(), path_kinds_shown); ++kind) {
      table.add_row({printable_name(kinds[kind].name), format_duration(kinds[kind].total),
                     percentage(kinds[kind].total.in_seconds(), whole.in_seconds()),
                     longest_of(kinds[kind])});
    }
    text_ += table.text(indent);
  }

  static std::string longest_of(const PathKind& kind) {
    if (kind.pieces == 1) {
      return printable_name(kind.longest.what);
    }
    return fmt::format("{} pieces, longest {} ({})", kind.pieces, printable_name(kind.longest.what),
                       format_duration(kind.longest.end - kind.longest.start));
  }

  void write_warnings() {
    if (report_.warnings.empty()) {
      return;
    }
    write_heading("Warnings");
    for (const std::string& warning : report_.warnings) {
      text_ += std::string(indent, ' ') + coloured(printable_name(warning), "\x1b[33m") + "\n";
    }
  }

  const Report& report_;
  const LoadedScenario& scenario_;
  const TextStyle& style_;
  std::string text_;
};

std::string model_name(const ModelUse& model) {
  if (!model.name.empty()) {
    return model.name;
  }
  return model.measured ? "a measured model" : "an explicit model";
}

}  // namespace

std::string summary_of(const LoadedScenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  const std::string nodes = cluster.nodes == 1 ? "one node" : fmt::format("{} nodes", cluster.nodes);
  const std::string changes = text_of(scenario.changes);
  return fmt::format("{} of {} ({}, batch {} a GPU) on {} of {} x {} ({}){}", scenario.training.strategy,
                     model_name(scenario.model), name_of(scenario.model.precision, precision_spellings),
                     scenario.model.batch_per_gpu, nodes, cluster.gpus_per_node, cluster.gpu.name,
                     cluster.machine.name, changes.empty() ? "" : "; changed: " + changes);
}

std::string to_text(const std::vector<CollectiveGroup>& groups, std::size_t indent) {
  TextTable table({Align::left, Align::right, Align::left, Align::right, Align::right, Align::right,
                   Align::left, Align::left, Align::right, Align::right});
  table.add_row({"what", "number", "collective", "ranks", "size", "sent", "algorithm", "protocol", "active",
                 "exposed"});
  for (const CollectiveGroup& group : groups) {
    table.add_row({printable_name(name_of(group)), std::to_string(group.count),
                   std::string(collective_op_name(group.first->op)), std::to_string(group.first->ranks),
                   format_bytes(group.bytes), format_bytes(group.sent), group.first->algorithm,
                   group.first->protocol, time_cell(group.active), time_cell(group.exposed)});
  }
  return table.text(indent);
}

std::string to_text(const Report& report, const LoadedScenario& scenario, const TextStyle& style) {
  return TextReport(report, scenario, style).write();
}

}  // namespace lockstep
