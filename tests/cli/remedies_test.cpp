// What a report proposes is what a user can do: each remedy is taken at its word.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/program.h"

namespace lockstep::remedies_test {

using nlohmann::json;
using testing::Answer;
using testing::Folder;
using testing::run_program;

// Options that DDP alone has: a sharded strategy must do without them.
const char* const too_large = R"({
  "cluster": {"machine": "dgx_a100_40gb", "nodes": 2},
  "model": {"name": "gpt2_xl", "batch_per_gpu": 16, "precision": "bf16"},
  "training": {"strategy": "ddp", "optimizer": "adamw", "bucket_cap_mb": 50, "gradient_as_bucket_view": true,
               "static_graph": true, "framework": "pytorch_ddp"}
})";

json predicted(const std::string& arguments) {
  const Answer answer = run_program("predict " + arguments + " --json");
  CAPTURE(arguments);
  CAPTURE(answer.diagnostics);
  REQUIRE(answer.exit_code == 0);
  return json::parse(answer.out);
}

TEST_CASE("every remedy is accepted as it is printed, and needs the memory that it says") {
  const Folder folder;
  const std::string scenario = folder.write("too_large.json", too_large);
  const json remedies = predicted(scenario)["memory_remedies"];
  REQUIRE(remedies.size() >= 5);
  bool changes_strategy = false;
  for (const json& remedy : remedies) {
    std::string changes;
    for (const json& change : remedy["set"]) changes += " --set '" + change.get<std::string>() + "'";
    changes_strategy = changes_strategy || changes.find("training.strategy=zero1") != changes.npos;
    const json memory = predicted(scenario + changes)["memory_bytes"];
    CAPTURE(changes);
    CHECK(memory["total"] == remedy["total"]);
    CHECK(memory["fits"] == remedy["fits"]);
  }
  CHECK(changes_strategy);
}

}  // namespace lockstep::remedies_test
