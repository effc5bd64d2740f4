#include "sim/training/compression.h"

#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

// torch's PowerSGDState.
constexpr std::int64_t min_compression_rate = 2;
constexpr std::int64_t index_bytes = 4;

KernelWork vector_work(Bytes moved, std::int64_t launches) {
  return {
      .work_class = WorkClass::vector, .is_model_work = false, .bytes = moved.count(), .launches = launches};
}

// One product for each matrix: it is read or written once, and so are its factors.
KernelWork multiplication_work(const LowRank& parts) {
  return {.work_class = WorkClass::matmul,
          .is_model_work = false,
          .flops = parts.multiplication,
          .bytes = (parts.matrices + parts.p + parts.q).count(),
          .launches = parts.matrix_tensors};
}

// Column by column: a norm and a division, then the columns behind it lose their share of it.
KernelWork orthogonalisation_work(const LowRank& parts) {
  constexpr std::int64_t launches_per_column = 5;
  KernelWork work = vector_work(2 * parts.p, launches_per_column * parts.columns);
  work.flops = parts.orthogonalisation;
  return work;
}

class LowRankHook {
 public:
  LowRankHook(const StrategyContext& context, const FullBucket& bucket)
      : context_(context), bucket_(bucket), parts_(low_rank(context.job, bucket.gradients)) {}

  std::vector<OpId> write(std::vector<OpId> ready) {
    ready = feed_error_back(ready);
    std::vector<OpId> whole = send("uncompressed", parts_.whole, parts_.whole_tensors, ready);
    if (parts_.matrix_tensors == 0) {
      release_copy(whole);
      return whole;
    }
    ready = send("P", parts_.p, parts_.matrix_tensors, project(ready));
    ready = send("Q", parts_.q, parts_.matrix_tensors, project_back(ready));
    ready = decompress(ready);
    release_copy(ready);
    return ready;
  }

 private:
  // The error of the last step is added, and the sum is kept to compare the result with.
  std::vector<OpId> feed_error_back(std::span<const OpId> ready) {
    section("add error to ");
    std::vector<OpId> done = write_kernels(context_, vector_work(5 * bucket_.bytes, 2), ready);
    allocate_at_start(context_, MemoryCategory::communication_buffers, bucket_.bytes, done);
    return done;
  }
  void release_copy(std::span<const OpId> done) {
    release_at_end(context_, MemoryCategory::communication_buffers, bucket_.bytes, done);
  }

  std::vector<OpId> project(std::span<const OpId> ready) {
    section("P of ");
    return write_kernels(context_, multiplication_work(parts_), ready);
  }

  std::vector<OpId> project_back(std::span<const OpId> ready) {
    section("orthogonalise ");
    const std::vector<OpId> orthogonal = write_side_kernels(context_, orthogonalisation_work(parts_), ready);
    section("Q of ");
    return write_side_kernels(context_, multiplication_work(parts_), orthogonal);
  }

  std::vector<OpId> decompress(std::span<const OpId> ready) {
    section("decompress ");
    const std::vector<OpId> product = write_side_kernels(context_, multiplication_work(parts_), ready);
    section("error of ");
    return write_side_kernels(context_, vector_work(3 * bucket_.bytes, 1), product);
  }

  std::vector<OpId> send(const std::string& what, Bytes bytes, std::uint32_t tensors,
                         std::vector<OpId> ready) {
    if (bytes == Bytes{0})
      return ready;
    return write_collective(context_, {.name = bucket_.name + " " + what, .bytes = bytes, .tensors = tensors},
                            std::move(ready));
  }

  void section(const std::string& what) {
    context_.writer.section(what + bucket_.name, Category::gradient_copy);
  }

  const StrategyContext& context_;
  const FullBucket& bucket_;
  LowRank parts_;
};

std::int64_t elements_of(const Job& job, std::span<const std::uint32_t> gradients) {
  std::int64_t elements = 0;
  for (const std::uint32_t gradient : gradients) elements += element_count(job.gradients[gradient]);
  return elements;
}

}  // namespace

LowRank low_rank(const Job& job, std::span<const std::uint32_t> gradients) {
  LowRank parts;
  for (const std::uint32_t index : gradients) {
    const Gradient& gradient = job.gradients[index];
    const std::int64_t elements = element_count(gradient);
    const std::int64_t rows = std::max<std::int64_t>(gradient.rows, 1);
    const std::int64_t columns = elements / rows;
    const std::int64_t rank = std::min({rows, columns, job.training.compression.rank});
    if (gradient.rows == 0 || (rows + columns) * rank * min_compression_rate >= elements) {
      parts.whole += gradient.bytes;
      ++parts.whole_tensors;
      continue;
    }
    parts.p += Bytes{rows * rank * gradient.element_bytes};
    parts.q += Bytes{columns * rank * gradient.element_bytes};
    parts.matrices += gradient.bytes;
    ++parts.matrix_tensors;
    parts.multiplication += 2 * elements * rank;
    parts.orthogonalisation += 2 * rows * rank * rank;
    parts.columns += rank;
  }
  return parts;
}

std::int64_t largest_count(std::int64_t elements, Ratio kept) {
  return std::max<std::int64_t>(1, scaled_up(elements, kept));
}

std::vector<OpId> write_low_rank(const StrategyContext& context, const FullBucket& bucket,
                                 std::vector<OpId> ready) {
  return LowRankHook(context, bucket).write(std::move(ready));
}

std::vector<OpId> write_largest(const StrategyContext& context, const FullBucket& bucket,
                                std::vector<OpId> ready) {
  const std::int64_t ranks = context.group.members();
  const std::int64_t count =
      largest_count(elements_of(context.job, bucket.gradients), context.job.training.compression.kept);
  const std::int64_t value_bytes = context.job.gradients[bucket.gradients.front()].element_bytes;
  const Bytes values{count * value_bytes * ranks};
  const Bytes indices{count * index_bytes * ranks};
  context.writer.section("select from " + bucket.name, Category::gradient_copy);
  ready = write_kernels(context, vector_work(6 * bucket.bytes, 4), ready);
  allocate_at_start(context, MemoryCategory::communication_buffers, values + indices, ready);
  const auto tensors = static_cast<std::uint32_t>(bucket.gradients.size());
  write_collective(
      context,
      {.name = bucket.name + " values", .op = CollectiveOp::all_gather, .bytes = values, .tensors = tensors},
      ready);
  ready = write_collective(context,
                           {.name = bucket.name + " indices",
                            .op = CollectiveOp::all_gather,
                            .bytes = indices,
                            .tensors = tensors},
                           std::move(ready));
  context.writer.section("add up " + bucket.name, Category::gradient_copy);
  ready = write_side_kernels(context, vector_work(bucket.bytes + 3 * values + indices, 1 + ranks), ready);
  release_at_end(context, MemoryCategory::communication_buffers, values + indices, ready);
  return ready;
}

Bytes compression_state(const Job& job) {
  const CompressionKind kind = job.training.compression.kind;
  if (kind == CompressionKind::topk)
    return gradient_bytes(job);
  if (kind != CompressionKind::powersgd)
    return Bytes{0};
  std::vector<std::uint32_t> all(job.gradients.size());
  std::iota(all.begin(), all.end(), 0u);
  const LowRank parts = low_rank(job, all);
  return gradient_bytes(job) + parts.p + parts.q;
}

}  // namespace lockstep
