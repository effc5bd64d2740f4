#include "sim/study/bench/logged_choices.h"

#include <doctest/doctest.h>

#include "sim/base/error.h"
#include "tests/support/scenarios.h"

namespace lockstep::logged_choices_test {

using Json = nlohmann::ordered_json;

Json choice(const std::string& collective, std::int64_t bytes, const std::string& algorithm,
            const std::string& protocol, std::int64_t channels = 0, bool of_one_rank = false) {
  return {{"collective", collective}, {"bytes", bytes},       {"of_one_rank", of_one_rank},
          {"algorithm", algorithm},   {"protocol", protocol}, {"channels", channels}};
}

Json log_of(const Json& choices, std::int64_t ranks = 16, std::int64_t nodes = 2) {
  return {{"library", "nccl"},
          {"version", "2.18.3"},
          {"ranks", ranks},
          {"nodes", nodes},
          {"channels", {{"coll", 24}, {"nvls", 0}}},
          {"environment", Json::object()},
          {"choices", choices}};
}

TEST_CASE("each logged size stands beside what the tuner chooses, and forcing one algorithm forces it here") {
  Json log = log_of(Json::array(
      {choice("all_reduce", 1024, "tree", "ll"), choice("all_reduce", 1 << 30, "ring", "ll128")}));
  const ComparedChoices compared =
      compare_logged_choices(log, {.machine = "dgx_a100_40gb"}, shipped_profiles());
  REQUIRE(compared.choices.size() == 2);
  CHECK(compared.gpus_per_node == 8);
  CHECK(compared.choices[0].is_alike());
  CHECK(compared.choices[1].here.protocol == "simple");
  CHECK_FALSE(compared.choices[1].is_alike());
  log["environment"]["NCCL_ALGO"] = "Tree";
  log["environment"]["NCCL_PROTO"] = "LL";
  const ComparedChoices forced =
      compare_logged_choices(log, {.machine = "dgx_a100_40gb"}, shipped_profiles());
  for (const ComparedChoice& one : forced.choices) {
    CHECK(one.here.algorithm == "tree");
    CHECK(one.here.protocol == "ll");
  }
}

TEST_CASE("a size of one rank counts as the whole buffer") {
  const auto of = [](std::int64_t bytes, bool of_one_rank) {
    return compare_logged_choices(
               log_of(Json::array({choice("all_gather", bytes, "ring", "ll", 8, of_one_rank)})),
               {.machine = "dgx_a100_40gb"}, shipped_profiles())
        .choices.at(0)
        .here;
  };
  for (const std::int64_t bytes : {1 << 10, 1 << 16, 1 << 20, 1 << 24}) {
    const ChosenHow part = of(bytes, true);
    const ChosenHow whole = of(bytes * 16, false);
    CHECK(part.protocol == whole.protocol);
    CHECK(part.channels == whole.channels);
  }
}

TEST_CASE("what cannot be compared is told or refused") {
  const ProfileStore& store = shipped_profiles();
  const ComparedChoices unnamed = compare_logged_choices(log_of(Json::array({choice("", 4, "tree", "ll")})),
                                                         {.machine = "dgx_a100_40gb"}, store);
  CHECK(unnamed.choices.empty());
  CHECK(unnamed.warnings.size() == 1);
  CHECK_THROWS_AS(compare_logged_choices(log_of(Json::array(), 16, 0), {.machine = "dgx_a100_40gb"}, store),
                  ConfigError);
  CHECK_THROWS_AS(compare_logged_choices(log_of(Json::array(), 16, 3), {.machine = "dgx_a100_40gb"}, store),
                  ConfigError);
  CHECK_THROWS_AS(compare_logged_choices(log_of(Json::array(), 64, 2), {.machine = "dgx_a100_40gb"}, store),
                  ConfigError);
  CHECK_THROWS_AS(compare_logged_choices(log_of(Json::array()), {.machine = "no_such_machine"}, store),
                  ConfigError);
  CHECK(compare_logged_choices(log_of(Json::array(), 16, 0), {.machine = "dgx_a100_40gb", .nodes = 2}, store)
            .nodes == 2);
}

TEST_CASE("NVLS that is chosen here and was off in the log is told") {
  const Json log = log_of(Json::array({choice("all_reduce", 1 << 30, "ring", "simple")}), 8, 1);
  const ComparedChoices compared = compare_logged_choices(log, {.machine = "dgx_h100"}, shipped_profiles());
  CHECK(compared.choices.at(0).here.algorithm == "nvls");
  CHECK(compared.warnings.size() == 1);
}

}  // namespace lockstep::logged_choices_test
