// What must hold of runs whose nodes fail.

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "tests/support/same_report.h"
#include "tests/support/scenarios.h"

namespace lockstep::goodput_test {

using Json = nlohmann::ordered_json;

Json failing(const std::string& mtbf_per_node) {
  return {{"cluster",
           {{"machine", "dgx_a100_40gb"},
            {"nodes", 16},
            {"faults",
             {{"mtbf_per_node", mtbf_per_node},
              {"restart", "5 min"},
              {"checkpoint_interval", "30 min"},
              {"checkpoint_bandwidth", "200 MB/s"},
              {"horizon", "1 year"}}}}},
          {"model", {{"name", "bert_large"}, {"batch_per_gpu", 8}, {"precision", "amp_fp16"}}},
          {"training", {{"strategy", "ddp"}, {"optimizer", "adam"}}}};
}

std::string problem_of(const Json& given) {
  try {
    predict(scenario_from(given));
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

TEST_CASE("A checkpoint is charged to the iterations between two of them, and changes nothing else") {
  Json given = failing("100 days");
  const Report with = predict(scenario_from(given)).report;
  given["cluster"].erase("faults");
  const Report without = predict(scenario_from(given)).report;
  CHECK_FALSE(without.disturbance.goodput);
  CHECK(without.breakdown.checkpoint == Duration::zero());
  CHECK(with.iteration == without.iteration + with.breakdown.checkpoint);
  CHECK(with.breakdown.backward == without.breakdown.backward);
  // Of 30 minutes of work, one checkpoint: the ratio of the two, to the microsecond that intervals are kept
  // in.
  const double expected =
      with.disturbance.goodput->checkpointing.time.in_seconds() / 1800 * without.iteration.in_seconds();
  CHECK(with.breakdown.checkpoint.in_seconds() == doctest::Approx(expected).epsilon(2e-5));
}

// fp32 weights and two fp32 states of BERT-large's parameters, 12 bytes each, at 200 MB/s.
TEST_CASE("Under DDP a checkpoint is the weights and the optimizer's states, once") {
  const LoadedScenario scenario = scenario_from(failing("100 days"));
  const Report report = predict(scenario).report;
  CHECK(report.disturbance.goodput->checkpointing.bytes.count() ==
        12 * parameter_count(scenario.model.model));
  CHECK(report.disturbance.goodput->checkpointing.time ==
        time_to_move(report.disturbance.goodput->checkpointing.bytes, Bandwidth{200'000'000}));
}

TEST_CASE("A checkpoint of a mixture is the whole model, however its experts are dealt") {
  const auto checkpoint = [](std::int64_t expert_parallel, const char* strategy) {
    Json given = failing("100 days");
    given["cluster"].update({{"machine", "dgx_a100_80gb"}, {"nodes", 1}});
    given["model"] = {{"family", "transformer"}, {"style", "llama"},    {"layers", 4},
                      {"hidden", 256},           {"heads", 8},          {"vocabulary", 1024},
                      {"sequence_length", 128},  {"precision", "bf16"}, {"experts", 8},
                      {"experts_per_token", 2}};
    given["training"] = {{"strategy", strategy},
                         {"optimizer", "adam"},
                         {"micro_batch", 1},
                         {"expert_parallel", expert_parallel}};
    return predict(scenario_from(given)).report.disturbance.goodput->checkpointing.bytes;
  };
  for (const char* strategy : {"ddp", "zero1", "fsdp"})
    for (const std::int64_t degree : {2, 4, 8}) {
      INFO(strategy, ", experts dealt among ", degree);
      CHECK(checkpoint(degree, strategy) == checkpoint(1, strategy));
    }
}

TEST_CASE("Histories agree with the closed form, and the best simulated interval is as good as Daly's") {
  for (const char* mtbf : {"10 days", "40 days", "200 days"}) {
    const Goodput goodput = *predict(scenario_from(failing(mtbf))).report.disturbance.goodput;
    INFO(mtbf);
    CHECK(goodput.simulated_mean == doctest::Approx(goodput.expected.useful).epsilon(0.005));
    CHECK(goodput.simulated.fraction == doctest::Approx(goodput.daly.fraction).epsilon(0.005));
    CHECK(goodput.young.fraction == doctest::Approx(goodput.daly.fraction).epsilon(0.005));
    // No interval does better than Daly's, and its neighbours on the simulated grid are half an octave away.
    CHECK(goodput.daly.fraction >= goodput.simulated.fraction - 1e-6);
    CHECK(goodput.simulated.interval.count() > goodput.daly.interval.count() * 10 / 15);
    CHECK(goodput.simulated.interval.count() < goodput.daly.interval.count() * 15 / 10);
  }
}

TEST_CASE("More nodes fail more often, and less time is useful") {
  Json given = failing("100 days");
  double before = 1;
  for (const std::int64_t nodes : {1, 4, 16, 64}) {
    given["cluster"]["nodes"] = nodes;
    const double useful = predict(scenario_from(given)).report.disturbance.goodput->expected.useful;
    CHECK(useful < before);
    before = useful;
  }
}

TEST_CASE("An interval that is left out is Daly's") {
  Json given = failing("100 days");
  given["cluster"]["faults"].erase("checkpoint_interval");
  const Goodput goodput = *predict(scenario_from(given)).report.disturbance.goodput;
  CHECK(goodput.checkpointing.interval == goodput.daly.interval);
}

TEST_CASE("A failure in every iteration is refused, with what would work") {
  Json given = failing("16 s");  // 16 nodes: one a second
  given["cluster"]["faults"]["horizon"] = "1 day";
  given["compute"]["single_gpu_iteration"] = "2 s";
  const std::string problem = problem_of(given);
  CHECK(problem.find("/cluster/faults/mtbf_per_node") != std::string::npos);
  CHECK(problem.find("fewer nodes") != std::string::npos);
}

TEST_CASE("A run that saves too seldom ever to save is refused, with an interval that would work") {
  Json given = failing("1 day");
  given["cluster"]["faults"]["checkpoint_interval"] = "3 days";
  CHECK(problem_of(given).find("checkpoint_interval near") != std::string::npos);
  // Where not even the best interval gets on, none is offered.
  given["cluster"]["faults"]["restart"] = "30 days";
  CHECK(problem_of(given).find("would get nowhere") != std::string::npos);
  CHECK(problem_of(given).find("checkpoint_interval near") == std::string::npos);
}

TEST_CASE("An interval shorter than an iteration is refused") {
  Json given = failing("100 days");
  given["cluster"]["faults"]["checkpoint_interval"] = "1 ms";
  CHECK(problem_of(given).find("/cluster/faults/checkpoint_interval") != std::string::npos);
}

}  // namespace lockstep::goodput_test
