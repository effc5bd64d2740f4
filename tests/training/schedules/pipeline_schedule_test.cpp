// The orders of pipelines: laws over every schedule that is registered, their published bubbles and what they
// hold, each in a pipeline of equal stages whose messages cost nothing.
//
// p stages, m micro-batches, v chunks a rank; F, B, W: forward, backward by input and by weights of one part.
// Idle is what the stage with the longest span idles in it, from its first pass to the end of its last.

#include "sim/training/schedules/pipeline_schedule.h"

#include <doctest/doctest.h>

#include <set>

#include "sim/training/schedules/ideal_bubble.h"
#include "tests/support/ideal_pipeline.h"

namespace lockstep::pipeline_schedule_test {

constexpr PassTimes alike{};
constexpr PassTimes uneven[]{{1, 1, 1}, {2, 2, 1}, {2, 3, 2}, {3, 2, 1}, {4, 5, 4}, {2, 7, 1}};
constexpr std::int64_t stage_counts[]{1, 2, 3, 4, 7, 8};

std::vector<PipelineShape> shapes_of(const std::string& name) {
  std::vector<PipelineShape> shapes;
  for (const std::int64_t stages : stage_counts)
    for (const std::int64_t chunks : {1, 2, 3, 5})
      for (const std::int64_t micro_batches : {1, 2, 3, 4, 5, 7, 8, 13, 14, 15, 16, 24, 29})
        if (const PipelineShape shape{stages, chunks, micro_batches}; problems_of_shape(name, shape).empty())
          shapes.push_back(shape);
  return shapes;
}

template <class Law>
void for_every_schedule(Law law) {
  for (const auto& [name, schedule] : Registry<PipelineSchedule>::all()) {
    const std::vector<PipelineShape> shapes = shapes_of(name);
    CHECK(shapes.size() > 5);
    for (const PipelineShape& shape : shapes) {
      INFO(name, ": ", shape.stages, " stages, ", shape.chunks, " chunks, ", shape.micro_batches,
           " micro-batches");
      law(schedule, shape);
    }
  }
}

std::vector<StageSpan> spans_of(std::string_view name, const PipelineShape& shape, const PassTimes& times) {
  const PipelineSchedule& schedule = pipeline_schedule_named(name);
  const auto spans = IdealPipeline(schedule, shape, times).run(passes_by_stage(schedule, shape));
  REQUIRE(spans.has_value());
  return *spans;
}

StageSpan longest_span(std::string_view name, const PipelineShape& shape, const PassTimes& times) {
  const std::vector<StageSpan> spans = spans_of(name, shape, times);
  return *std::max_element(spans.begin(), spans.end(), [](const StageSpan& left, const StageSpan& right) {
    return left.end - left.begin < right.end - right.begin;
  });
}

std::int64_t idle_of(std::string_view name, const PipelineShape& shape, const PassTimes& times = alike) {
  return longest_span(name, shape, times).idle();
}

// "F0 F1 B0 ...", with an apostrophe for each chunk before; "b" and "w": backward by input, by weights.
std::string text_of(const std::vector<Pass>& passes) {
  std::string text;
  for (const Pass& pass : passes) {
    const std::string_view letters = "FBbw";
    text += (text.empty() ? "" : " ") + std::string(1, letters[static_cast<std::size_t>(pass.kind)]) +
            std::to_string(pass.micro_batch) + std::string(static_cast<std::size_t>(pass.chunk), '\'');
  }
  return text;
}

std::string order_of(std::string_view name, const PipelineShape& shape, std::int64_t stage) {
  return text_of(pipeline_schedule_named(name).passes(shape, stage));
}

std::vector<std::string> keys_of(const std::vector<ShapeProblem>& problems) {
  std::vector<std::string> keys;
  for (const ShapeProblem& problem : problems) keys.emplace_back(problem.key);
  return keys;
}

// ---- laws of all schedules ----

TEST_CASE("The schedules go by the names of the frameworks and papers, and each tells its source") {
  CHECK(Registry<PipelineSchedule>::names() == std::vector<std::string>{"1f1b", "combined_1f1b", "dualpipe",
                                                                        "gpipe", "interleaved", "zb_h1",
                                                                        "zb_h2", "zb_v"});
  for (const auto& [name, schedule] : Registry<PipelineSchedule>::all()) {
    INFO(name);
    CHECK(!schedule.description.empty());
    CHECK(schedule.source.find("arXiv") != std::string::npos);
  }
}

TEST_CASE(
    "Every stage runs each of its chunks once forward and once backward with every micro-batch of its copy") {
  for_every_schedule([](const PipelineSchedule& schedule, const PipelineShape& shape) {
    const std::vector<PassKind> kinds =
        schedule.splits_backward
            ? std::vector{PassKind::forward, PassKind::backward_input, PassKind::backward_weights}
            : std::vector{PassKind::forward, PassKind::backward};
    using Key = std::tuple<PassKind, std::int64_t, std::int64_t>;
    std::set<Key> wanted;
    for (const PassKind kind : kinds)
      for (std::int64_t micro = 0; micro < shape.micro_batches / schedule.copies; ++micro)
        for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk) wanted.insert({kind, micro, chunk});
    for (const std::vector<Pass>& passes : passes_by_stage(schedule, shape)) {
      std::set<Key> found;
      for (const Pass& pass : passes) found.insert({pass.kind, pass.micro_batch, pass.chunk});
      CHECK(found == wanted);
      CHECK(passes.size() == wanted.size());
    }
  });
}

TEST_CASE(
    "A chunk takes micro-batches in ascending order, forward before backward, by input before by weights") {
  for_every_schedule([](const PipelineSchedule& schedule, const PipelineShape& shape) {
    for (const std::vector<Pass>& passes : passes_by_stage(schedule, shape)) {
      std::map<std::pair<PassKind, std::int64_t>, std::int64_t> done;  // micro-batches, by kind and chunk
      for (const Pass& pass : passes) {
        CHECK(pass.micro_batch == done[{pass.kind, pass.chunk}]++);
        if (pass.kind == PassKind::backward || pass.kind == PassKind::backward_input)
          CHECK(pass.micro_batch < done[{PassKind::forward, pass.chunk}]);
        if (pass.kind == PassKind::backward_weights)
          CHECK(pass.micro_batch < done[{PassKind::backward_input, pass.chunk}]);
      }
    }
  });
}

TEST_CASE("No stages wait for one another for ever, whatever their passes take") {
  for_every_schedule([](const PipelineSchedule& schedule, const PipelineShape& shape) {
    for (const PassTimes& times : {alike, PassTimes{2, 7, 1}}) {
      const auto spans = IdealPipeline(schedule, shape, times).run(passes_by_stage(schedule, shape));
      REQUIRE(spans.has_value());
      for (const StageSpan& span : *spans)
        CHECK(span.busy == shape.micro_batches / schedule.copies * shape.chunks * times.micro_batch());
    }
  });
}

// The last stage would run its first backward before the forward to which it belongs.
// What passes take enters a way through them in proportion, so that it is enough to count each kind alone.
TEST_CASE("No way through a pipeline has more than m + 2 p passes of a kind for each part of a stage") {
  for_every_schedule([](const PipelineSchedule& schedule, const PipelineShape& shape) {
    for (const PassTimes& one : {PassTimes{1, 0, 0}, PassTimes{0, 1, 0}, PassTimes{0, 0, 1}}) {
      const auto spans = IdealPipeline(schedule, shape, one).run(passes_by_stage(schedule, shape));
      REQUIRE(spans.has_value());
      for (const StageSpan& span : *spans)
        CHECK(span.end <= shape.chunks * (shape.micro_batches + 2 * shape.stages));
    }
  });
}

TEST_CASE("A stage that waits for what comes behind stands still, and is seen to") {
  const PipelineSchedule& schedule = pipeline_schedule_named("1f1b");
  const PipelineShape shape{.stages = 2, .micro_batches = 2};
  StagePasses passes = passes_by_stage(schedule, shape);
  CHECK(IdealPipeline(schedule, shape, alike).run(passes).has_value());
  std::swap(passes[1][0], passes[1][1]);
  CHECK(!IdealPipeline(schedule, shape, alike).run(passes).has_value());
}

TEST_CASE("Every part of the model has one place, and is found there again") {
  for_every_schedule([](const PipelineSchedule& schedule, const PipelineShape& shape) {
    const std::vector<PartPlace> places = places_of_parts(schedule, shape);
    REQUIRE(places.size() == static_cast<std::size_t>(shape.stages * shape.chunks));
    for (std::size_t part = 0; part < places.size(); ++part)
      CHECK(schedule.part(shape, places[part].stage, places[part].chunk) == static_cast<std::int64_t>(part));
  });
}

TEST_CASE("Parts are dealt to the ranks in turn, in a V down the ranks and up again") {
  const PipelineShape shape{.stages = 3, .chunks = 2};
  const auto stages_of = [&](std::string_view name) {
    std::vector<std::int64_t> stages;
    for (const PartPlace& place : places_of_parts(pipeline_schedule_named(name), shape))
      stages.push_back(place.stage);
    return stages;
  };
  CHECK(stages_of("interleaved") == std::vector<std::int64_t>{0, 1, 2, 0, 1, 2});
  CHECK(stages_of("zb_v") == std::vector<std::int64_t>{0, 1, 2, 2, 1, 0});
}

TEST_CASE("One stage never idles") {
  for_every_schedule([](const PipelineSchedule& schedule, const PipelineShape& shape) {
    if (shape.stages > 1)
      return;
    const auto spans = IdealPipeline(schedule, shape, {3, 4, 2}).run(passes_by_stage(schedule, shape));
    REQUIRE(spans.has_value());
    CHECK(spans->front().idle() == 0);
  });
}

// ---- orders, as the papers draw them ----

TEST_CASE("GPipe runs all forwards, then all backwards") {
  CHECK(order_of("gpipe", {.stages = 4, .micro_batches = 3}, 0) == "F0 F1 F2 B0 B1 B2");
  CHECK(order_of("gpipe", {.stages = 4, .micro_batches = 3}, 3) == "F0 F1 F2 B0 B1 B2");
}

// Figure 2 of the paper, four stages: three forwards first on stage 0, then one forward and one backward.
TEST_CASE("1F1B runs as many forwards first as there are stages behind, then takes turns") {
  const PipelineShape shape{.stages = 4, .micro_batches = 6};
  CHECK(order_of("1f1b", shape, 0) == "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5");
  CHECK(order_of("1f1b", shape, 2) == "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5");
  CHECK(order_of("1f1b", shape, 3) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5");
}

// Two groups of two micro-batches through two chunks; stage 0 runs 2 (2 - 1) + (2 - 1) 2 = 4 forwards first.
TEST_CASE("Interleaving takes a group through all chunks, backward from the last") {
  const PipelineShape shape{.stages = 2, .chunks = 2, .micro_batches = 4};
  CHECK(order_of("interleaved", shape, 0) == "F0 F1 F0' F1' F2 B0' F3 B1' F2' B0 F3' B1 B2' B3' B2 B3");
  CHECK(order_of("interleaved", shape, 1) == "F0 F1 F0' B0' F1' B1' F2 B0 F3 B1 F2' B2' F3' B3' B2 B3");
}

// One forward more than interleaved runs first; pairs stand in the order in which interleaved takes its turns.
TEST_CASE("Combined 1F1B joins interleaved's forwards with its backwards, a forward later") {
  const PipelineShape shape{.stages = 2, .chunks = 2, .micro_batches = 4};
  CHECK(order_of("combined_1f1b", shape, 0) == "F0 F1 F0' F1' F2 F3 B0' F2' B1' F3' B0 B1 B2' B3' B2 B3");
  for (const Pass& pass : pipeline_schedule_named("combined_1f1b").passes(shape, 1))
    CHECK((!pass.joins_next || pass.kind == PassKind::forward));
  const auto joined = [&](std::int64_t stage) {
    return std::ranges::count_if(pipeline_schedule_named("combined_1f1b").passes(shape, stage),
                                 [](const Pass& pass) { return pass.joins_next; });
  };
  CHECK(joined(0) == 8 - 5);
  CHECK(joined(1) == 8 - 3);
}

TEST_CASE(
    "ZB-H1 is 1F1B whose backwards by weights a stage puts off by as many turns as it has stages before it") {
  const PipelineShape shape{.stages = 3, .micro_batches = 4};
  CHECK(order_of("zb_h1", shape, 0) == "F0 F1 F2 b0 w0 F3 b1 w1 b2 w2 b3 w3");
  CHECK(order_of("zb_h1", shape, 1) == "F0 F1 b0 F2 b1 w0 F3 b2 w1 b3 w2 w3");
  CHECK(order_of("zb_h1", shape, 2) == "F0 b0 F1 b1 F2 b2 w0 F3 b3 w1 w2 w3");
}

TEST_CASE(
    "ZB-H2 fills the wait for the first backward with forwards, and the end with backwards by weights") {
  const PipelineShape shape{.stages = 2, .micro_batches = 4};
  CHECK(order_of("zb_h2", shape, 0) == "F0 F1 F2 b0 w0 F3 b1 w1 b2 w2 b3 w3");
  CHECK(order_of("zb_h2", shape, 1) == "F0 b0 F1 b1 F2 b2 w0 F3 b3 w1 w2 w3");
}

TEST_CASE("ZB-V comes back to the rank it began on") {
  const PipelineShape shape{.stages = 2, .chunks = 2, .micro_batches = 3};
  CHECK(order_of("zb_v", shape, 0) == "F0 F1 F2 F0' b0' w0' F1' b1' w1' b0 w0 F2' b2' w2' b1 w1 b2 w2");
  CHECK(order_of("zb_v", shape, 1) == "F0 F0' F1 F1' b0' w0' F2 b0 w0 F2' b1' w1' b1 b2' b2 w1 w2' w2");
}

// Four stages, eight micro-batches, four from each end; the repository's steps by hand: stage 0 is next to the middle's
// stage 1. An apostrophe: the direction that ends here.
TEST_CASE("DualPipe runs forwards of one direction with backwards of the other") {
  const PipelineShape shape{.stages = 4, .chunks = 2, .micro_batches = 8};
  CHECK(order_of("dualpipe", shape, 0) ==
        "F0 F1 F2 F0' b0' w0' F1' F3 b1' w1' F2' b0 w0 b2' w2' F3' b1 w1 b3' w3' b2 w2 b3 w3");
  CHECK(order_of("dualpipe", shape, 1) ==
        "F0 F0' F1 F1' F2 b0' w0' F2' b0 w0 F3 b1' w1' F3' b1 w1 b2' w2' b2 w2 b3' b3 w3' w3");
}

// ---- bubbles ----

// Share of the span that is idle, told without a division: idle (m + p - 1) = (p - 1) span.
TEST_CASE("GPipe and 1F1B idle (p-1)/(m+p-1) of the time, whatever forward and backward take") {
  for (const std::string name : {"gpipe", "1f1b"})
    for (const std::int64_t p : stage_counts)
      for (const std::int64_t m : {1, 2, 3, 8, 17})
        for (const PassTimes& times : uneven) {
          INFO(name, " p ", p, " m ", m, " F ", times.forward, " B ", times.backward());
          const StageSpan span = longest_span(name, {.stages = p, .micro_batches = m}, times);
          CHECK(span.idle() * (m + p - 1) == (p - 1) * (span.end - span.begin));
        }
}

// A pass is a v-th as long as the stage's, so that the work of a rank is v m of them.
TEST_CASE("Interleaving idles (p-1)/(v m+p-1) of the time, whatever forward and backward take") {
  for (const std::int64_t p : stage_counts)
    for (const std::int64_t v : {2, 3, 4})
      for (const std::int64_t groups : {1, 2, 5})
        for (const PassTimes& times : uneven) {
          const std::int64_t m = groups * p;
          INFO("p ", p, " v ", v, " m ", m, " F ", times.forward, " B ", times.backward());
          const StageSpan span = longest_span("interleaved", {p, v, m}, times);
          CHECK(span.idle() * (v * m + p - 1) == (p - 1) * (span.end - span.begin));
        }
}

TEST_CASE("The bubble that is told beforehand is that of the schedule") {
  for_every_schedule([](const PipelineSchedule& schedule, const PipelineShape& shape) {
    for (const auto& [name, registered] : Registry<PipelineSchedule>::all())
      if (&registered == &schedule) {
        const IdealBubble told = ideal_bubble(name, shape);
        const StageSpan longest = longest_span(name, shape, alike);
        CHECK(told.span == longest.end - longest.begin);
        CHECK(told.idle == longest.idle());
      }
  });
}

TEST_CASE("ZB-H1 idles a third of 1F1B if forward and both halves of backward take as long") {
  for (const std::int64_t p : stage_counts)
    for (const std::int64_t m : {p, p + 1, 3 * p}) {
      const PipelineShape shape{.stages = p, .micro_batches = m};
      CHECK(3 * idle_of("zb_h1", shape) == idle_of("1f1b", shape));
    }
}

// The ramp up the stages takes F + B instead of F + B + W, and W more of the first stage's wait is filled.
TEST_CASE("ZB-H1 idles (p-1)(F+B-W), ZB-H2 (p-1)(F+B-2W), while W is no longer than F") {
  for (const std::int64_t p : stage_counts)
    for (const std::int64_t m : {2 * p - 1, 2 * p, 4 * p + 3})
      for (const PassTimes& times : uneven) {
        INFO("p ", p, " m ", m, " F ", times.forward, " B ", times.backward_input, " W ",
             times.backward_weights);
        const PipelineShape shape{.stages = p, .micro_batches = m};
        const std::int64_t both = times.forward + times.backward_input;
        CHECK(idle_of("zb_h1", shape, times) == (p - 1) * (both - times.backward_weights));
        CHECK(idle_of("zb_h2", shape, times) == (p - 1) * (both - 2 * times.backward_weights));
      }
}

// The first backward reaches stage 0 after 2 p - 1 passes, and m are all the forwards there are until then.
TEST_CASE(
    "ZB-H2 does not idle from 2p-1 micro-batches on, with fewer as long as those that lack would take") {
  for (const std::int64_t p : stage_counts)
    for (std::int64_t m = 1; m <= 2 * p + 3; ++m) {
      INFO("p ", p, " m ", m);
      CHECK(idle_of("zb_h2", {.stages = p, .micro_batches = m}) == std::max<std::int64_t>(0, 2 * p - 1 - m));
    }
}

// Stage 0 waits so twice: until the first micro-batch comes back to its second part, and from that part's
// backward until the first part's.
TEST_CASE(
    "ZB-V does not idle from 2p-1 micro-batches on, with fewer twice as long as those that lack would take") {
  for (const std::int64_t p : stage_counts)
    for (std::int64_t m = 1; m <= 2 * p + 3; ++m) {
      INFO("p ", p, " m ", m);
      CHECK(idle_of("zb_v", {p, 2, m}) == 2 * std::max<std::int64_t>(0, 2 * p - 1 - m));
    }
}

// DeepSeek-V3 Technical Report, table 2: (PP / 2 - 1) (F&B + B - 3 W), B the whole backward; a pair takes as long as
// its two passes where messages cost nothing. The formula lets a stage of the ramp wait for forwards as long as for
// backwards by input, so that it holds where both are alike.
TEST_CASE("DualPipe idles (p/2-1)(F&B+B-3W) if forward takes as long as backward by input") {
  for (const std::int64_t p : {2, 4, 6, 8, 16})
    for (const std::int64_t m : {2 * p, 2 * p + 2, 4 * p + 6})
      for (const PassTimes& times : {alike, PassTimes{2, 2, 1}, PassTimes{5, 5, 2}, PassTimes{1, 1, 0}}) {
        INFO("p ", p, " m ", m, " F ", times.forward, " W ", times.backward_weights);
        const std::int64_t pair = times.forward + times.backward();
        CHECK(idle_of("dualpipe", {p, 2, m}, times) ==
              (p / 2 - 1) * (pair + times.backward() - 3 * times.backward_weights));
      }
}

TEST_CASE("DualPipe is the same from both ends") {
  const PipelineShape shape{.stages = 8, .chunks = 2, .micro_batches = 20};
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    std::vector<Pass> other = pipeline_schedule_named("dualpipe").passes(shape, 7 - stage);
    for (Pass& pass : other) pass.chunk = 1 - pass.chunk;
    CHECK(pipeline_schedule_named("dualpipe").passes(shape, stage) == other);
  }
}

// Stage s can begin after s passes, and each then works without a pause: a parallelogram. Nothing is hidden
// in "no bubble": from the first pass of all to the last, p - 1 passes more than a stage's work go by.
TEST_CASE("Where no stage idles, stage s begins and ends s passes after the first") {
  for (const std::int64_t p : stage_counts)
    for (const auto& [name, chunks] : {std::pair{"zb_h2", 1}, std::pair{"zb_v", 2}}) {
      const std::int64_t m = 2 * p;
      const std::vector<StageSpan> spans = spans_of(name, {p, chunks, m}, alike);
      for (std::int64_t stage = 0; stage < p; ++stage) {
        CHECK(spans[static_cast<std::size_t>(stage)].begin == stage);
        CHECK(spans[static_cast<std::size_t>(stage)].end == stage + 3 * m * chunks);
      }
    }
}

// ---- what is held ----

TEST_CASE("GPipe holds all micro-batches, 1F1B one for each stage from this to the last") {
  for (const std::int64_t p : stage_counts)
    for (const std::int64_t m : {1, 2, 5, 8, 20})
      for (std::int64_t stage = 0; stage < p; ++stage) {
        const PipelineShape shape{.stages = p, .micro_batches = m};
        CHECK(most_in_flight(pipeline_schedule_named("gpipe").passes(shape, stage)) == m);
        CHECK(most_in_flight(pipeline_schedule_named("1f1b").passes(shape, stage)) == std::min(m, p - stage));
      }
}

// Its warm-up, and the forward with which the turns begin.
TEST_CASE("Interleaving holds 2(p-s-1)+(v-1)p+1 chunks' passes on stage s") {
  for (const std::int64_t p : stage_counts)
    for (const std::int64_t v : {2, 3, 4})
      for (const std::int64_t m : {p, 4 * p})
        for (std::int64_t stage = 0; stage < p; ++stage)
          CHECK(most_in_flight(pipeline_schedule_named("interleaved").passes({p, v, m}, stage)) ==
                std::min(v * m, 2 * (p - stage - 1) + (v - 1) * p + 1));
}

TEST_CASE("On every stage ZB-H1 holds what 1F1B holds on its first, ZB-H2 twice that less one") {
  for (const std::int64_t p : stage_counts)
    for (const std::int64_t m : {1, 2, 5, 8, 20})
      for (std::int64_t stage = 0; stage < p; ++stage) {
        const PipelineShape shape{.stages = p, .micro_batches = m};
        CHECK(most_in_flight(pipeline_schedule_named("zb_h1").passes(shape, stage)) == std::min(m, p));
        CHECK(most_in_flight(pipeline_schedule_named("zb_h2").passes(shape, stage)) ==
              std::min(m, 2 * p - 1));
      }
}

// Two halves of a stage are as much as a stage of 1F1B holds of a micro-batch.
TEST_CASE("ZB-V holds two halves for each micro-batch that 1F1B holds on its first stage, on every rank") {
  for (const std::int64_t p : stage_counts)
    for (std::int64_t stage = 0; stage < p; ++stage) {
      CHECK(most_in_flight(pipeline_schedule_named("zb_v").passes({p, 2, 2 * p}, stage)) == 2 * p);
      CHECK(most_in_flight(pipeline_schedule_named("zb_v").passes({p, 2, p}, stage)) <= 2 * p);
    }
}

// Table 2 of the report: PP + 1 micro-batches' parts.
TEST_CASE("On every stage DualPipe holds p + 1 micro-batches' parts") {
  for (const std::int64_t p : {2, 4, 8})
    for (const std::int64_t m : {2 * p, 4 * p})
      for (std::int64_t stage = 0; stage < p; ++stage)
        CHECK(most_in_flight(pipeline_schedule_named("dualpipe").passes({p, 2, m}, stage)) == p + 1);
}

// p - s micro-batches wait for their backward by input, s more for that by weights alone.
TEST_CASE("What only waits for its weights counts as what they need") {
  const KeptActivations kept{.by_forward = Bytes{34}, .for_weights = Bytes{10}};
  const std::vector<KeptActivations> chunks{kept};
  for (const std::int64_t p : stage_counts)
    for (std::int64_t stage = 0; stage < p; ++stage)
      CHECK(most_kept(pipeline_schedule_named("zb_h1").passes({.stages = p, .micro_batches = 2 * p}, stage),
                      chunks) == kept.by_forward * (p - stage) + kept.for_weights * stage);
}

// Chunk 0 of both micro-batches, then chunk 1 of the first: its backward comes next.
TEST_CASE("What is kept is counted by chunk") {
  const std::vector<KeptActivations> chunks{{.by_forward = Bytes{100}, .for_weights = {}},
                                            {.by_forward = Bytes{7}, .for_weights = {}}};
  const PipelineShape shape{.stages = 2, .chunks = 2, .micro_batches = 2};
  CHECK(order_of("interleaved", shape, 1) == "F0 F1 F0' B0' F1' B1' B0 B1");
  CHECK(most_kept(pipeline_schedule_named("interleaved").passes(shape, 1), chunks) == Bytes{2 * 100 + 7});
}

// ---- shapes that do not work ----

TEST_CASE("A group of interleaved micro-batches that is not full is refused, with the counts that would do") {
  const std::vector<ShapeProblem> problems = problems_of_shape("interleaved", {4, 2, 10});
  REQUIRE(keys_of(problems) == std::vector<std::string>{"gradient_accumulation"});
  CHECK(problems[0].text ==
        "interleaved schedules take micro-batches in groups of 4, one for each stage; 10 would leave a group "
        "that is "
        "not "
        "full: 8 or 12 would do");
  const std::vector<ShapeProblem> too_few = problems_of_shape("interleaved", {4, 2, 3});
  REQUIRE(too_few.size() == 1);
  CHECK(too_few[0].text.ends_with("full: 4 would do"));
}

TEST_CASE(
    "DualPipe refuses an odd number of stages, and micro-batches that are odd or too few for both ends") {
  const auto text = [](const PipelineShape& shape, std::string_view key) {
    const std::vector<ShapeProblem> problems = problems_of_shape("dualpipe", shape);
    REQUIRE(keys_of(problems) == std::vector<std::string>{std::string(key)});
    return problems[0].text;
  };
  CHECK(text({3, 2, 8}, "pipeline_parallel") ==
        "dualpipe has two halves of stages; 3 are not even: 2 or 4 would do");
  const std::string wanted =
      "dualpipe takes an even number of micro-batches, two or more for each of 4 stages; found ";
  CHECK(text({4, 2, 6}, "gradient_accumulation") == wanted + "6: 8 would do");
  CHECK(text({4, 2, 9}, "gradient_accumulation") == wanted + "9: 10 would do");
  CHECK(problems_of_shape("dualpipe", {4, 2, 8}).empty());
}

TEST_CASE("Each schedule says how many parts a rank holds") {
  const auto text = [](std::string_view name, std::int64_t chunks) {
    const std::vector<ShapeProblem> problems = problems_of_shape(name, {4, chunks, 8});
    REQUIRE(keys_of(problems) == std::vector<std::string>{"virtual_stages"});
    return problems[0].text;
  };
  CHECK(text("1f1b", 2) ==
        "1f1b gives each rank exactly 1 part of the model, not 2 (so many: combined_1f1b, dualpipe, interleaved, zb_v)");
  CHECK(text("gpipe", 0) == "gpipe gives each rank exactly 1 part of the model, not 0");
  CHECK(text("zb_v", 3) == "zb_v gives each rank exactly 2 parts of the model, not 3 (so many: combined_1f1b, interleaved)");
  CHECK(
      text("interleaved", 1) ==
      "interleaved gives each rank 2 or more parts of the model, not 1 (so many: 1f1b, gpipe, zb_h1, zb_h2)");
  CHECK(text("interleaved", -1) == "interleaved gives each rank 2 or more parts of the model, not -1");
}

TEST_CASE("A pipeline without stages or micro-batches is refused, all that is wrong at once") {
  const std::vector<ShapeProblem> problems = problems_of_shape("zb_v", {0, 1, -2});
  REQUIRE(keys_of(problems) ==
          std::vector<std::string>{"pipeline_parallel", "gradient_accumulation", "virtual_stages"});
  CHECK(problems[0].text == "a pipeline has 1 stage or more, not 0");
  CHECK(problems[1].text == "a pipeline has 1 micro-batch or more, not -2");
  CHECK(problems_of_shape("interleaved", {0, 2, 4}).size() == 1);
}

}  // namespace lockstep::pipeline_schedule_test
