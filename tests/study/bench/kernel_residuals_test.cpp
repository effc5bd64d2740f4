// Groups, cases and what is left out, of a few published rows.

#include "sim/study/bench/kernel_residuals.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/compute/kernel_time.h"
#include "sim/study/bench/kernel_prediction.h"
#include "sim/study/validation/validation.h"
#include "sim/study/validation_table.h"
#include "tests/scenario/lab.h"
#include "tests/support/program.h"
#include "tests/support/scenarios.h"

namespace lockstep::kernel_residuals_test {

using nlohmann::ordered_json;

std::string sample(const std::string& name) {
  return LOCKSTEP_SOURCE_DIR "/tests/study/kernels/" + name;
}

// The same rows, those of the P4 by a GPU that is not shipped.
std::string sample_of_nobody(const testing::Folder& folder, const std::string& name) {
  std::string text = testing::text_of(sample(name));
  for (auto place = text.find("\np4,"); place != text.npos; place = text.find("\np4,"))
    text.replace(place, 4, "\nnobodys,");
  return folder.write(name, text);
}

Validation validated(const std::vector<std::string>& tables) {
  return validate({.files = {}, .kernel_tables = tables, .data_directory = LOCKSTEP_SOURCE_DIR});
}

const GroupSummary& group_named(const Validation& validation, const std::string& name) {
  const auto found = std::find_if(validation.groups.begin(), validation.groups.end(),
                                  [&](const GroupSummary& group) { return group.group == name; });
  REQUIRE_MESSAGE(found != validation.groups.end(), name);
  return *found;
}

TEST_CASE("there is one group per file, GPU, precision and direction, and each row is held out") {
  const Validation validation =
      validated({sample("gemm.csv"), sample("conv2d.csv"), sample("attention.csv")});
  CHECK(group_named(validation, "gemm, a100_sxm_80gb, bf16, fwd").ours.cases == 2);
  CHECK(group_named(validation, "gemm, h100_sxm_80gb, bf16, fwd").split == "heldout");
  for (const char* direction : {"fwd", "bwd_data", "bwd_weight"})
    CHECK(group_named(validation, std::string("conv2d, v100_sxm2_16gb, fp32, ") + direction).ours.cases == 2);
  CHECK(group_named(validation, "attention, h200_sxm, bf16, bwd").ours.cases == 2);
}

TEST_CASE("a case is the model's word on a row beside what was measured") {
  const Validation validation = validated({sample("gemm.csv")});
  const ValidationCase& first = validation.cases.front();
  CHECK(first.name == "gemm:2 1 x 8192 x 32 x 32");
  CHECK(first.measured_s == doctest::Approx(3.345e-6));
  const GpuSpec gpu = load_gpu("a100_sxm_80gb", shipped_profiles());
  const Kernel kernel{.shape = GemmShape{.m = 8192, .n = 32, .k = 32}};
  CHECK(first.predicted_s ==
        doctest::Approx(product_time(gpu, Operands::of(Precision::bf16), kernel).in_seconds()));
}

TEST_CASE("rows that are not asked are told by GPU, and by the names of operators and models") {
  const testing::Folder folder;
  const std::vector<std::string> tables{sample_of_nobody(folder, "gemm.csv"),
                                        sample("operators_in_a_step.csv"), sample("step_against_batch.csv")};
  const Validation validation = validated(tables);
  const auto find = [&](const std::string& table, const std::string& gpu) {
    const auto found = std::find_if(
        validation.not_asked.begin(), validation.not_asked.end(),
        [&](const NotAsked& left_out) { return left_out.table == table && left_out.gpu == gpu; });
    REQUIRE(found != validation.not_asked.end());
    return *found;
  };
  CHECK(find("gemm", "nobodys").rows == 2);
  CHECK(find("gemm", "nobodys").reason == "no shipped GPU has this name");
  const NotAsked operators = find("operators_in_a_step", "NVIDIA_A100_80GB_PCIe");
  // A backward of add moves nothing, a linear layer's row does not say its outputs, a view moves nothing.
  CHECK(operators.names == std::vector<std::string>{"add", "query", "view"});
  CHECK(operators.rows == 1 + 4 + 2);
  CHECK(find("step_against_batch", "t4").names == std::vector<std::string>{"bert"});
  CHECK(find("step_against_batch", "TITANXP").rows == 2);
  std::size_t told = validation.cases.size();
  for (const NotAsked& left_out : validation.not_asked) told += left_out.rows;
  CHECK(told == read_kernel_tables(tables).size());
}

TEST_CASE("the document has the contract's keys, and no naive predictor of what does not communicate") {
  const testing::Folder folder;
  const ordered_json document = to_json(validated({sample_of_nobody(folder, "memory_bound.csv")}));
  CHECK(document["schema"] == "lockstep.validation/1");
  const ordered_json& entry = document["cases"][0];
  for (const char* key : {"name", "group", "split", "measured", "predicted", "error_percent", "low", "high"})
    CHECK_MESSAGE(entry.contains(key), key);
  CHECK_FALSE(entry.contains("naive"));
  const ordered_json& group = document["groups"][0];
  for (const char* key : {"group", "n", "mape_percent", "median_percent", "p90_percent", "bias_percent"})
    CHECK_MESSAGE(group.contains(key), key);
  CHECK(document["not_asked"][0]["gpu"] == "nobodys");
  CHECK(document["not_asked"][0]["rows"] == 2);
}

TEST_CASE("a list for people names groups and what is not asked, not each kernel") {
  const testing::Folder folder;
  const std::string text = to_text(validated({sample_of_nobody(folder, "gemm.csv")}));
  CHECK(text.find("10 kernels") != std::string::npos);
  CHECK(text.find("gemm, v100_sxm2_16gb, fp16, fwd") != std::string::npos);
  CHECK(text.find("gemm, nobodys: 2 rows, no shipped GPU has this name") != std::string::npos);
  CHECK(text.find("1 x 8192 x 32 x 32") == std::string::npos);
}

TEST_CASE("a step in a precision that its GPU does not have is left out for that reason") {
  const testing::Folder folder;
  const std::string table =
      folder.write("step_against_batch.csv", "gpu,model,precision,batch,time_us\nk80,resnet18,bf16,8,1000\n");
  const Validation validation = validated({table});
  CHECK(validation.cases.empty());
  REQUIRE(validation.not_asked.size() == 1);
  CHECK(validation.not_asked[0].reason.find("bf16") != std::string::npos);
}

TEST_CASE("problems of all tables are told together") {
  const testing::Folder folder;
  const std::vector<std::string> tables{folder.write("gemm.csv", "gpu\n1\n"),
                                        folder.write("conv2d.csv", "gpu\n1\n")};
  try {
    validated(tables);
    FAIL("nothing was refused");
  } catch (const ConfigError& error) {
    const std::string problem = error.what();
    CHECK(problem.find("gemm.csv:1:1: found no column") != std::string::npos);
    CHECK(problem.find("conv2d.csv:1:1: found no column") != std::string::npos);
  }
}

}  // namespace lockstep::kernel_residuals_test
