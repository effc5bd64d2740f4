#include "validate/harness/training/reducer.h"

#include <limits>

#include "sim/base/check.h"

namespace lockstep::harness {
namespace {

// Buckets begin at multiples of 256 bytes, as allocations of their own would: libraries move those faster.
constexpr std::int64_t aligned_elements = 64;

std::int64_t aligned(std::int64_t elements) {
  return (elements + aligned_elements - 1) / aligned_elements * aligned_elements;
}

// With every parameter in a bucket of its own.
std::int64_t most_elements(const Parameters& parameters) {
  std::int64_t elements = 0;
  for (const auto& parameter : parameters) elements += aligned(parameter->elements);
  return elements;
}

std::vector<BucketTensor> bucket_tensors(const Parameters& parameters) {
  std::vector<BucketTensor> tensors;
  for (const auto& parameter : parameters)
    tensors.push_back({.bytes = Bytes{parameter->elements * bytes_of(Type::fp32)}});
  return tensors;
}

}  // namespace

BucketMemory::BucketMemory(Device& device, const Parameters& parameters, bool is_compressed)
    : values_(device, most_elements(parameters), Type::fp32) {
  if (is_compressed)
    compressed_ = Buffer(device, most_elements(parameters), Type::bf16);
}

Reducer::Reducer(Device& device, Communicator& communicator, const Parameters& parameters,
                 BucketMemory& memory, const ReducerOptions& options)
    : device_(device),
      communicator_(communicator),
      parameters_(parameters),
      memory_(memory),
      options_(options),
      tensors_(bucket_tensors(parameters)),
      bucket_of_(parameters.size()),
      place_of_(parameters.size()) {
  LOCKSTEP_CHECK(!options.compresses || !memory.compressed().is_empty(),
                 "a reducer that compresses has memory for it");
  const Bytes unlimited{std::numeric_limits<std::int64_t>::max()};
  lay_out(assign_initial_buckets(tensors_, {.first = unlimited, .cap = unlimited}));
}

void Reducer::lay_out(const std::vector<Bucket>& buckets) {
  buckets_ = buckets;
  places_.clear();
  records_.assign(buckets_.size(), {});
  std::int64_t begin = 0;
  for (std::uint32_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    std::int64_t elements = 0;
    for (const std::uint32_t parameter : buckets_[bucket]) {
      bucket_of_[parameter] = bucket;
      place_of_[parameter] = memory_.values().part(begin + elements, parameters_[parameter]->elements);
      elements += parameters_[parameter]->elements;
    }
    const Tensor values = memory_.values().part(begin, elements);
    places_.push_back(
        {.values = values,
         .travelling = options_.compresses ? memory_.compressed().part(begin, elements) : values});
    begin += aligned(elements);
  }
}

// The order is that of rank 0 in PyTorch, which broadcasts it; here every rank runs the same program and sees
// the same one.
void Reducer::rebuild_once() {
  if (is_rebuilt_ || ready_order_.empty())
    return;
  LOCKSTEP_CHECK(ready_order_.size() == parameters_.size(), "every gradient became ready once");
  lay_out(assign_buckets(
      tensors_, ready_order_,
      {.first = mebibytes(options_.first_bucket_mb), .cap = mebibytes(options_.bucket_cap_mb)}));
  is_rebuilt_ = true;
}

void Reducer::begin() {
  rebuild_once();
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket)
    places_[bucket].missing = buckets_[bucket].size();
  launched_ = 0;
  is_reducing_ = true;
}

void Reducer::gradient_ready(std::uint32_t parameter) {
  if (!is_reducing_)
    return;
  if (!is_rebuilt_)
    ready_order_.push_back(parameter);
  const std::uint32_t bucket = bucket_of_[parameter];
  LOCKSTEP_CHECK(places_[bucket].missing > 0, "a gradient becomes ready once in a backward");
  device_.scale(place_of_[parameter], parameters_[parameter]->gradient,
                1.0F / static_cast<float>(communicator_.size()));
  if (--places_[bucket].missing > 0)
    return;
  records_[bucket].ready = device_.mark();
  if (options_.overlaps)
    launch_complete_buckets();
}

void Reducer::launch_complete_buckets() {
  while (launched_ < buckets_.size() && places_[launched_].missing == 0) launch(launched_++);
}

void Reducer::launch(std::size_t bucket) {
  const Place& place = places_[bucket];
  if (options_.compresses)
    device_.cast(place.travelling, place.values);
  records_[bucket].ticket = communicator_.start_all_reduce(place.travelling);
}

void Reducer::finish() {
  LOCKSTEP_CHECK(is_reducing_, "what is finished was begun");
  is_reducing_ = false;
  launch_complete_buckets();
  LOCKSTEP_CHECK(launched_ == buckets_.size(), "every gradient is ready when backward has ended");
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    communicator_.wait(records_[bucket].ticket);
    records_[bucket].finished = device_.mark();
    copy_back(bucket);
  }
}

void Reducer::copy_back(std::size_t bucket) {
  if (options_.compresses)
    device_.cast(places_[bucket].values, places_[bucket].travelling);
  for (const std::uint32_t parameter : buckets_[bucket])
    device_.copy(parameters_[parameter]->gradient, place_of_[parameter]);
}

}  // namespace lockstep::harness
