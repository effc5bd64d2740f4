#include "validate/harness/models/training_model.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/error.h"
#include "tests/harness/models/no_device.h"
#include "tests/harness/models/tiny_models.h"
#include "validate/harness/device/cpu_device.h"

namespace lockstep::harness::training_model_test {

struct Losses {
  double first = 0;
  double last = 0;
};

// Plain SGD.
struct Training {
  int steps = 0;
  float learning_rate = 0;
  bool repeats = false;  // the same batch; else the last loss is of samples that were never trained on
};

Losses train(const ModelSpec& spec, const Training& training) {
  const std::unique_ptr<Device> device = make_cpu_device();
  const auto model = make_model(*device, spec);
  StepObserver observer;
  Step step{.device = *device, .observer = observer};
  Losses losses;
  for (int done = 0; done <= training.steps; ++done) {
    model->load_batch(training.repeats ? 0 : done * spec.batch);
    model->forward(step);
    (done == 0 ? losses.first : losses.last) = model->loss();
    model->backward(step);
    for (const auto& parameter : model->parameters())
      device->sgd(parameter->value, parameter->gradient, {}, {.learning_rate = training.learning_rate});
  }
  return losses;
}

std::string message_of(const ModelSpec& spec) {
  NoDevice device;
  try {
    make_model(device, spec);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

// Before training all classes are about equally likely: the loss is about log(classes).
TEST_CASE("the mlp learns its task: the loss falls to a fifth") {
  const Losses losses = train(tiny_mlp(), {.steps = 100, .learning_rate = 0.1F});
  CHECK(losses.first == doctest::Approx(std::log(4.0)).epsilon(0.15));
  CHECK(losses.last < losses.first / 5);
}

// One token in eight is drawn from all 13, so the rule's next token has p = 7/8 + 1/104 and the others 1/104
// each: no model gets below -p log p - 12/104 log(1/104) = 0.64, a quarter of log(13) = 2.56.
TEST_CASE("gpt learns its task: the loss falls to less than half") {
  const Losses losses = train(tiny_gpt(), {.steps = 300, .learning_rate = 0.5F});
  CHECK(losses.first == doctest::Approx(std::log(13.0)).epsilon(0.05));
  CHECK(losses.last < losses.first / 2);
}

TEST_CASE("resnet50 learns eight images in five steps: the loss falls to a fifth") {
  const Losses losses = train(tiny_resnet50(), {.steps = 5, .learning_rate = 0.01F, .repeats = true});
  CHECK(losses.first == doctest::Approx(std::log(4.0)).epsilon(0.15));
  CHECK(losses.last < losses.first / 5);
}

TEST_CASE("a model that does not exist is named, with those that do") {
  CHECK(message_of({.name = "resnet"}).find("resnet50") != std::string::npos);
  CHECK(message_of({.name = "gtp"}) == R"(no model "gtp"; did you mean "gpt"? valid: mlp, gpt, resnet50)");
}

TEST_CASE("sizes that are unknown or out of range are all named, with what is valid") {
  const std::string message =
      message_of({.name = "gpt", .sizes = {{"hiden", 64}, {"layers", 0}}, .batch = -1});
  CHECK(message.find(R"(no size "hiden"; did you mean "hidden"?)") != std::string::npos);
  CHECK(message.find("layers is 0; valid: 1 to 1000") != std::string::npos);
  CHECK(message.find("batch is -1") != std::string::npos);
  CHECK(message_of({.name = "resnet50", .sizes = {{"image_size", 31}}}).find("valid: 32 to") !=
        std::string::npos);
  CHECK(message_of({.name = "mlp", .sizes = {{"classes", 1}}}).find("classes is 1") != std::string::npos);
}

TEST_CASE("sizes that are impossible together are errors") {
  CHECK(message_of({.name = "gpt", .sizes = {{"hidden", 64}, {"heads", 5}}}) ==
        R"(model "gpt": heads (5) does not divide hidden (64))");
  CHECK(message_of({.name = "resnet50", .sizes = {{"image_size", 32}}, .batch = 1}).find("BatchNorm") !=
        std::string::npos);
  CHECK(message_of({.name = "resnet50", .sizes = {{"image_size", 33}}, .batch = 1}).empty());
}

TEST_CASE("a spec that was left open comes back with its defaults") {
  NoDevice device;
  const auto model = make_model(device, {.name = "gpt", .sizes = {{"hidden", 64}}});
  CHECK(model->spec().sizes.at("hidden") == 64);
  CHECK(model->spec().sizes.at("layers") == 4);
  CHECK(model->spec().batch == 4);
}

}  // namespace lockstep::harness::training_model_test
