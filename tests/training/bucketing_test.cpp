// PyTorch's buckets: its rule on small cases, published layouts, and layouts recorded from PyTorch 1.13.

#include "sim/training/bucketing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tests/models/instance.h"
#include "tests/support/property.h"
#include "tests/support/ready_order.h"

namespace lockstep::bucketing_test {

constexpr std::int64_t mib = 1024 * 1024;

std::vector<BucketTensor> tensors_of(const std::vector<std::int64_t>& bytes) {
  std::vector<BucketTensor> tensors;
  for (const std::int64_t size : bytes) tensors.push_back({.bytes = Bytes{size}, .type = 0});
  return tensors;
}

std::vector<std::uint32_t> registration_order(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

std::vector<Bucket> buckets_in_order(const Model& model, std::int64_t element_bytes,
                                     const std::vector<std::uint32_t>& order) {
  std::vector<BucketTensor> tensors;
  for (const ParameterTensor& parameter : model.parameters)
    tensors.push_back({.bytes = Bytes{parameter.elements * element_bytes}, .type = 0});
  return assign_buckets(tensors, order, {.first = mebibytes(1), .cap = mebibytes(25)});
}

// The published layouts assume that gradients become ready in reverse registration order.
std::vector<Bucket> default_buckets(const Model& model, std::int64_t element_bytes) {
  std::vector<std::uint32_t> order = registration_order(model.parameters.size());
  std::reverse(order.begin(), order.end());
  return buckets_in_order(model, element_bytes, order);
}

double size_in_mib(const Model& model, const Bucket& bucket, std::int64_t element_bytes) {
  std::int64_t bytes = 0;
  for (const std::uint32_t tensor : bucket) bytes += model.parameters[tensor].elements * element_bytes;
  return static_cast<double>(bytes) / static_cast<double>(mib);
}

struct PublishedBucket {
  double mib;
  std::size_t tensors;
};

// Published to two digits.
void check_layout(const std::string& name, std::int64_t element_bytes,
                  const std::vector<PublishedBucket>& published) {
  const Model model = shipped_model(name);
  const auto buckets = default_buckets(model, element_bytes);
  REQUIRE(buckets.size() == published.size());
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    CHECK(std::abs(size_in_mib(model, buckets[bucket], element_bytes) - published[bucket].mib) <= 0.005001);
    CHECK(buckets[bucket].size() == published[bucket].tensors);
  }
}

// First limit 10, then 25. 4 + 8 >= 10 closes the first bucket at 12; 20 + 9 >= 25 the second at 29; the rest
// stays open to the end.
TEST_CASE("A bucket closes after it has reached its limit, so it overshoots") {
  const auto buckets = assign_buckets(tensors_of({4, 8, 20, 9, 3}), registration_order(5),
                                      {.first = Bytes{10}, .cap = Bytes{25}});
  CHECK(buckets == std::vector<Bucket>{{0, 1}, {2, 3}, {4}});
}

TEST_CASE("A bucket that meets its limit exactly is closed") {
  const auto buckets =
      assign_buckets(tensors_of({10, 25, 1}), registration_order(3), {.first = Bytes{10}, .cap = Bytes{25}});
  CHECK(buckets == std::vector<Bucket>{{0}, {1}, {2}});
}

TEST_CASE("Buckets follow the order in which gradients become ready") {
  const std::vector<std::uint32_t> order{3, 1, 0, 2};
  const auto buckets = assign_buckets(tensors_of({5, 5, 5, 5}), order, {.first = Bytes{5}, .cap = Bytes{10}});
  CHECK(buckets == std::vector<Bucket>{{3}, {1, 0}, {2}});
}

// Each type fills a bucket of its own, and each starts with the first limit.
TEST_CASE("Tensors of different types never share a bucket") {
  const std::vector<BucketTensor> tensors{{Bytes{6}, 4}, {Bytes{6}, 2}, {Bytes{6}, 4}, {Bytes{6}, 2}};
  const auto buckets = assign_buckets(tensors, registration_order(4), {.first = Bytes{5}, .cap = Bytes{100}});
  CHECK(buckets == std::vector<Bucket>{{0}, {1}, {3}, {2}});
}

// PyTorch fills in registration order and reverses the buckets: the small first one is launched last.
TEST_CASE("Initial buckets are filled in registration order and launched backwards") {
  const auto buckets =
      assign_initial_buckets(tensors_of({10, 20, 9, 3, 1}), {.first = Bytes{10}, .cap = Bytes{25}});
  CHECK(buckets == std::vector<Bucket>{{3, 4}, {1, 2}, {0}});
}

TEST_CASE("bucket_cap_mb is mebibytes, fractions rounded down to a byte") {
  CHECK(mebibytes(25) == Bytes{25 * mib});
  CHECK(mebibytes(0.5) == Bytes{mib / 2});
  CHECK(mebibytes(1e-6) == Bytes{1});
}

TEST_CASE("Every tensor is in exactly one bucket and every bucket but the last has reached its limit") {
  check_for_all(300, "partition", [](const std::vector<std::uint16_t>& sizes) {
    std::vector<std::int64_t> bytes;
    for (const std::uint16_t size : sizes) bytes.push_back(size + 1);
    const BucketLimits limits{.first = Bytes{30'000}, .cap = Bytes{100'000}};
    const auto buckets = assign_buckets(tensors_of(bytes), registration_order(bytes.size()), limits);
    std::vector<std::uint32_t> seen;
    for (std::size_t index = 0; index < buckets.size(); ++index) {
      Bytes total;
      for (const std::uint32_t tensor : buckets[index]) {
        seen.push_back(tensor);
        total += Bytes{bytes[tensor]};
      }
      const Bytes limit = index == 0 ? limits.first : limits.cap;
      RC_ASSERT(index + 1 == buckets.size() || total >= limit);
      RC_ASSERT(total - Bytes{bytes[buckets[index].back()]} < limit);
    }
    RC_ASSERT(seen == registration_order(bytes.size()));
  });
}

TEST_CASE("ResNet-50's default buckets are those published") {
  check_layout("resnet50", 4, {{7.82, 2}, {30.04, 15}, {25.04, 12}, {25.32, 51}, {9.27, 81}});
}

TEST_CASE("ResNet-50's default buckets with fp16 gradients are those published") {
  check_layout("resnet50", 2, {{3.91, 2}, {27.54, 27}, {17.3, 132}});
}

TEST_CASE("VGG-16's default buckets are those published") {
  const Model model = shipped_model("vgg16");
  const std::vector<double> published{15.63, 64.02, 392.02, 27.01, 27.01, 2.12};
  const auto buckets = default_buckets(model, 4);
  REQUIRE(buckets.size() == published.size());
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket)
    CHECK(std::abs(size_in_mib(model, buckets[bucket], 4) - published[bucket]) <= 0.005001);
}

// GPT-2: 9.0, eleven of 27, and the last holds the tied embedding.
TEST_CASE("GPT-2's default buckets are those published") {
  const Model model = shipped_model("gpt2");
  const auto buckets = default_buckets(model, 4);
  REQUIRE(buckets.size() == 13);
  CHECK(std::abs(size_in_mib(model, buckets.front(), 4) - 9.0) <= 0.05);
  for (std::size_t bucket = 1; bucket + 1 < buckets.size(); ++bucket)
    CHECK(std::abs(size_in_mib(model, buckets[bucket], 4) - 27.0) <= 0.5);
  CHECK(std::abs(size_in_mib(model, buckets.back(), 4) - 168.3) <= 0.05);
}

TEST_CASE("Larger language models have the published number of buckets and the last as published") {
  struct Published {
    const char* model;
    std::size_t buckets;
    double last_mib;
    double rounding;
  };
  for (const Published& published :
       {Published{"gpt2_medium", 37, 216, 0.5}, Published{"gpt2_large", 109, 250, 0.5},
        Published{"gpt2_xl", 145, 313, 0.5}, Published{"bert_base", 14, 90.9, 0.05},
        Published{"bert_large", 38, 125.2, 0.05}}) {
    INFO(published.model);
    const Model model = shipped_model(published.model);
    const auto buckets = default_buckets(model, 4);
    CHECK(buckets.size() == published.buckets);
    CHECK(std::abs(size_in_mib(model, buckets.back(), 4) - published.last_mib) <= published.rounding);
  }
}

// A convolution's weight is ready before its bias, which moves a bias over a boundary but no boundary.
TEST_CASE("In the order autograd makes gradients ready the published models have as many buckets") {
  for (const char* name : {"resnet50", "vgg16", "gpt2", "gpt2_medium", "bert_base", "bert_large"}) {
    INFO(name);
    const Model model = shipped_model(name);
    CHECK(buckets_in_order(model, 4, testing::gradient_ready_order(model)).size() == default_buckets(model, 4).size());
  }
}

// Layouts recorded from PyTorch 1.13 after the rebuild: the first limit is 1 MiB whatever the cap.
void check_recorded(const std::string& name) {
  const std::string path = std::string(LOCKSTEP_SOURCE_DIR) + "/validate/measurements/gloo/" + name + ".json";
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path);
  const nlohmann::json recorded = nlohmann::json::parse(file);
  std::vector<BucketTensor> tensors;
  std::vector<double> ready;
  for (const auto& parameter : recorded["parameters"]) {
    tensors.push_back({.bytes = Bytes{parameter["elements"].get<std::int64_t>() * 4}, .type = 0});
    ready.push_back(parameter["gradient_ready_s"].get<double>());
  }
  std::vector<std::uint32_t> order = registration_order(tensors.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return ready[a] < ready[b]; });
  REQUIRE_FALSE(recorded["bucket_layouts"].empty());
  for (const auto& layout : recorded["bucket_layouts"]) {
    const auto cap = layout["bucket_cap_mib"].get<double>();
    INFO(name, " with a cap of ", cap, " MiB");
    const auto buckets = assign_buckets(tensors, order, {.first = mebibytes(1), .cap = mebibytes(cap)});
    CHECK(buckets == layout["parameters"].get<std::vector<Bucket>>());
  }
}

TEST_CASE("The layouts PyTorch 1.13 made for a GPT-like model are reproduced exactly") {
  check_recorded("g_n2_1000_a");
}

TEST_CASE("The layouts PyTorch 1.13 made for an MLP are reproduced exactly") {
  check_recorded("mlp_n2_1000_quiet");
}

}  // namespace lockstep::bucketing_test
