// What is trained is what the simulator calls by that name.

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "tests/harness/layers/recorded_step.h"
#include "tests/harness/models/no_device.h"
#include "tests/models/instance.h"
#include "tests/support/ready_order.h"
#include "validate/harness/models/training_model.h"

namespace lockstep::harness::simulated_model_test {

const std::map<std::string, std::int64_t> gpt2_sizes = {
    {"layers", 12}, {"hidden", 768}, {"heads", 12}, {"sequence", 1024}, {"vocabulary", 50257}};

Model simulated(const TrainingModel& model) {
  return model_from(model.simulated_as().dump());
}

std::int64_t total_elements(const TrainingModel& model) {
  std::int64_t total = 0;
  for (const auto& parameter : model.parameters()) total += parameter->elements;
  return total;
}

void check_parameters(const TrainingModel& model, const Model& expected) {
  REQUIRE(model.parameters().size() == expected.parameters.size());
  for (std::size_t index = 0; index < expected.parameters.size(); ++index) {
    CHECK(model.parameters()[index]->name == expected.parameters[index].name);
    CHECK(model.parameters()[index]->elements == expected.parameters[index].elements);
  }
}

RecordedStep run(Device& device, TrainingModel& model) {
  RecordedStep recorded;
  Step step{.device = device, .observer = recorded};
  model.forward(step);
  model.backward(step);
  return recorded;
}

void check_like(Device& device, TrainingModel& model, const Model& expected) {
  check_parameters(model, expected);
  CHECK(run(device, model).ready == testing::gradient_ready_order(expected));
  const auto flops = static_cast<double>(model.spec().batch * forward_flops(expected));
  CHECK(model.forward_flops() == doctest::Approx(flops).epsilon(1e-12));
}

void check_like_simulator(const ModelSpec& spec) {
  NoDevice device;
  const auto model = make_model(device, spec);
  check_like(device, *model, simulated(*model));
}

TEST_CASE("gpt has the simulator's parameters, order of gradients and operations, at any sizes") {
  check_like_simulator({.name = "gpt"});
  check_like_simulator({.name = "gpt", .sizes = {{"layers", 3}, {"hidden", 48}, {"heads", 6}}, .batch = 2});
}

TEST_CASE("gpt at GPT-2's sizes is the shipped gpt2 with its 124,439,808 parameters") {
  NoDevice device;
  const auto model = make_model(device, {.name = "gpt", .sizes = gpt2_sizes, .batch = 1});
  check_like(device, *model, shipped_model("gpt2"));
  CHECK(total_elements(*model) == 124'439'808);
}

TEST_CASE("resnet50 has the simulator's parameters, order of gradients and operations, at any sizes") {
  check_like_simulator({.name = "resnet50", .sizes = {{"image_size", 75}, {"classes", 7}}, .batch = 3});
}

TEST_CASE("resnet50 at 224 pixels is the shipped one with its 25,557,032 parameters") {
  NoDevice device;
  const auto model = make_model(device, {.name = "resnet50", .sizes = {{"image_size", 224}}, .batch = 2});
  check_like(device, *model, shipped_model("resnet50"));
  CHECK(total_elements(*model) == 25'557'032);
}

// Weights and biases: inputs x hidden + hidden, hidden x hidden + hidden, hidden x classes + classes.
TEST_CASE("mlp is named as torch names a sequence, and is complete from its end to its beginning") {
  NoDevice device;
  const auto model = make_model(
      device, {.sizes = {{"inputs", 5}, {"hidden", 7}, {"layers", 3}, {"classes", 2}}, .batch = 4});
  CHECK(model->simulated_as().is_null());
  std::vector<std::string> names;
  for (const auto& parameter : model->parameters()) names.push_back(parameter->name);
  CHECK(names == std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias"});
  CHECK(total_elements(*model) == (5 * 7 + 7) + (7 * 7 + 7) + (7 * 2 + 2));
  CHECK(run(device, *model).ready == std::vector<std::uint32_t>{5, 4, 3, 2, 1, 0});
  CHECK(model->forward_flops() == 2.0 * 4 * (5 * 7 + 7 * 7 + 7 * 2));
}

TEST_CASE(
    "every parameter is completed once, by the layer that lists it, right after that layer's backward") {
  for (const std::string name : {"mlp", "gpt", "resnet50"}) {
    NoDevice device;
    const auto model = make_model(device, {.name = name});
    const RecordedStep recorded = run(device, *model);
    for (std::size_t index = 0; index + 1 < recorded.events.size(); ++index) {
      for (std::uint32_t layer = 0; layer < model->layers().size(); ++layer) {
        if (recorded.events[index] != fmt::format("end {} backward", layer))
          continue;
        const auto& completed = model->layers()[layer].parameters;
        for (std::size_t place = 0; place < completed.size(); ++place)
          CHECK(recorded.events[index + 1 + place] == fmt::format("ready {}", completed[place]));
      }
    }
    CHECK(std::set(recorded.ready.begin(), recorded.ready.end()).size() == model->parameters().size());
    CHECK(recorded.ready.size() == model->parameters().size());
  }
}

TEST_CASE("layers are named and stand in forward order, each with one forward and one backward") {
  for (const std::string name : {"mlp", "gpt", "resnet50"}) {
    NoDevice device;
    const auto model = make_model(device, {.name = name});
    const RecordedStep recorded = run(device, *model);
    std::vector<std::string> forwards;
    std::size_t backwards = 0;
    for (const std::string& event : recorded.events) {
      if (event.starts_with("begin") && event.ends_with("forward"))
        forwards.push_back(event);
      backwards += event.starts_with("begin") && event.ends_with("backward") ? 1 : 0;
    }
    REQUIRE(forwards.size() == model->layers().size());
    CHECK(backwards == model->layers().size());
    std::set<std::string> names;
    for (std::size_t layer = 0; layer < forwards.size(); ++layer) {
      CHECK(forwards[layer] == fmt::format("begin {} forward", layer));
      names.insert(model->layers()[layer].name);
    }
    CHECK(names.size() == model->layers().size());
  }
}

}  // namespace lockstep::harness::simulated_model_test
