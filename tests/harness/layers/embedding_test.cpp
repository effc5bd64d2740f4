#include "validate/harness/layers/embedding.h"

#include "tests/harness/layers/gradient_check.h"
#include "validate/harness/layers/composite.h"
#include "validate/harness/layers/linear.h"

namespace lockstep::harness::embedding_test {

// Token 2 comes twice in one sample and once in the other: its gradients add up.
constexpr std::int32_t tokens[] = {2, 0, 2, 4, 2, 1};

EmbeddingOptions options(bool is_tied) {
  return {.name = "embedding",
          .words = "wte",
          .positions = "wpe",
          .batch = 2,
          .sequence = 3,
          .vocabulary = 5,
          .width = 4,
          .is_tied = is_tied,
          .deviation = 1};
}

Buffer upload_tokens(Device& device) {
  Buffer buffer(device, std::size(tokens), Type::int32);
  device.upload(buffer.tensor(), tokens);
  return buffer;
}

TEST_CASE("an embedding's gradients are those of its loss, words that come twice included") {
  GradientCheck check;
  Embedding embedding(check.factory(), options(false));
  const Buffer input = upload_tokens(check.device());
  check.check_parameters_only(embedding, input.tensor());
}

// The projection writes the shared gradient, the embedding adds to it and completes it.
TEST_CASE("an embedding and an output projection that share a weight share its gradient") {
  GradientCheck check;
  Sequential network;
  const std::uint32_t words = network.make<Embedding>(check.factory(), options(true)).words();
  network.make<Linear>(
      check.factory(),
      LinearOptions{
          .name = "lm_head", .rows = 6, .inputs = 4, .outputs = 5, .has_bias = false, .tied_weight = words});
  const Buffer input = upload_tokens(check.device());
  check.check_parameters_only(network, input.tensor());

  RecordedStep recorded;
  Step step{.device = check.device(), .observer = recorded};
  network.forward(step, input.tensor());
  const Buffer gradient = check.upload(normal_values(6 * 5, 2));
  network.backward(step, gradient.tensor());
  CHECK(recorded.ready == std::vector<std::uint32_t>{1, 0});  // positions, then words
  CHECK(recorded.events.at(recorded.events.size() - 3) == "end 0 backward");
}

}  // namespace lockstep::harness::embedding_test
