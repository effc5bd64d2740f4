#include "sim/training/zero_reduction.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/training/megatron.h"
#include "sim/training/part_lister.h"

namespace lockstep {

std::int64_t partitioned_tensors(const Job& job) {
  return runs_megatron(job.training.framework) ? std::ssize(job.gradients) : 1;
}

Bytes zero_buffers(const Job& job) {
  const ZeroOptions& options = job.training.zero;
  if (!options.contiguous_gradients)
    return Bytes{0};
  const std::int64_t elements =
      std::min(options.reduce_bucket_size * (options.overlap_comm ? 2 : 1), element_count(job.gradients));
  return Bytes{elements * parameter_bytes(options.communication_data_type)};
}

ZeroReduction::ZeroReduction(const StrategyContext& context)
    : context_(context),
      job_(context.job),
      options_(job_.training.zero),
      is_stage3_(strategy_named(job_.training.strategy).partition == Partition::weights),
      overlaps_(options_.overlap_comm && job_.communication.overlap),
      stream_(context) {
  std::vector<std::int64_t> elements;
  std::int64_t so_far = 0;
  for (const Gradient& gradient : job_.gradients) {
    first_element_.push_back(so_far);
    elements.push_back(element_count(gradient));
    so_far += elements.back();
  }
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
  if (is_first && filled_)
    reduce(*std::exchange(filled_, std::nullopt), done);
  std::vector<OpId> ready = done;
  if (options_.contiguous_gradients) {
    if (is_first)
      wait_for_buffer(bucket);
    context_.writer.section("copy " + job_.gradients[gradient].name, Category::gradient_copy);
    ready = write_kernels(context_, copy_work(1, job_.gradients[gradient].bytes));
  }
  if (is_last && !waits_for_next())
    reduce(bucket, ready);
  else if (is_last)
    filled_ = bucket;
  last_ready_ = std::move(ready);
}

void ZeroReduction::finish() {
  if (filled_)
    reduce(*std::exchange(filled_, std::nullopt), last_ready_);
  for (std::size_t bucket = 0; bucket < reduced_.size(); ++bucket)
    write_wait(context_, "wait for bucket " + std::to_string(bucket), reduced_[bucket]);
  expect_all();
}

void ZeroReduction::wait_for_buffer(std::uint32_t bucket) {
  if (bucket >= 2)
    write_wait(context_, "wait for a buffer", reduced_[bucket - 2]);
}

// Who copies gradients into a bucket as they come learns that it is full from the first that does not fit; those
// that are born in their place, or belong to a chunk, are counted.
bool ZeroReduction::waits_for_next() const {
  const bool is_filled_as_they_come = options_.contiguous_gradients || shares_buckets() || is_stage3_;
  return options_.chunk_size == 0 && is_filled_as_they_come;
}

// ZeRO-1 and 2 as DeepSpeed does them: with an option that the others do not have.
bool ZeroReduction::shares_buckets() const {
  return !is_stage3_ && options_.use_multi_rank_bucket_allreduce;
}

bool ZeroReduction::all_reduces() const {
  return shares_buckets() || !options_.reduce_scatter;
}

// One whose gradients already lie as they are sent needs no second buffer.
bool ZeroReduction::is_concatenated(std::uint32_t bucket) const {
  if (is_stage3_)
    return buckets_[bucket].size() > 1 && options_.chunk_size == 0;
  if (!shares_buckets())
    return false;
  if (!options_.contiguous_gradients)
    return buckets_[bucket].size() > 1;
  return options_.reduce_scatter && spans_owners(bucket);
}

// Whether its elements belong to several ranks' parts.
bool ZeroReduction::spans_owners(std::uint32_t bucket) const {
  const std::int64_t part = divided_up(element_count(job_.gradients), context_.group.members());
  std::int64_t first = INT64_MAX;
  std::int64_t last = 0;
  for (const std::uint32_t gradient : buckets_[bucket]) {
    first = std::min(first, first_element_[gradient]);
    last = std::max(last, first_element_[gradient] + element_count(job_.gradients[gradient]) - 1);
  }
  return first / part != last / part;
}

// What is copied out of a reduced bucket: all of it where it is no gradient's buffer, else the own part, from
// the second buffer to the first and from there to where it stays.
Bytes ZeroReduction::copied_away(Bytes bytes) const {
  const Bytes own = divided_up(bytes, context_.group.members());
  if (is_stage3_)
    return options_.chunk_size == 0 ? own : Bytes{0};
  if (!shares_buckets())
    return Bytes{0};
  if (!options_.contiguous_gradients)
    return bytes;
  return options_.reduce_scatter ? 2 * own : own;
}

std::vector<OpId> ZeroReduction::write_pass(const std::string& what, Bytes bytes,
                                            std::span<const OpId> after) {
  context_.writer.section(what, Category::gradient_copy);
  return overlaps_ ? stream_.write(copy_work(1, bytes), after)
                   : write_kernels(context_, copy_work(1, bytes), after);
}

std::vector<OpId> ZeroReduction::send(std::uint32_t bucket, Bytes bytes, std::vector<OpId> ready) {
  const std::string name = "bucket " + std::to_string(bucket);
  std::vector<OpId> arrived =
      write_collective(context_,
                       {.name = name,
                        .op = all_reduces() ? CollectiveOp::all_reduce : CollectiveOp::reduce_scatter,
                        .bytes = bytes,
                        .tensors = static_cast<std::uint32_t>(buckets_[bucket].size())},
                       std::move(ready));
  if (overlaps_)
    stream_.follow(arrived);
  else
    write_wait(context_, "wait for " + name, arrived);
  return arrived;
}

// What stage 3 sends of a bucket is listed first, while backward goes on.
void ZeroReduction::wait_for_lists(std::uint32_t bucket) {
  if (!is_stage3_)
    return;
  const std::vector<OpId> listed = list_for_reduction(context_, std::ssize(buckets_[bucket]));
  if (listed.empty())
    return;
  if (overlaps_)
    stream_.follow(listed);
  else
    write_wait(context_, "wait for lists of parts", listed, Category::host_overhead);
}

void ZeroReduction::reduce(std::uint32_t bucket, std::span<const OpId> ready) {
  wait_for_lists(bucket);
  std::int64_t elements = 0;
  for (const std::uint32_t gradient : buckets_[bucket]) elements += element_count(job_.gradients[gradient]);
  const Bytes bytes{elements * parameter_bytes(options_.communication_data_type)};
  const std::string name = "bucket " + std::to_string(bucket);
  std::vector<OpId> done = write_pass("divide " + name, bytes, ready);
  const Bytes concatenated = is_concatenated(bucket) ? bytes : Bytes{0};
  if (concatenated > Bytes{0})
    done = write_pass("concatenate " + name, concatenated, done);
  allocate_at_start(context_, MemoryCategory::communication_buffers, concatenated, done);
  done = send(bucket, bytes, std::move(done));
  if (copied_away(bytes) > Bytes{0})
    done = write_pass("keep of " + name, copied_away(bytes), done);
  release_at_end(context_, MemoryCategory::communication_buffers, concatenated, done);
  reduced_.push_back(std::move(done));
}

}  // namespace lockstep
