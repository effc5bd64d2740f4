#include "sim/training/zero_reduction.h"

#include <algorithm>

namespace lockstep {

Bytes zero_buffers(const Job& job) {
  const ZeroOptions& options = job.training.zero;
  if (!options.contiguous_gradients)
    return Bytes{0};
  const std::int64_t elements =
      std::min(options.reduce_bucket_size * (options.overlap_comm ? 2 : 1), element_count(job.gradients));
  return Bytes{elements * parameter_bytes(options.communication_data_type)};
}

ZeroReduction::ZeroReduction(const StrategyContext& context)
    : context_(context), job_(context.job), options_(job_.training.zero) {
  std::vector<std::int64_t> elements;
  for (const Gradient& gradient : job_.gradients) elements.push_back(element_count(gradient));
  buckets_ = assign_element_buckets(elements, gradient_order(job_), options_.reduce_bucket_size);
  bucket_of_.resize(elements.size());
  for (std::uint32_t bucket = 0; bucket < buckets_.size(); ++bucket)
    for (const std::uint32_t gradient : buckets_[bucket]) bucket_of_[gradient] = bucket;
  expect_all();
}

void ZeroReduction::expect_all() {
  missing_.clear();
  for (const Bucket& bucket : buckets_) missing_.push_back(bucket.size());
  reduced_.clear();
}

void ZeroReduction::add(std::uint32_t gradient, const std::vector<OpId>& done) {
  const std::uint32_t bucket = bucket_of_[gradient];
  const bool is_first = missing_[bucket] == buckets_[bucket].size();
  const bool is_last = --missing_[bucket] == 0;
  std::vector<OpId> ready = done;
  if (options_.contiguous_gradients) {
    if (is_first)
      wait_for_buffer(bucket);
    context_.writer.section("copy " + job_.gradients[gradient].name, Category::gradient_copy);
    ready = write_kernels(context_, copy_work(1, job_.gradients[gradient].bytes));
  }
  if (is_last)
    reduce(bucket, ready);
}

void ZeroReduction::finish() {
  for (std::size_t bucket = 0; bucket < reduced_.size(); ++bucket)
    write_wait(context_, "wait for bucket " + std::to_string(bucket), reduced_[bucket]);
  expect_all();
}

void ZeroReduction::wait_for_buffer(std::uint32_t bucket) {
  if (bucket >= 2)
    write_wait(context_, "wait for a buffer", reduced_[bucket - 2]);
}

void ZeroReduction::reduce(std::uint32_t bucket, const std::vector<OpId>& ready) {
  std::int64_t elements = 0;
  for (const std::uint32_t gradient : buckets_[bucket]) elements += element_count(job_.gradients[gradient]);
  const std::string name = "bucket " + std::to_string(bucket);
  reduced_.push_back(write_collective(
      context_,
      {.name = name,
       .op = options_.reduce_scatter ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce,
       .bytes = Bytes{elements * parameter_bytes(options_.communication_data_type)},
       .tensors = static_cast<std::uint32_t>(buckets_[bucket].size())},
      ready));
  if (!options_.overlap_comm)
    write_wait(context_, "wait for " + name, reduced_.back());
}

}  // namespace lockstep
