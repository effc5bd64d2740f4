#include "sim/load/read_input.h"

#include <doctest/doctest.h>

#include "tests/scenario/lab.h"

namespace lockstep::read_input_test {

using testing::load_resnet;
using testing::problems_of_lab;
using testing::problems_of_resnet;

const std::string stated = R"({"workers": 8, "prefetch_factor": 4, "sample_time": "6 ms", "cores": 64,
  "sample_bytes": "110 kB", "storage_bandwidth": "2 GB/s", "tensor_bytes": "602112 B", "copy": "pinned",
  "dataset_samples": 1281167, "drop_last": true})";

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string problem(const std::string& key, const std::string& value) {
  return problems_of_resnet({{"input", stated}, {"input." + key, value}});
}

TEST_CASE("input is read with DataLoader's names and defaults") {
  const InputSpec input = *load_resnet({{"input", stated}}).input;
  CHECK(input.workers == 8);
  CHECK(input.prefetch_factor == 4);
  CHECK(input.copy == BatchCopy::pinned);
  CHECK(*input.dataset_samples == 1'281'167);
  const LoadedScenario plain = load_resnet({{"input", R"({"tensor_bytes": "1 MB"})"}});
  CHECK(plain.input->workers == 0);
  CHECK(plain.input->copy == BatchCopy::pageable);
  CHECK_FALSE(plain.input->drop_last);
  CHECK_FALSE(load_resnet({{"training.strategy", "ddp"}}).input);
}

TEST_CASE("resolved input reads back as the same") {
  const LoadedScenario scenario = load_resnet({{"input", stated}});
  const LoadedScenario again = load_resnet({{"input", scenario.resolved["input"].dump()}});
  CHECK(again.resolved["input"] == scenario.resolved["input"]);
}

TEST_CASE("what would be ignored is refused, with what it needs") {
  CHECK(says(problem("workers", "0"), "/input/prefetch_factor: found with workers 0"));
  CHECK(says(problem("storage_bandwidth", "null"), "/input/sample_bytes: found without storage_bandwidth"));
  CHECK(says(problem("sample_bytes", "null"), "/input/storage_bandwidth: found without sample_bytes"));
  CHECK(says(problem("tensor_bytes", "null"), "/input/copy: found without tensor_bytes"));
  CHECK(says(problem("dataset_samples", "null"), "/input/drop_last: found without dataset_samples"));
  CHECK(says(problem("group_by_length", "true"), "/input/group_by_length: found without lengths"));
  CHECK(says(problem("lengths", R"({"mean": 100, "coefficient_of_variation": 0.5})"), "sequence_length"));
}

TEST_CASE("misspelt and impossible values are refused with the valid ones") {
  CHECK(says(problem("copy", "pined"), "\"pinned\""));
  CHECK(says(problem("worker", "8"), "\"workers\""));
  CHECK(says(problem("prefetch_factor", "0"), "/input/prefetch_factor: found 0"));
  CHECK(says(problem("sample_time", "2 h"), "at most 1 h"));
  CHECK(says(problem("sample_time", "6"), "/input/sample_time: found 6"));
  CHECK(says(problems_of_lab({{"input", R"({"tensor_bytes": "1 MB"})"}}), "states no host.pcie"));
  CHECK(says(problems_of_resnet({{"input", R"({"tensor_bytes": "1 MB", "copy": "overlapped"})"}}),
             "\"overlapped\" with workers 0"));
}

}  // namespace lockstep::read_input_test
