// PyTorch DistributedDataParallel: every rank holds the model, gradients are averaged bucket by bucket while
// backward still runs.
//
// The first forward of an iteration is preceded by a broadcast of the buffers, one for each type of them. In
// backward each gradient is copied into its bucket as soon as it is accumulated (the division by the world
// size is fused into the copy); a bucket whose last gradient has arrived is reduced on the communication
// lane, strictly in bucket order. Backward ends by waiting for all buckets and copying each back. With
// gradient_as_bucket_view only the copy back falls away: zero_grad sets gradients to none, so that backward
// makes new ones; where it keeps them (the default before PyTorch 2.0) they are divided in place, which takes
// as long. In the first iteration all gradients form one bucket, so nothing overlaps; the order in which they
// became ready then decides the buckets of every later iteration. With accumulation only the last micro-batch
// is reduced (no_sync before). find_unused_parameters keeps the buckets of construction unless the graph is
// static, and sums a bitmap of what was used, 4 bytes a parameter, once all buckets are on their way. A
// compression hook reduces a bucket in its own way (training/compression); PowerSGD begins after its start
// iteration. Before iteration 1 rank 0 sends everybody the model, in pieces of 250 MiB. Without overlap buckets
// are launched once backward has ended.
// Reference: torch/csrc/distributed/c10d/reducer.cpp (mark_variable_ready_dense, finalize_bucket_dense),
// comm.cpp (broadcast_coalesced); torch/nn/parallel/distributed.py.

#include <algorithm>
#include <limits>

#include "sim/training/compression.h"
#include "sim/training/shared_options.h"
#include "sim/training/synchroniser.h"

namespace lockstep::strategies::ddp {
namespace {

class DdpReducer : public Synchroniser {
 public:
  explicit DdpReducer(const StrategyContext& context) : Synchroniser(context) {
    buckets_ = find_buckets();
    bucket_of_.resize(job_.gradients.size());
    for (std::uint32_t bucket = 0; bucket < buckets_.size(); ++bucket)
      for (const std::uint32_t gradient : buckets_[bucket]) bucket_of_[gradient] = bucket;
    missing_.reserve(buckets_.size());
    for (const Bucket& bucket : buckets_) missing_.push_back(bucket.size());
    ready_.resize(buckets_.size());
  }

  void begin() override {
    if (context_.is_first_iteration)
      write_model_broadcast();
    write_buffer_broadcast();
  }

  void gradient_ready(std::uint32_t gradient, const std::vector<OpId>&) override {
    context_.writer.section("copy " + job_.gradients[gradient].name, Category::gradient_copy);
    mark_ready(gradient, write_kernels(context_, copy_work(1, job_.gradients[gradient].bytes)));
  }

  void finish() override {
    if (!job_.communication.overlap)
      ready_.assign(ready_.size(), write_mark(context_));
    while (launched_ < buckets_.size()) launch(launched_++);
    const std::vector<OpId> bitmap = write_bitmap();
    for (std::size_t bucket = 0; bucket < sent_.size(); ++bucket)
      hand_back("bucket " + std::to_string(bucket), sent_[bucket]);
    if (!bitmap.empty())
      write_wait(context_, "wait for the bitmap", bitmap);
  }

 private:
  // A bucket under way.
  struct Sent {
    std::uint32_t tensors = 0;
    Bytes bytes = {};
    Bytes cast_bytes = {};           // of the bucket it was cast into
    std::vector<OpId> arrived = {};  // by representative
  };

  std::vector<BucketTensor> bucket_tensors() const {
    std::vector<BucketTensor> tensors;
    for (const Gradient& gradient : job_.gradients)
      tensors.push_back({gradient.bytes, gradient.element_bytes});
    return tensors;
  }

  bool finds_unused() const {
    return job_.training.ddp.find_unused_parameters && !job_.training.ddp.static_graph;
  }

  std::vector<Bucket> find_buckets() const {
    const std::vector<BucketTensor> tensors = bucket_tensors();
    const BucketLimits limits{job_.training.ddp.first_bucket, job_.training.ddp.bucket_cap};
    if (finds_unused())
      return assign_initial_buckets(tensors, limits);
    const Bytes unlimited{std::numeric_limits<std::int64_t>::max()};
    const BucketLimits in_force = context_.is_first_iteration ? BucketLimits{unlimited, unlimited} : limits;
    return assign_buckets(tensors, gradient_order(job_), in_force);
  }

  // When DDP is constructed: weights and buffers.
  void write_model_broadcast() {
    const Bytes piece{250 * 1024 * 1024};
    for (const Bucket& tensors : assign_buckets(bucket_tensors(), gradient_order(job_), {piece, piece})) {
      Bytes bytes;
      for (const std::uint32_t gradient : tensors) bytes += job_.gradients[gradient].bytes;
      write_broadcasts("weights", {{.tensors = std::ssize(tensors), .bytes = bytes}});
    }
    write_broadcasts("buffers", job_.buffers);
  }

  void write_buffer_broadcast() {
    if (job_.training.ddp.broadcast_buffers)
      write_broadcasts("buffers", job_.buffers);
  }

  // All groups are on their way before the first is waited for.
  void write_broadcasts(const std::string& what, const std::vector<BufferGroup>& groups) {
    std::vector<std::vector<OpId>> arrived;
    for (const BufferGroup& group : groups) arrived.push_back(broadcast_flat(what, group));
    for (std::size_t group = 0; group < groups.size(); ++group) {
      write_wait(context_, "wait for " + what, arrived[group]);
      context_.writer.section("copy " + what, Category::gradient_copy);
      write_kernels(context_, copy_work(groups[group].tensors, groups[group].bytes));
    }
  }

  // Concatenated, where there are several tensors.
  std::vector<OpId> broadcast_flat(const std::string& what, const BufferGroup& group) {
    context_.writer.section("flatten " + what, Category::gradient_copy);
    std::vector<OpId> ready =
        group.tensors > 1 ? write_kernels(context_, copy_work(1, group.bytes)) : write_mark(context_);
    return write_collective(context_,
                            {.name = "broadcast " + what,
                             .payload = Payload::other,
                             .op = CollectiveOp::broadcast,
                             .bytes = group.bytes,
                             .tensors = static_cast<std::uint32_t>(group.tensors)},
                            std::move(ready));
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
    const std::string name = "bucket " + std::to_string(bucket);
    Sent sent{.tensors = static_cast<std::uint32_t>(buckets_[bucket].size())};
    for (const std::uint32_t gradient : buckets_[bucket]) sent.bytes += accumulated(gradient);
    std::vector<OpId> ready = cast(name, bucket, sent, ready_[bucket]);
    context_.writer.section("launch " + name, Category::host_overhead);
    ready = write_delays(context_, job_.per_bucket, std::move(ready));
    sent.arrived =
        reduce({.name = name, .gradients = buckets_[bucket], .bytes = sent.bytes}, std::move(ready));
    sent_.push_back(std::move(sent));
  }

  std::vector<OpId> reduce(const FullBucket& bucket, std::vector<OpId> ready) {
    if (compression() == CompressionKind::powersgd)
      return write_low_rank(context_, bucket, std::move(ready));
    if (compression() == CompressionKind::topk)
      return write_largest(context_, bucket, std::move(ready));
    return write_collective(context_,
                            {.name = bucket.name,
                             .bytes = bucket.bytes,
                             .bytes_on_wire = on_wire(bucket.gradients),
                             .tensors = static_cast<std::uint32_t>(bucket.gradients.size())},
                            std::move(ready));
  }

  // What is sent is as wide as it stands.
  Bytes accumulated(std::uint32_t gradient) const {
    const Gradient& tensor = job_.gradients[gradient];
    return job_.wider_gradients.count() > 0 ? Bytes{element_count(tensor) * 4} : tensor.bytes;
  }

  CompressionKind compression() const {
    const bool waits = job_.training.compression.kind == CompressionKind::powersgd &&
                       context_.is_first_iteration && job_.training.ddp.powersgd_start_iteration > 0;
    return waits ? CompressionKind::none : job_.training.compression.kind;
  }

  bool is_cast() const {
    return compression() == CompressionKind::fp16 || compression() == CompressionKind::bf16;
  }

  Bytes on_wire(std::span<const std::uint32_t> gradients) const {
    Bytes total;
    for (const std::uint32_t gradient : gradients) {
      const Gradient& tensor = job_.gradients[gradient];
      const bool halves = is_cast() && tensor.element_bytes > 2;
      total += halves ? Bytes{element_count(tensor) * 2} : accumulated(gradient);
    }
    return total;
  }

  // The cast hooks divide and cast a bucket into another before it is sent, and cast it back after.
  std::vector<OpId> cast(const std::string& name, std::uint32_t bucket, Sent& sent, std::vector<OpId> ready) {
    if (!is_cast())
      return ready;
    sent.cast_bytes = on_wire(buckets_[bucket]);
    context_.writer.section("compress " + name, Category::gradient_copy);
    std::vector<OpId> done = write_kernels(context_, copy_work(2, sent.bytes));
    allocate_at_start(context_, MemoryCategory::communication_buffers, sent.cast_bytes, done);
    return done;
  }

  // Which parameters any rank has used: an int32 for each.
  std::vector<OpId> write_bitmap() {
    if (!finds_unused())
      return {};
    const auto tensors = static_cast<std::int64_t>(job_.gradients.size());
    return write_collective(context_,
                            {.name = "unused bitmap", .payload = Payload::other, .bytes = Bytes{4 * tensors}},
                            write_mark(context_));
  }

  void hand_back(const std::string& name, const Sent& bucket) {
    write_wait(context_, "wait for " + name, bucket.arrived);
    const std::int64_t copies = job_.training.ddp.gradient_as_bucket_view ? 0 : bucket.tensors;
    const std::int64_t casts = is_cast() ? 1 : 0;
    if (copies + casts == 0)
      return;
    context_.writer.section("copy back " + name, Category::gradient_copy);
    if (casts > 0)
      release_at_end(context_, MemoryCategory::communication_buffers, bucket.cast_bytes,
                     write_kernels(context_, copy_work(casts, bucket.bytes)));
    if (copies > 0)
      write_kernels(context_, copy_work(copies, bucket.bytes));
  }

  std::vector<Bucket> buckets_;
  std::vector<std::uint32_t> bucket_of_;  // by gradient
  std::vector<std::size_t> missing_;      // by bucket: gradients still to come
  std::vector<std::vector<OpId>> ready_;  // by bucket, by representative
  std::uint32_t launched_ = 0;
  std::vector<Sent> sent_;
};

MemoryShares memory(const Job& job, std::int64_t) {
  const Bytes buckets = job.training.ddp.gradient_as_bucket_view ? Bytes{0} : gradient_bytes(job);
  return {.buffers = buckets + compression_state(job)};
}

// Of what a bucket becomes on its way.
double messages_of_bucket(CompressionKind kind) {
  constexpr double whole_p_and_q = 3;
  constexpr double values_and_indices = 2;
  if (kind == CompressionKind::powersgd)
    return whole_p_and_q;
  return kind == CompressionKind::topk ? values_and_indices : 1;
}

TrafficBound traffic(const TrafficInput& input) {
  constexpr double fp32_bytes = 4;
  constexpr double broadcast_bytes = 250 * mebi;  // of the model, before the first iteration
  constexpr double buffers_and_unused = 3;  // what else an iteration sends: buffers of two types, a bitmap
  const Compression& compression = input.training.compression;
  const auto cap = static_cast<double>(input.training.ddp.bucket_cap.count());
  const double buckets = most_groups(input, cap / fp32_bytes);
  TrafficBound traffic{.collectives = messages_of_bucket(compression.kind) * buckets +
                                      most_groups(input, broadcast_bytes / fp32_bytes) + buffers_and_unused};
  if (compression.kind == CompressionKind::topk) {
    constexpr double with_index = 2;
    const double kept = compression.kept.in_real();
    traffic.volume = std::max(traffic.volume, with_index * kept * input.ranks);
  }
  return traffic;
}

const Registration<Strategy> ddp_registration{
    "ddp",
    {.synchroniser = make_synchroniser<DdpReducer>,
     .description = "PyTorch DistributedDataParallel: buckets reduced while backward runs",
     .accepts = {.options = ddp_options,
                 .compressions = {CompressionKind::none, CompressionKind::fp16, CompressionKind::bf16,
                                  CompressionKind::powersgd, CompressionKind::topk},
                 .gradient_clipping = true},
     .sends = {.at_most = traffic},
     .memory = memory}};

}  // namespace
}  // namespace lockstep::strategies::ddp
