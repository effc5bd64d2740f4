#include "validate/harness/training/reducer.h"

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "tests/harness/training/recording_communicator.h"
#include "validate/harness/device/cpu_device.h"

namespace lockstep::harness::reducer_test {

constexpr std::int64_t elements_of_mebibyte = (1 << 20) / 4;
constexpr int ranks = 4;

// Parameters of the given sizes, whose gradients are the parameter's number plus 1, and a reducer for them.
class ReducerBench {
 public:
  explicit ReducerBench(const std::vector<std::int64_t>& elements, const ReducerOptions& options = {})
      : device(make_cpu_device()), communicator(*device, ranks) {
    for (const std::int64_t count : elements) {
      memory_.emplace_back(*device, count, Type::fp32);
      parameters.push_back(std::make_unique<Parameter>());
      parameters.back()->elements = count;
      parameters.back()->gradient = memory_.back().tensor();
    }
    set_gradients();
    bucket_memory_ = std::make_unique<BucketMemory>(*device, parameters, options.compresses);
    reducer = std::make_unique<Reducer>(*device, communicator, parameters, *bucket_memory_, options);
  }

  void set_gradients() {
    for (std::size_t index = 0; index < parameters.size(); ++index) set(index, static_cast<float>(index + 1));
  }
  void set(std::size_t parameter, float value) {
    const std::vector<float> values(static_cast<std::size_t>(parameters[parameter]->elements), value);
    device->upload(parameters[parameter]->gradient, values.data());
  }
  std::vector<float> gradient(std::size_t parameter) {
    std::vector<float> values(static_cast<std::size_t>(parameters[parameter]->elements));
    device->download(values.data(), parameters[parameter]->gradient);
    return values;
  }

  void iterate(const std::vector<std::uint32_t>& order) {
    communicator.reduced.clear();
    communicator.waited.clear();
    reducer->begin();
    for (const std::uint32_t parameter : order) reducer->gradient_ready(parameter);
    reducer->finish();
  }

  std::unique_ptr<Device> device;
  RecordingCommunicator communicator;
  Parameters parameters;
  std::unique_ptr<Reducer> reducer;

 private:
  std::vector<Buffer> memory_;
  std::unique_ptr<BucketMemory> bucket_memory_;
};

std::vector<BucketTensor> tensors_of(const Parameters& parameters) {
  std::vector<BucketTensor> tensors;
  for (const auto& parameter : parameters) tensors.push_back({.bytes = Bytes{parameter->elements * 4}});
  return tensors;
}

std::vector<std::int64_t> bytes_of_reduced(const RecordingCommunicator& communicator) {
  std::vector<std::int64_t> bytes;
  for (const Tensor& tensor : communicator.reduced) bytes.push_back(tensor.bytes());
  return bytes;
}

TEST_CASE("the first iteration reduces one bucket, later ones PyTorch's buckets in the order of readiness") {
  // 1 MiB for the first bucket, 2 MiB for the rest, and an order that is not the reverse of registration.
  const std::int64_t half = elements_of_mebibyte / 2;
  ReducerBench bench({half, half, 3 * half, half, half, half}, {.bucket_cap_mb = 2});
  const std::vector<std::uint32_t> order = {5, 3, 4, 2, 0, 1};
  bench.iterate(order);
  CHECK(bytes_of_reduced(bench.communicator) == std::vector<std::int64_t>{8 * half * 4});
  bench.iterate(order);
  const std::vector<Bucket> expected =
      assign_buckets(tensors_of(bench.parameters), order, {.first = mebibytes(1), .cap = mebibytes(2)});
  CHECK(bench.reducer->buckets() == expected);
  CHECK(expected == std::vector<Bucket>{{5, 3}, {4, 2}, {0, 1}});
  CHECK(bytes_of_reduced(bench.communicator) ==
        std::vector<std::int64_t>{2 * half * 4, 4 * half * 4, 2 * half * 4});
  bench.iterate({0, 1, 2, 3, 4, 5});  // another order rebuilds nothing
  CHECK(bench.reducer->buckets() == expected);
}

TEST_CASE("a bucket that is full before an earlier one waits for it, and all are waited for in order") {
  const std::int64_t mebibyte = elements_of_mebibyte;
  ReducerBench bench({mebibyte, mebibyte, mebibyte}, {.bucket_cap_mb = 1});
  bench.iterate({2, 1, 0});  // buckets 0, 1, 2 hold parameters 2, 1, 0
  bench.communicator.reduced.clear();
  bench.reducer->begin();
  bench.reducer->gradient_ready(1);
  CHECK(bench.communicator.reduced.empty());
  bench.reducer->gradient_ready(2);
  CHECK(bench.communicator.reduced.size() == 2);
  bench.reducer->gradient_ready(0);
  CHECK(bench.communicator.reduced.size() == 3);
  bench.communicator.waited.clear();
  bench.reducer->finish();
  CHECK(bench.communicator.waited == std::vector<std::uint32_t>{0, 1, 2});
  // The order of launches is that of the buckets' memory.
  CHECK(bench.communicator.reduced[0].data < bench.communicator.reduced[1].data);
  CHECK(bench.communicator.reduced[1].data < bench.communicator.reduced[2].data);
}

TEST_CASE("without overlap nothing is launched before backward has ended") {
  ReducerBench bench({elements_of_mebibyte, elements_of_mebibyte}, {.bucket_cap_mb = 1, .overlaps = false});
  bench.iterate({1, 0});
  bench.communicator.reduced.clear();
  bench.reducer->begin();
  bench.reducer->gradient_ready(1);
  bench.reducer->gradient_ready(0);
  CHECK(bench.communicator.reduced.empty());
  bench.reducer->finish();
  CHECK(bench.communicator.reduced.size() == 2);
}

TEST_CASE("a gradient becomes the average over ranks, each in its own place") {
  // Each rank holds g: the sum over `ranks` of g / ranks is g again. Sizes that align to nothing.
  ReducerBench bench({3, 100, 1, 65});
  for (int iteration = 0; iteration < 3; ++iteration) {
    bench.set_gradients();
    bench.iterate({3, 2, 1, 0});
    for (std::size_t parameter = 0; parameter < 4; ++parameter)
      for (const float value : bench.gradient(parameter)) CHECK(value == static_cast<float>(parameter + 1));
  }
}

TEST_CASE("micro-batches before the last reduce nothing and touch no gradient") {
  ReducerBench bench({4, 4});
  bench.iterate({1, 0});
  bench.communicator.reduced.clear();
  bench.reducer->gradient_ready(1);
  bench.reducer->gradient_ready(0);
  CHECK(bench.communicator.reduced.empty());
  bench.set(0, 10);
  bench.set(1, 20);
  bench.iterate({1, 0});
  CHECK(bench.communicator.reduced.size() == 1);
  CHECK(bench.gradient(0)[0] == 10);
  CHECK(bench.gradient(1)[0] == 20);
}

TEST_CASE("compressed buckets travel as bf16 and come back with its 8 bits of precision") {
  ReducerBench bench({1000}, {.compresses = true});
  const float value = 1.0F + 1.0F / 512;  // between bf16's 1 and 1 + 2^-7
  bench.set(0, value);
  bench.iterate({0});
  REQUIRE(bench.communicator.reduced.size() == 1);
  CHECK(bench.communicator.reduced[0].type == Type::bf16);
  CHECK(bench.communicator.reduced[0].bytes() == 2000);
  CHECK(bench.gradient(0)[999] == doctest::Approx(value).epsilon(1.0 / 256));
  CHECK(bench.gradient(0)[999] != value);
}

TEST_CASE("a backward that left out a gradient, or completed one twice, is a bug and is told") {
  ReducerBench bench({4, 4});
  bench.reducer->begin();
  bench.reducer->gradient_ready(1);
  CHECK_THROWS_AS(bench.reducer->finish(), InternalError);
  ReducerBench twice({elements_of_mebibyte, elements_of_mebibyte}, {.bucket_cap_mb = 1});
  twice.iterate({1, 0});
  twice.reducer->begin();
  twice.reducer->gradient_ready(1);
  CHECK_THROWS_AS(twice.reducer->gradient_ready(1), InternalError);
}

}  // namespace lockstep::harness::reducer_test
