// PyTorch DistributedDataParallel: every rank holds the model, gradients are averaged bucket by bucket while
// backward still runs.
//
// The first forward of an iteration is preceded by a broadcast of the buffers. In backward each gradient is
// copied into its bucket as soon as it is accumulated (the division by the world size is fused into the
// copy); a bucket whose last gradient has arrived is reduced on the communication lane, strictly in bucket
// order. Backward ends by waiting for all buckets and copying each back; with gradient_as_bucket_view both
// copies fall away. In the first iteration all gradients form one bucket, so nothing overlaps; the order in
// which they became ready then decides the buckets of every later iteration. With accumulation only the last
// micro-batch is reduced (no_sync before). find_unused_parameters keeps the buckets of construction unless
// the graph is static. Reference: torch/csrc/distributed/c10d/reducer.cpp; torch/nn/parallel/distributed.py.

#include <algorithm>
#include <limits>

#include "sim/training/step_writer.h"

namespace lockstep {
namespace {

class DdpIteration {
 public:
  explicit DdpIteration(const StrategyContext& context) : context_(context), job_(context.job) {
    buckets_ = find_buckets();
    bucket_of_.resize(job_.gradients.size());
    for (std::uint32_t bucket = 0; bucket < buckets_.size(); ++bucket)
      for (const std::uint32_t gradient : buckets_[bucket]) bucket_of_[gradient] = bucket;
    missing_.reserve(buckets_.size());
    for (const Bucket& bucket : buckets_) missing_.push_back(bucket.size());
    ready_.resize(buckets_.size());
    ops_.buckets.reserve(buckets_.size());
  }

  IterationOps write() {
    ops_.first = here();
    write_buffer_broadcast();
    for (std::int64_t micro = 1; micro < job_.training.gradient_accumulation; ++micro)
      write_local_micro_batch();
    write_reduced_micro_batch();
    write_optimizer(context_);
    ops_.last = here();
    return std::move(ops_);
  }

 private:
  OpId here() const { return OpId{static_cast<std::uint32_t>(context_.writer.size())}; }

  std::vector<Bucket> find_buckets() const {
    std::vector<BucketTensor> tensors;
    for (const Gradient& gradient : job_.gradients)
      tensors.push_back({gradient.bytes, gradient.element_bytes});
    const BucketLimits limits{mebibytes(job_.training.first_bucket_mb),
                              mebibytes(job_.training.bucket_cap_mb)};
    if (job_.training.find_unused_parameters && !job_.training.static_graph)
      return assign_initial_buckets(tensors, limits);
    const Bytes unlimited{std::numeric_limits<std::int64_t>::max()};
    const BucketLimits in_force = context_.is_first_iteration ? BucketLimits{unlimited, unlimited} : limits;
    return assign_buckets(tensors, gradient_order(job_), in_force);
  }

  void write_local_micro_batch() {
    write_forward(context_);
    for (auto layer = job_.layers.rbegin(); layer != job_.layers.rend(); ++layer)
      write_backward_kernel(*layer);
  }

  void write_reduced_micro_batch() {
    write_forward(context_);
    for (auto layer = job_.layers.rbegin(); layer != job_.layers.rend(); ++layer) write_backward(*layer);
    write_finish();
  }

  // All buffers go out flattened, then each is copied back to its place.
  void write_buffer_broadcast() {
    if (!job_.training.broadcast_buffers || job_.buffer_tensors == 0)
      return;
    context_.writer.section("broadcast buffers", Category::communication);
    const std::vector<OpId> before = write_mark(context_);
    const CommunicationOps sent =
        write_collective(context_, CollectiveOp::broadcast, job_.buffer_bytes, before);
    context_.writer.section("wait for buffers", Category::communication);
    write_wait(context_, sent.collective.end);
    context_.writer.section("copy buffers", Category::gradient_copy);
    write_kernels(context_, copy_work(job_.buffer_tensors, job_.buffer_bytes));
  }

  std::vector<OpId> write_backward_kernel(const LayerWork& layer) {
    context_.writer.section("backward " + layer.name, Category::backward);
    return write_kernels(context_, layer.backward);
  }

  void write_backward(const LayerWork& layer) {
    std::vector<OpId> done = write_backward_kernel(layer);
    for (const std::uint32_t gradient : layer.gradients) {
      if (copies_gradients()) {
        context_.writer.section("copy " + job_.gradients[gradient].name, Category::gradient_copy);
        done = write_kernels(context_, copy_work(1, job_.gradients[gradient].bytes));
      }
      mark_ready(gradient, done);
    }
  }

  void mark_ready(std::uint32_t gradient, const std::vector<OpId>& done) {
    const std::uint32_t bucket = bucket_of_[gradient];
    if (--missing_[bucket] > 0)
      return;
    ready_[bucket] = done;
    if (!job_.communication.overlap)
      return;
    // Strictly in order: a full bucket waits for every bucket before it.
    while (launched_ < buckets_.size() && missing_[launched_] == 0) launch(launched_++);
  }

  void launch(std::uint32_t bucket) {
    BucketOps ops;
    ops.index = bucket;
    ops.parameters = static_cast<std::uint32_t>(buckets_[bucket].size());
    for (const std::uint32_t gradient : buckets_[bucket]) ops.bytes += job_.gradients[gradient].bytes;
    ops.bytes_on_wire = compressed(buckets_[bucket]);
    ops.ready = ready_[bucket];
    compress(ops);
    context_.writer.section("launch bucket " + std::to_string(bucket), Category::host_overhead);
    ops.ready = write_delays(context_, job_.per_bucket, std::move(ops.ready));
    context_.writer.section("bucket " + std::to_string(bucket), Category::communication);
    CommunicationOps sent =
        write_collective(context_, CollectiveOp::all_reduce, ops.bytes_on_wire, ops.ready);
    ops.collective = std::move(sent.collective);
    ops.algorithm = std::move(sent.algorithm);
    ops.protocol = std::move(sent.protocol);
    ops_.buckets.push_back(std::move(ops));
  }

  bool is_compressed() const { return job_.training.compression != Compression::none; }

  Bytes compressed(const Bucket& bucket) const {
    Bytes total;
    for (const std::uint32_t gradient : bucket) {
      const Gradient& tensor = job_.gradients[gradient];
      const bool halves = is_compressed() && tensor.element_bytes > 2;
      total += halves ? Bytes{tensor.bytes.count() / tensor.element_bytes * 2} : tensor.bytes;
    }
    return total;
  }

  // A compression hook divides and casts the bucket before it is sent, and casts back after.
  void compress(BucketOps& ops) {
    if (!is_compressed())
      return;
    context_.writer.section("compress bucket " + std::to_string(ops.index), Category::gradient_copy);
    ops.ready = write_kernels(context_, copy_work(2, ops.bytes));
  }

  void write_finish() {
    while (launched_ < buckets_.size()) launch(launched_++);
    for (const BucketOps& bucket : ops_.buckets) {
      context_.writer.section("wait for bucket " + std::to_string(bucket.index), Category::communication);
      write_wait(context_, bucket.collective.end);
      const std::int64_t copies = copies_gradients() ? bucket.parameters : 0;
      const std::int64_t casts = is_compressed() ? 1 : 0;
      if (copies + casts == 0)
        continue;
      context_.writer.section("copy back bucket " + std::to_string(bucket.index), Category::gradient_copy);
      if (casts > 0)
        write_kernels(context_, copy_work(casts, bucket.bytes));
      if (copies > 0)
        write_kernels(context_, copy_work(copies, bucket.bytes));
    }
  }

  bool copies_gradients() const { return !job_.training.gradient_as_bucket_view; }

  const StrategyContext& context_;
  const Job& job_;
  std::vector<Bucket> buckets_;
  std::vector<std::uint32_t> bucket_of_;  // by gradient
  std::vector<std::size_t> missing_;      // by bucket: gradients still to come
  std::vector<std::vector<OpId>> ready_;  // by bucket, by representative
  std::uint32_t launched_ = 0;
  IterationOps ops_;
};

IterationOps write_iteration(const StrategyContext& context) {
  return DdpIteration(context).write();
}

const Registration<Strategy> registration{
    "ddp", {write_iteration, "PyTorch DistributedDataParallel: buckets reduced while backward runs"}};

}  // namespace
}  // namespace lockstep
