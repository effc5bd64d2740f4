// How long an iteration with sharded weights takes, derived by hand and met to the picosecond.
//
// Four GPUs round a switch of 1 GB/s, no latency, nothing that a library costs. Each layer has a million fp32
// weights, S = 4 MB, so that gathering or reducing one takes g = (n-1)/n S/B = 3 ms and all-reducing it 2 g. Its
// forward takes f, its backward b, a copy of it c, and one of a rank's own quarter c/4; there is no optimizer.
// Gathers and reductions go through one stream X in the order in which they are issued, kernels through another, C.
// Copies beside them take their time from C where it has something to do.

#include <doctest/doctest.h>

#include "sim/run/host_issue.h"
#include "tests/support/scenarios.h"

namespace lockstep::sharded_time_test {

using Json = nlohmann::ordered_json;

constexpr std::int64_t layers = 4;
constexpr Duration g = Duration::milliseconds(3);
constexpr Bandwidth copying{40'000'000'000};
constexpr Duration c = Duration::microseconds(100);
constexpr Duration quarter = Duration::microseconds(25);
// Where copies do not matter: a picosecond each.
constexpr Bandwidth at_once{INT64_MAX};
constexpr Duration copies_at_once = Duration::picoseconds(100);

struct LayerTimes {
  Duration f;
  Duration b;
};

constexpr LayerTimes compute_bound{Duration::milliseconds(7), Duration::milliseconds(11)};
constexpr LayerTimes communication_bound{Duration::milliseconds(1), Duration::milliseconds(2)};

// Layer 0 is outside of all blocks: FSDP's root.
Duration iteration_of(Json training, const LayerTimes& times, Bandwidth copies, const Json& parameters,
                      bool overlaps = true) {
  Json given;
  given["cluster"] = {{"machine",
                       {{"name", "box"},
                        {"source", "test"},
                        {"gpu", "a100_sxm_40gb"},
                        {"gpus", 4},
                        {"gpu_links",
                         {{"kind", "nvswitch"},
                          {"link", {{"bandwidth", "1 GB/s"}, {"latency", "1 us"}}},
                          {"links_per_gpu", 1}}},
                        {"library", "nccl"}}}};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    Json stated{{"parameters", parameters}};
    stated["forward_time"] = std::to_string(times.f.picoseconds()) + " ps";
    stated["backward_time"] = std::to_string(times.b.picoseconds()) + " ps";
    given["model"]["layers"].push_back(stated);
  }
  given["model"]["precision"] = "fp32";
  training["optimizer"] = "none";
  given["training"] = std::move(training);
  given["communication"] = {{"algorithm", "ring"}, {"overlap", overlaps}};
  Scenario scenario = scenario_from(given);
  scenario.cluster.machine.gpu_links.link.latency = Duration::zero();
  // Nothing slows a kernel, and all GPUs are equally fast.
  Calibration even;
  even.compute_slowdown = Ratio::one();
  even.rank_variation = Ratio{};
  scenario.cluster.calibration = even;
  scenario.cluster.calibration.copy_bandwidth = copies;
  for (std::int64_t layer = 1; layer < layers; ++layer)
    scenario.model.model.layers[static_cast<std::size_t>(layer)].block = static_cast<int>(layer) - 1;
  return summarise(scenario, simulate(scenario)).iteration;
}

void check_takes(const Json& training, const LayerTimes& times, Duration expected) {
  const Duration taken = iteration_of(training, times, at_once, {1'000'000});
  INFO(training.dump());
  CHECK(taken.picoseconds() >= expected.picoseconds());
  CHECK(taken.picoseconds() <= (expected + copies_at_once).picoseconds());
}

void check_takes_with_copies(const Json& training, const LayerTimes& times, Duration expected,
                             const Json& parameters = {1'000'000}) {
  INFO(training.dump());
  CHECK(iteration_of(training, times, copying, parameters).picoseconds() == expected.picoseconds());
}

void check_takes_apart(const Json& training, const LayerTimes& times, Duration expected,
                       const Json& parameters = {1'000'000}) {
  INFO(training.dump());
  CHECK(iteration_of(training, times, copying, parameters, false).picoseconds() == expected.picoseconds());
}

// Only the root's gather before the first kernel and its reduction after the last one show. The third unit is
// gathered when the first one's forward frees its place (the limiter), backward's units right behind it.
TEST_CASE("FSDP bound by computing takes one gather and one reduction more than its kernels") {
  const auto& [f, b] = compute_bound;  // g <= f, 2 g <= b
  for (const char* prefetch : {"pre", "post"})
    check_takes({{"strategy", "fsdp"}, {"backward_prefetch", prefetch}}, compute_bound,
                (f + b) * layers + g * 2);
}

// The gradients of each unit are concatenated behind its backward, c, and divided by 2 before they are reduced, c,
// and after it, c/4: beside C but for the root's.
TEST_CASE(
    "FSDP concatenates what autograd computes for its views, and divides it on either side of the sum") {
  const auto& [f, b] = compute_bound;
  const Json fsdp{{"strategy", "fsdp"}};
  check_takes_with_copies(fsdp, compute_bound, (f + b + c * 2 + quarter) * layers + g * 2);
  // X waits while one sum is divided and then the next unit's gradients, where no gather lies between: behind R2,
  // when C still has the root's backward to share its time with, and behind R1; and for R0's sum at the end.
  check_takes_with_copies(fsdp, communication_bound,
                          g * (3 * layers - 1) + (quarter + c) * 2 + (quarter + c) + quarter);
}

// Every gather, kernel, copy and reduction waits for the one before: all units but the root are gathered twice.
// Gathered in half the bytes, a quarter of a unit is cast from 4 to 2 bytes an element before, and a unit's gradients
// from 2 to 4 between being concatenated and divided.
TEST_CASE("FSDP without overlap takes the sum of everything") {
  constexpr std::int64_t gathers = 2 * layers - 1;
  for (const LayerTimes& times : {compute_bound, communication_bound}) {
    const Duration computing = (times.f + times.b) * layers;
    check_takes_apart({{"strategy", "fsdp"}}, times,
                      computing + g * gathers + (c * 2 + g + quarter) * layers);
    const Duration cast_shard = scaled(quarter, 4 + 2, 2 * 4);
    const Duration cast_unit = scaled(c, 4 + 2, 2 * 4);
    check_takes_apart({{"strategy", "fsdp"}, {"param_dtype", "bf16"}, {"reduce_dtype", "fp32"}}, times,
                      computing + (cast_shard + scaled(g, 1, 2)) * gathers +
                          (scaled(c, 1, 2) + cast_unit + c + g + quarter) * layers);
  }
}

// The second version's library divides: what is left is copying a unit out for forward and again, but for the root,
// for backward, and its gradients in.
TEST_CASE("FSDP's second version copies units out of what was gathered and into what is reduced") {
  const auto& [f, b] = compute_bound;
  check_takes_with_copies({{"strategy", "fsdp"}, {"fsdp_version", 2}}, compute_bound,
                          (f + b + c * 3) * layers - c + g * 2);
}

// X never rests: every unit is gathered twice, the root once, and each is reduced. C has run before the last
// reduction but one: only X counts.
TEST_CASE("FSDP bound by communication takes as long as its gathers and reductions") {
  for (const char* prefetch : {"pre", "post"})
    check_takes({{"strategy", "fsdp"}, {"backward_prefetch", prefetch}}, communication_bound,
                g * (3 * layers - 1));
}

// X: G0 G1 G2 G3, then for each unit of backward its gather, issued at its own turn: the reduction of the unit
// before stands in front of it. G3' runs while F3 does. B3 R3 G2' B2 R2 G1' B1 then B0 beside R1, and R0 last.
TEST_CASE("FSDP without backward prefetch shows a reduction and a gather between units") {
  const auto& [f, b] = compute_bound;
  check_takes({{"strategy", "fsdp"}, {"backward_prefetch", "none"}}, compute_bound,
              g + f * layers + b * layers + g * 2 * (layers - 2) + g);
}

// Without resharding backward gathers nothing: X has layers gathers and layers reductions. Computing: as
// before. Bound by communication: the last unit's forward begins with its arrival at layers x g, then f, b, and
// the reductions one after the other.
TEST_CASE("FSDP that keeps its weights gathers each unit once") {
  const Json kept{{"strategy", "fsdp"}, {"reshard_after_forward", false}};
  check_takes(kept, compute_bound, (compute_bound.f + compute_bound.b) * layers + g * 2);
  check_takes(kept, communication_bound,
              g * layers + communication_bound.f + communication_bound.b + g * layers);
}

Json zero(const char* strategy, bool overlaps) {
  return {{"strategy", strategy},
          {"framework", "deepspeed"},
          {"overlap_comm", overlaps},
          {"contiguous_gradients", false},
          {"reduce_bucket_size", 1'000'000},
          {"communication_data_type", "fp32"}};
}

// As Megatron-LM and ColossalAI's stage 2 do.
Json scattering(const char* strategy, bool overlaps) {
  Json training = zero(strategy, overlaps);
  training["use_multi_rank_bucket_allreduce"] = false;
  return training;
}

// The updated weights of all layers are gathered first (layers x g), and backward waits for every bucket.
TEST_CASE("ZeRO-1 and 2 without overlap take the sum of everything") {
  for (const char* strategy : {"zero1", "zero2"})
    for (const LayerTimes& times : {compute_bound, communication_bound}) {
      check_takes(zero(strategy, false), times, (times.f + times.b + g * 3) * layers);
      check_takes(scattering(strategy, false), times, (times.f + times.b + g * 2) * layers);
    }
}

// With overlap only the last bucket shows where backward is slower (2 g <= b); where it is faster, buckets follow
// each other from the first one's gradients on.
// The last but one leaves with the last gradient, at the end of backward, and so does the last; the first waits for
// the second gradient. Megatron-LM's leave as soon as they are full.
TEST_CASE("ZeRO-1 and 2 with overlap show the last two buckets, or all of them behind the second gradients") {
  const auto& [f, b] = compute_bound;
  for (const char* strategy : {"zero1", "zero2"}) {
    check_takes(zero(strategy, true), compute_bound, (g + f + b) * layers + g * 2 * 2);
    check_takes(zero(strategy, true), communication_bound,
                (g + communication_bound.f) * layers + communication_bound.b * 2 + g * 2 * layers);
    check_takes(scattering(strategy, true), compute_bound, (g + f + b) * layers + g);
    check_takes(scattering(strategy, true), communication_bound,
                (g + communication_bound.f) * layers + communication_bound.b + g * layers);
  }
}

// Each layer is one rank's part and one bucket: copied in, divided, all-reduced, and copied out and away where it is
// one's own, c/4 on the average. With overlap C shares what is not copied in, but for the last bucket's.
TEST_CASE("ZeRO-1 and 2 of DeepSpeed copy a gradient in, divide it, and copy the own part twice") {
  const auto& [f, b] = compute_bound;
  for (const char* strategy : {"zero1", "zero2"}) {
    Json training = zero(strategy, false);
    training["contiguous_gradients"] = true;
    check_takes_with_copies(training, compute_bound, (f + b + g * 3 + c * 2 + quarter * 2) * layers);
    training["overlap_comm"] = true;
    check_takes_with_copies(training, compute_bound, (g + f + b + c * 2 + quarter * 2) * layers + g * 2 * 2);
  }
}

// Of all layers together, which belong to all ranks: concatenated once more, 4 c.
TEST_CASE("ZeRO-1 and 2 of DeepSpeed concatenate a bucket of several ranks' parts once more") {
  const auto& [f, b] = compute_bound;
  for (const char* strategy : {"zero1", "zero2"}) {
    Json training = zero(strategy, false);
    training["contiguous_gradients"] = true;
    training["reduce_bucket_size"] = 1'000'000 * layers;
    check_takes_with_copies(training, compute_bound, (f + b + g * 3 + c * 3 + quarter * 2) * layers);
    training["reduce_scatter"] = false;
    check_takes_with_copies(training, compute_bound, (f + b + g * 3 + c * 2 + quarter) * layers);
  }
}

// Where gradients are born in the buffer that is reduced it is only scaled.
TEST_CASE("Megatron-LM's distributed optimizer scales a bucket and reduce-scatters it") {
  const auto& [f, b] = compute_bound;
  check_takes_with_copies(
      {{"strategy", "zero1"}, {"framework", "megatron"}, {"communication_data_type", "fp32"}}, compute_bound,
      (f + b + g * 2 + c) * layers);
}

TEST_CASE("ZeRO-2 reduces every micro-batch and ZeRO-1 the last") {
  const auto& [f, b] = compute_bound;
  for (const std::int64_t micro_batches : {1, 2, 5}) {
    Json stage1 = zero("zero1", false);
    Json stage2 = zero("zero2", false);
    stage1["gradient_accumulation"] = stage2["gradient_accumulation"] = micro_batches;
    check_takes(stage1, compute_bound, ((f + b) * micro_batches + g * 3) * layers);
    check_takes(stage2, compute_bound, ((f + b + g * 2) * micro_batches + g) * layers);
  }
}

// No weight is small enough to stay whole, and none is kept for its reuse.
Json zero3(std::int64_t prefetched_elements) {
  Json training = zero("zero3", true);
  training["stage3_prefetch_bucket_size"] = prefetched_elements;
  training["stage3_param_persistence_threshold"] = 0;
  training["stage3_max_reuse_distance"] = 0;
  return training;
}

// Forward: two requests may be under way, so layer k+1 arrives while layer k runs: g + layers x f, or, bound by
// communication, layers x g + f. Backward's first gather runs beside the last forward (bound by communication:
// behind all gathers, so that the last f does not count). Then each layer's gather is asked for at its turn,
// behind the reduction of the layer before: 2 g between one backward and the next, and a reduction at the end.
// A layer's reduction leaves with the gradient of the next. So nothing stands before the gather behind the first
// backward, which is asked for at once and hides there; after the last backward come two reductions.
TEST_CASE(
    "ZeRO-3 without prefetch shows a reduction and a gather between layers of backward, but for the first") {
  check_takes(zero3(0), compute_bound,
              g + (compute_bound.f + compute_bound.b) * layers + g * 2 * (layers - 2) + g * 2);
  check_takes(zero3(0), communication_bound,
              g * (layers + 1) + communication_bound.b * layers + (g - communication_bound.b) +
                  g * 2 * (layers - 2) + g * 2);
}

// Layers of two tensors: put together as they arrive, c, beside the layer before in forward and at the turn to
// backward, while C waits in backward; their gradients, two as well, are divided and concatenated before they are
// reduced, and the own quarter is copied away during the gather behind it.
TEST_CASE("ZeRO-3 puts the tensors of a gather together, and those of a reduction into one") {
  const auto& [f, b] = compute_bound;
  const Duration between = c * 2 + g * 2 + c;
  check_takes_with_copies(
      zero3(0), compute_bound,
      g + (f + b) * layers + c * (layers + 1) + c + between * (layers - 2) + (c * 2 + g + quarter) * 2,
      {500'000, 500'000});
}

TEST_CASE("ZeRO-3 without overlap takes the sum of everything") {
  for (const LayerTimes& times : {compute_bound, communication_bound})
    for (const std::int64_t prefetched : {0, 1'000'000})
      check_takes_apart(zero3(prefetched), times,
                        (times.f + times.b + (g + c) * 2 + c * 2 + g + quarter) * layers, {500'000, 500'000});
}

// One layer ahead: it arrives during the one before (2 g <= f, b), in backward too.
TEST_CASE("ZeRO-3 with prefetch shows its first gather and its last two reductions") {
  check_takes(zero3(1'000'000), compute_bound, (compute_bound.f + compute_bound.b) * layers + g + g * 2);
}

// What the host of such a machine spends on a list of four ranks' parts: an operator and its launch for each.
Duration listing() {
  const Json any = Json::parse(R"({"cluster": {"machine": "dgx_a100_40gb"},
                                   "model": {"name": "resnet18", "batch_per_gpu": 1}})");
  return (operator_time(HostSpec{}) + scenario_from(any).cluster.gpu.host_launch) * 4;
}

// Before 0.6 the host waits for its GPU at each gather and makes a list of the parts: l + g before each forward and
// before the first two backwards; then l hides beside the reduction before the gather, as reductions' own lists hide
// beside backward.
TEST_CASE("ZeRO-3 of an early DeepSpeed shows every gather, and the lists that its host makes of the parts") {
  Json training = zero3(0);
  training["framework_version"] = "0.5";
  const auto& [f, b] = compute_bound;
  check_takes(training, compute_bound, (f + b) * layers + listing() * (layers + 2) + g * 12);
  training["framework_version"] = "0.6";
  check_takes(training, compute_bound, iteration_of(zero3(0), compute_bound, at_once, {1'000'000}));
}

}  // namespace lockstep::sharded_time_test
