#include "validate/harness/presets.h"

#include <doctest/doctest.h>

#include "tests/harness/models/no_device.h"
#include "validate/harness/communication/local_communicator.h"
#include "validate/harness/training/trainer.h"

namespace lockstep::harness::presets_test {

// Knows how much was asked for; nothing that a step keeps is given back.
class WeighingDevice final : public NoDevice {
 public:
  void* allocate(std::int64_t bytes) override {
    bytes_ += bytes;
    return NoDevice::allocate(bytes);
  }
  double gigabytes() const { return static_cast<double>(bytes_) / 1e9; }

 private:
  std::int64_t bytes_ = 0;
};

// Of a model, its AdamW, and the gradients once more in buckets, in fp32.
double gigabytes_of(const ModelSpec& spec) {
  WeighingDevice device;
  LocalCommunicator alone;
  const std::unique_ptr<TrainingModel> model = make_model(device, spec);
  const Trainer trainer(device, alone, *model, {.optimizer = {.name = "adamw"}});
  const BucketMemory buckets(device, trainer.parameters(), false);
  return device.gigabytes();
}

double gigabytes_of_gpu(const std::string& preset) {
  constexpr double gibibyte = 1.073741824;
  return gibibyte * (preset == "h100" ? 80 : preset == "a100" ? 40 : 8);
}

// A twentieth is left for CUDA's context, workspaces and NCCL's buffers. MLPs are left out: they are far from
// it (five times their parameters), and drawing these takes seconds.
TEST_CASE("Every preset's models fit the memory of its GPU in fp32 with AdamW") {
  for (const Preset& preset : presets())
    for (const ModelSpec& spec : preset.models) {
      CAPTURE(preset.name);
      CAPTURE(spec.name);
      if (spec.name != "mlp")
        CHECK(gigabytes_of(spec) < 0.95 * gigabytes_of_gpu(preset.name));
    }
}

TEST_CASE("A preset gives what was not said, and leaves what was") {
  ModelSpec spec{.name = "gpt", .sizes = {{"layers", 2}}};
  apply_preset(presets().front(), spec);
  CHECK(spec.sizes.at("layers") == 2);
  CHECK(spec.sizes.at("hidden") == 768);
  CHECK(spec.batch == 16);
  ModelSpec with_batch{.name = "resnet50", .batch = 3};
  apply_preset(presets().front(), with_batch);
  CHECK(with_batch.batch == 3);
  CHECK(with_batch.sizes.at("image_size") == 224);
}

TEST_CASE("A preset without the model leaves it to be refused by its name") {
  ModelSpec spec{.name = "gtp"};
  apply_preset(presets().front(), spec);
  CHECK(spec.sizes.empty());
  CHECK(spec.batch == 0);
}

}  // namespace lockstep::harness::presets_test
