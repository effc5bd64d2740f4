#include "sim/report/schedule_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/report/rank_view.h"
#include "sim/report/run_spans.h"
#include "sim/training/schedules/pipeline_schedule.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

enum class Verb : std::uint8_t { forward, backward, weights };

struct LayerSpan {
  Verb verb = Verb::forward;
  std::size_t layer = 0;  // of the stage
};

constexpr std::array verbs{std::pair{std::string_view("forward "), Verb::forward},
                           std::pair{std::string_view("backward "), Verb::backward},
                           std::pair{std::string_view("weights of "), Verb::weights}};

std::string_view name_of(PassKind kind) {
  switch (kind) {
    case PassKind::forward:
      return "forward";
    case PassKind::backward:
      return "backward";
    case PassKind::backward_input:
      return "backward_input";
    case PassKind::backward_weights:
      break;
  }
  return "backward_weights";
}

struct DrawnPass {
  Pass pass;
  Time start;
  Time end;
};

// A stage's kernels in the order in which its lane ran them become passes.
class PassFinder {
 public:
  PassFinder(const Job& stage, bool splits_backward) : stage_(stage), splits_backward_(splits_backward) {
    for (std::size_t layer = 0; layer < stage.layers.size(); ++layer)
      layers_.try_emplace(stage.layers[layer].name, layer);
  }

  // False: it is no kernel of a pass.
  bool add(const Span& span) {
    const std::optional<LayerSpan> found = find(span.name);
    if (!found)
      return false;
    if (begins_pass(*found))
      begin(*found, span.start);
    passes_.back().end = span.end;
    last_ = *found;
    return true;
  }
  const std::vector<DrawnPass>& passes() const { return passes_; }

 private:
  std::optional<LayerSpan> find(const std::string& name) const {
    for (const auto& [prefix, verb] : verbs)
      if (name.starts_with(prefix))
        if (const auto layer = layers_.find(name.substr(prefix.size())); layer != layers_.end())
          return LayerSpan{verb, layer->second};
    return std::nullopt;
  }

  PassKind kind_of(Verb verb) const {
    if (verb == Verb::forward)
      return PassKind::forward;
    if (!splits_backward_)
      return PassKind::backward;
    return verb == Verb::backward ? PassKind::backward_input : PassKind::backward_weights;
  }

  // They lie in the order in which their gradients come.
  std::int64_t chunk_of(std::size_t layer) const {
    const std::vector<LayerRange>& chunks = stage_.stage->chunks;
    const auto holds = [layer](const LayerRange& chunk) {
      return chunk.first <= layer && layer < chunk.last;
    };
    return std::find_if(chunks.begin(), chunks.end(), holds) - chunks.begin();
  }

  // Layers go up forward and down backward, where weights may follow the same layer's input.
  bool begins_pass(const LayerSpan& span) const {
    if (passes_.empty() || kind_of(span.verb) != passes_.back().pass.kind ||
        chunk_of(span.layer) != passes_.back().pass.chunk)
      return true;
    if (span.verb == Verb::forward)
      return span.layer <= last_.layer;
    return span.layer > last_.layer || (span.layer == last_.layer && span.verb == last_.verb);
  }

  void begin(const LayerSpan& span, Time start) {
    Pass pass{.kind = kind_of(span.verb), .chunk = chunk_of(span.layer)};
    pass.micro_batch = count_[{pass.kind, pass.chunk}]++;
    passes_.push_back({pass, start, start});
  }

  const Job& stage_;
  bool splits_backward_;
  std::map<std::string, std::size_t> layers_;
  std::map<std::pair<PassKind, std::int64_t>, std::int64_t> count_;  // passes of a kind and chunk
  std::vector<DrawnPass> passes_;
  LayerSpan last_;
};

class PictureWriter {
 public:
  PictureWriter(const Scenario& scenario, const Simulation& simulation)
      : scenario_(scenario),
        simulation_(simulation),
        run_(simulation.steady),
        spans_(run_, run_.iterations.size() - 1),
        start_(first_start()) {}

  ordered_json write() {
    const Layout& layout = scenario_.training.layout;
    ordered_json json{{"schema", "lockstep.schedule/1"},
                      {"name", scenario_.name},
                      {"machine", scenario_.cluster.machine.name},
                      {"nodes", scenario_.cluster.nodes},
                      {"gpus_per_node", scenario_.cluster.gpus_per_node},
                      {"pipeline_schedule", layout.schedule},
                      {"micro_batches", scenario_.training.gradient_accumulation},
                      {"virtual_stages", layout.chunks},
                      {"stages", ordered_json::array()},
                      {"sends", ordered_json::array()}};
    for (std::size_t stage = 0; stage < simulation_.job.stages.size(); ++stage)
      json["stages"].push_back(write_stage(stage));
    for (const Communication& communication : run_.iterations.back().communications)
      write_send(communication, json["sends"]);
    return json;
  }

 private:
  std::size_t role_of(std::size_t stage) const { return simulation_.cluster->cohorts[stage].roles.front(); }

  // Stages begin an iteration when they have ended the one before.
  Time first_start() const {
    Time first = RankView(run_, role_of(0)).start_of(run_.iterations.size() - 1);
    for (std::size_t stage = 1; stage < simulation_.job.stages.size(); ++stage)
      first = std::min(first, RankView(run_, role_of(stage)).start_of(run_.iterations.size() - 1));
    return first;
  }

  double seconds(Time time) const { return (time - start_).in_seconds(); }

  ordered_json write_stage(std::size_t stage) const {
    const std::size_t role = role_of(stage);
    const bool splits = pipeline_schedule_named(scenario_.training.layout.schedule).splits_backward;
    PassFinder finder(simulation_.job.stages[stage], splits);
    ordered_json others = ordered_json::array();
    for (const Span& span : spans_.computing(role))
      if (!finder.add(span))
        add_other(span, others);
    ordered_json passes = ordered_json::array();
    for (const DrawnPass& drawn : finder.passes())
      passes.push_back({{"kind", name_of(drawn.pass.kind)},
                        {"micro_batch", drawn.pass.micro_batch},
                        {"chunk", drawn.pass.chunk},
                        {"start_s", seconds(drawn.start)},
                        {"end_s", seconds(drawn.end)}});
    return {{"stage", stage},
            {"rank", simulation_.cluster->symmetry.roles.representatives[role].index},
            {"passes", std::move(passes)},
            {"others", std::move(others)},
            {"messages", write_messages(role)}};
  }

  // What follows at once and is charged to the same is one.
  void add_other(const Span& span, ordered_json& others) const {
    const double start = seconds(span.start);
    if (!others.empty() && others.back()["category"] == span.category && others.back()["end_s"] == start) {
      others.back()["end_s"] = seconds(span.end);
      return;
    }
    others.push_back({{"category", span.category}, {"start_s", start}, {"end_s", seconds(span.end)}});
  }

  ordered_json write_messages(std::size_t role) const {
    ordered_json messages = ordered_json::array();
    for (const Communication& communication : run_.iterations.back().communications)
      if (communication.has(role) && communication.direction == Direction::exchanged) {
        const CollectiveSpan span = span_of(run_, communication, role);
        messages.push_back({{"dimension", communication.dimension},
                            {"start_s", seconds(span.start)},
                            {"end_s", seconds(span.end)}});
      }
    return messages;
  }

  // Between the ranks that are drawn.
  void write_send(const Communication& communication, ordered_json& sends) const {
    if (!communication.is_between_stages())
      return;
    std::optional<std::size_t> from;
    std::optional<std::size_t> to;
    for (std::size_t stage = 0; stage < simulation_.job.stages.size(); ++stage)
      if (const std::size_t role = role_of(stage); communication.has(role))
        (communication.comes_to(role) ? to : from) = stage;
    if (!from || !to)
      return;
    const CollectiveSpan span = span_of(run_, communication, role_of(*from));
    sends.push_back({{"what", communication.name},
                     {"from", *from},
                     {"to", *to},
                     {"start_s", seconds(span.start)},
                     {"end_s", seconds(span.end)}});
  }

  const Scenario& scenario_;
  const Simulation& simulation_;
  const Run& run_;
  RunSpans spans_;
  Time start_;
};

}  // namespace

ordered_json schedule_picture(const Scenario& scenario, const Simulation& simulation) {
  return PictureWriter(scenario, simulation).write();
}

}  // namespace lockstep
