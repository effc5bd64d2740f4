#include "sim/report/report_json.h"

#include "sim/collectives/collective.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

ordered_json seconds(Duration duration) {
  return duration.in_seconds();
}

ordered_json seconds_or_null(const std::optional<Duration>& duration) {
  return duration ? seconds(*duration) : ordered_json(nullptr);
}

ordered_json number_or_null(const std::optional<double>& number) {
  return number ? ordered_json(*number) : ordered_json(nullptr);
}

ordered_json text_or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

ordered_json gigabytes_per_second(Bandwidth bandwidth) {
  return static_cast<double>(bandwidth.count()) / 1e9;
}

ordered_json write_breakdown(const Breakdown& breakdown) {
  ordered_json json;
  for (const TimePart& part : time_parts) json[part.key] = seconds(breakdown.*part.time);
  return json;
}

// `fraction`: of all ranks' time.
ordered_json write_waiting(const Report& report) {
  const double iteration = report.iteration.in_seconds();
  const Waiting& waiting = report.disturbance.waiting;
  return {{"mean", seconds(waiting.mean)},
          {"max", seconds(waiting.max)},
          {"fraction", iteration > 0 ? waiting.mean.in_seconds() / iteration : 0.0}};
}

ordered_json write_bucket(const BucketReport& bucket) {
  return {{"index", bucket.index},
          {"bytes", bucket.bytes.count()},
          {"parameters", bucket.parameters},
          {"ready_s", seconds(bucket.ready)},
          {"start_s", seconds(bucket.start)},
          {"end_s", seconds(bucket.end)},
          {"exposed_s", seconds(bucket.exposed)},
          {"algorithm", bucket.algorithm},
          {"protocol", bucket.protocol},
          {"busbw_gbs", gigabytes_per_second(bucket.busbw)}};
}

ordered_json write_collective(const CollectiveReport& collective) {
  return {{"name", collective.name},
          {"collective", collective_op_name(collective.op)},
          {"payload", name_of(collective.payload)},
          {"dimension", collective.dimension},
          {"ranks", collective.ranks},
          {"tensors", collective.tensors},
          {"bytes", collective.bytes.count()},
          {"sent_bytes", collective.sent.count()},
          {"ready_s", seconds(collective.ready)},
          {"start_s", seconds(collective.start)},
          {"end_s", seconds(collective.end)},
          {"exposed_s", seconds(collective.exposed)},
          {"algorithm", collective.algorithm},
          {"protocol", collective.protocol},
          {"busbw_gbs", gigabytes_per_second(collective.busbw)}};
}

ordered_json write_messages(const MessageReport& messages) {
  return {{"count", messages.count},
          {"bytes", messages.bytes.count()},
          {"bytes_on_wire", messages.bytes_on_wire.count()},
          {"start_s", seconds(messages.start)},
          {"end_s", seconds(messages.end)}};
}

ordered_json write_servers(const std::vector<ServerReport>& servers) {
  ordered_json json = ordered_json::array();
  for (const ServerReport& server : servers) {
    json.push_back({{"bytes_in", server.bytes_in.count()},
                    {"bytes_out", server.bytes_out.count()},
                    {"busy_s", seconds(server.busy)},
                    {"memory_bytes", server.memory.count()}});
  }
  return json;
}

ordered_json write_communication(const CommunicationReport& report) {
  ordered_json buckets = ordered_json::array();
  for (const BucketReport& bucket : report.buckets) buckets.push_back(write_bucket(bucket));
  ordered_json collectives = ordered_json::array();
  // Of activations there are thousands, all alike: `dimensions` adds them up.
  for (const CollectiveReport& collective : report.collectives)
    if (collective.payload != Payload::activations)
      collectives.push_back(write_collective(collective));
  ordered_json json{{"bytes_per_gpu", report.bytes_per_gpu.count()},
                    {"total_s", seconds(report.total)},
                    {"overlapped_s", seconds(report.overlapped)},
                    {"buckets", buckets},
                    {"collectives", collectives}};
  for (const DimensionReport& dimension : report.dimensions)
    json["dimensions"].push_back({{"name", dimension.name},
                                  {"calls", dimension.calls},
                                  {"sent_bytes", dimension.sent.count()},
                                  {"active_s", seconds(dimension.active)},
                                  {"exposed_s", seconds(dimension.exposed)}});
  if (report.pushes && report.pulls) {
    json["pushes"] = write_messages(*report.pushes);
    json["pulls"] = write_messages(*report.pulls);
    json["servers"] = write_servers(report.servers);
  }
  return json;
}

// Activations come and go: they do not stand.
ordered_json write_standing(const MemoryUse& standing) {
  ordered_json json;
  for (const MemoryPart& part : memory_parts)
    if (part.bytes != &MemoryUse::activations)
      json[part.key] = (standing.*part.bytes).count();
  json["total"] = standing.total().count();
  return json;
}

ordered_json write_memory(const MemoryReport& report) {
  ordered_json json;
  for (const MemoryPart& part : memory_parts) json[part.key] = (report.peak.*part.bytes).count();
  json["total"] = report.peak.total().count();
  json["allocated"] = report.peak.allocated().count();
  json["reserved"] = report.peak.reserved().count();
  json["capacity"] = report.capacity.count();
  json["fits"] = report.fits();
  json["counts_activations"] = report.counts_activations;
  json["peak_at"] = text_or_null(report.moment);
  json["peak_at_s"] = report.moment.empty() ? ordered_json(nullptr) : seconds(report.since_start);
  json["standing"] = write_standing(report.standing);
  return json;
}

ordered_json write_remedies(const std::vector<MemoryRemedy>& remedies) {
  ordered_json json = ordered_json::array();
  for (const MemoryRemedy& remedy : remedies) {
    ordered_json changes = ordered_json::array();
    for (const auto& [path, value] : remedy.changes) changes.push_back(path + "=" + value);
    json.push_back({{"change", describe(remedy)},
                    {"set", changes},
                    {"total", remedy.total.count()},
                    {"fits", remedy.fits}});
  }
  return json;
}

ordered_json seconds(Microseconds time) {
  return static_cast<double>(time.count()) / 1e6;
}

ordered_json write_goodput(const Report& report) {
  const Goodput& goodput = *report.disturbance.goodput;
  const Checkpointing& checkpointing = goodput.checkpointing;
  const auto horizon = static_cast<double>(goodput.horizon.count());
  const Duration iteration = report.iteration - report.breakdown.checkpoint;
  const auto samples = per_second(report.throughput.samples_per_iteration, iteration);
  return {
      {"fraction", goodput.expected.useful},
      {"samples_per_s", samples ? ordered_json(*samples * goodput.expected.useful) : ordered_json(nullptr)},
      {"horizon_s", horizon},
      {"lost_s",
       {{"checkpoint", horizon * goodput.expected.checkpoint},
        {"rework", horizon * goodput.expected.rework},
        {"restart", horizon * goodput.expected.restart}}},
      {"mtbf_s", seconds(checkpointing.failures.mtbf)},
      {"failures", goodput.expected_failures},
      {"checkpoint_bytes", checkpointing.bytes.count()},
      {"checkpoint_s", seconds(checkpointing.time)},
      {"checkpoint_interval_s", seconds(checkpointing.interval)},
      {"optimal_checkpoint_interval_s",
       {{"young", seconds(goodput.young.interval)},
        {"daly", seconds(goodput.daly.interval)},
        {"simulated", seconds(goodput.simulated.interval)}}},
      {"fraction_at_optimum",
       {{"young", goodput.young.fraction},
        {"daly", goodput.daly.fraction},
        {"simulated", goodput.simulated.fraction}}},
      {"simulated",
       {{"histories", goodput.histories},
        {"mean", goodput.simulated_mean},
        {"p5", goodput.simulated_p5},
        {"p50", goodput.simulated_p50},
        {"p95", goodput.simulated_p95}}}};
}

ordered_json write_epoch(const InputReport& input) {
  const Epoch& epoch = *input.epoch;
  return {{"samples_per_rank", epoch.samples_per_rank},
          {"repeated_samples", epoch.repeated},
          {"left_out_samples", epoch.left_out},
          {"batches_per_rank", epoch.batches_per_rank},
          {"last_batch", epoch.last_batch},
          {"iterations", epoch.iterations},
          {"time_s", input.epoch_seconds}};
}

ordered_json write_input(const InputReport& input) {
  ordered_json json{{"slowest", text_or_null(input.slowest)},
                    {"batch_interval_s", seconds(input.batch_interval)},
                    {"read_s", seconds(input.work.reading)},
                    {"prepare_s", seconds(input.work.preparing)},
                    {"copy_s", seconds(input.work.copying)}};
  if (input.epoch)
    json["epoch"] = write_epoch(input);
  if (input.padding)
    json["padding"] = *input.padding;
  return json;
}

ordered_json write_critical_path(const std::vector<PathItem>& items) {
  ordered_json json = ordered_json::array();
  for (const PathItem& item : items)
    json.push_back({{"what", item.what}, {"start_s", seconds(item.start)}, {"end_s", seconds(item.end)}});
  return json;
}

ordered_json write_server(const AsynchronousServer& server) {
  return {{"bytes", server.bytes.count()},
          {"bytes_in", server.bytes_in.count()},
          {"bytes_out", server.bytes_out.count()},
          {"utilisation", server.utilisation}};
}

ordered_json write_asynchrony(const AsynchronyReport& asynchrony) {
  ordered_json servers = ordered_json::array();
  for (const AsynchronousServer& server : asynchrony.servers) servers.push_back(write_server(server));
  return {{"workers", asynchrony.workers},
          {"updates", asynchrony.updates},
          {"updates_per_s", asynchrony.updates_per_s},
          {"waiting_fraction", asynchrony.waiting_fraction},
          {"conflicts", asynchrony.conflicts},
          {"staleness", to_json(asynchrony.staleness)},
          {"servers", servers}};
}

ordered_json write_imbalance(const Imbalance& imbalance) {
  return {{"busy_s", seconds(imbalance.busy)},
          {"others_busy_s", seconds(imbalance.others_busy)},
          {"memory_bytes", imbalance.memory.count()},
          {"others_memory_bytes", imbalance.others_memory.count()}};
}

ordered_json tokens_per_second(const Report& report) {
  const std::optional<std::int64_t>& tokens = report.throughput.tokens_per_iteration;
  return tokens ? number_or_null(per_second(*tokens, report.iteration)) : ordered_json(nullptr);
}

ordered_json write_changes(const std::vector<ChangedProfile>& profiles) {
  ordered_json json = ordered_json::array();
  for (const ChangedProfile& profile : profiles) {
    for (const ChangedValue& value : profile.values) {
      json.push_back({{"kind", profile.noun},
                      {"name", profile.name},
                      {"path", value.path},
                      {"value", value.value},
                      {"before", value.before}});
    }
  }
  return json;
}

void add_times(const Report& report, ordered_json& json) {
  const IterationTimes& times = report.times;
  json["iteration_time_s"] = seconds(report.iteration);
  json["iteration_time_low_s"] = seconds_or_null(times.low);
  json["iteration_time_high_s"] = seconds_or_null(times.high);
  json["iteration_times_s"] = {{"p5", seconds(times.p5)},
                               {"p50", seconds(times.p50)},
                               {"p95", seconds(times.p95)},
                               {"p99", seconds(times.p99)},
                               {"max", seconds(times.longest)}};
  json["first_iteration_time_s"] = seconds(times.first);
}

// Ratios to the iteration, or to computing, minus 1.
ordered_json write_range(const LogRange& range) {
  const auto end = [](double logarithm) { return (to_ratio(logarithm) - Ratio::one()).in_real(); };
  return {{"low", end(range.low)}, {"high", end(range.high)}};
}

void add_band_parts(const Report& report, ordered_json& json) {
  json["band"] = nullptr;
  if (!report.band)
    return;
  ordered_json sources = ordered_json::array();
  for (const ErrorSource& source : report.band->sources) {
    ordered_json entry{{"what", source.name}};
    entry.update(write_range(source.range));
    sources.push_back(std::move(entry));
  }
  json["band"] = {{"measured_again", write_range(report.band->again)},
                  {"computing", write_range(report.band->computing_of_iteration)},
                  {"host", write_range(report.band->host_of_iteration)},
                  {"communication", write_range(report.band->communication_of_iteration)},
                  {"factor", report.band->factor.in_real()},
                  {"errors_of_computing", std::move(sources)}};
}

void add_rates(const Report& report, ordered_json& json) {
  json["samples_per_s"] =
      number_or_null(per_second(report.throughput.samples_per_iteration, report.iteration));
  json["tokens_per_s"] = tokens_per_second(report);
  json["scaling_efficiency"] = number_or_null(report.scaling.efficiency);
  json["scaling_efficiency_reason"] = text_or_null(report.scaling.reason);
  json["mfu"] = number_or_null(report.throughput.mfu);
}

ordered_json write_timeout(const TimedOut& timed_out) {
  return {{"reason", "collective timeout"},
          {"iteration", timed_out.iteration},
          {"collective", timed_out.collective},
          {"waited_s", seconds(timed_out.waited)}};
}

}  // namespace

ordered_json to_json(const StalenessReport& staleness) {
  ordered_json histogram = ordered_json::array();
  for (const StalenessBar& bar : staleness.histogram)
    histogram.push_back({{"from", bar.from}, {"to", bar.to}, {"updates", bar.updates}});
  return {{"mean", staleness.mean},
          {"p50", staleness.p50},
          {"p95", staleness.p95},
          {"max", staleness.maximum},
          {"histogram", histogram}};
}

ordered_json to_json(const std::vector<CollectiveGroup>& groups) {
  ordered_json json = ordered_json::array();
  for (const CollectiveGroup& group : groups)
    json.push_back({{"what", name_of(group)},
                    {"number", group.count},
                    {"collective", collective_op_name(group.first->op)},
                    {"payload", name_of(group.first->payload)},
                    {"ranks", group.first->ranks},
                    {"bytes", group.bytes.count()},
                    {"sent_bytes", group.sent.count()},
                    {"algorithm", group.first->algorithm},
                    {"protocol", group.first->protocol},
                    {"active_s", seconds(group.active)},
                    {"exposed_s", seconds(group.exposed)}});
  return json;
}

ordered_json to_json(const Report& report, const LoadedScenario& scenario) {
  ordered_json json{{"schema", "lockstep.result/1"}, {"name", report.name}};
  add_times(report, json);
  add_band_parts(report, json);
  add_rates(report, json);
  json["breakdown_s"] = write_breakdown(report.breakdown);
  json["waiting_s"] = write_waiting(report);
  if (report.disturbance.timed_out)
    json["ended"] = write_timeout(*report.disturbance.timed_out);
  json["communication"] = write_communication(report.communication);
  if (report.asynchrony)
    json["asynchrony"] = write_asynchrony(*report.asynchrony);
  json["memory_bytes"] = write_memory(report.memory);
  if (!report.memory.fits())
    json["memory_remedies"] = write_remedies(report.memory.remedies);
  if (report.input)
    json["input"] = write_input(*report.input);
  if (report.disturbance.goodput)
    json["goodput"] = write_goodput(report);
  if (report.imbalance)
    json["rank_0"] = write_imbalance(*report.imbalance);
  json["critical_path"] = write_critical_path(report.critical_path);
  json["bottleneck_link"] = text_or_null(report.communication.bottleneck_link);
  if (const ordered_json changes = write_changes(scenario.changes); !changes.empty())
    json["changes"] = changes;
  json["warnings"] = report.warnings;
  json["scenario"] = scenario.resolved;
  json["engine"] = {{"events", report.engine.events}, {"ranks_simulated", report.engine.ranks_simulated}};
  return json;
}

}  // namespace lockstep
