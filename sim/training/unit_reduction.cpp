#include "sim/training/unit_reduction.h"

#include <utility>

#include "sim/training/step_writer.h"

namespace lockstep {
namespace {

// torch's _get_gradient_predivide_factor: a power of two near the root of the ranks, so that halves neither
// overflow before the sum nor vanish after it.
std::int64_t division_before_sum(std::int64_t ranks) {
  std::int64_t factor = 1;
  while (ranks % factor == 0 && ranks / factor > factor) factor *= 2;
  return factor;
}

}  // namespace

UnitReduction::UnitReduction(const StrategyContext& context, const UnitShards& shards,
                             const std::vector<Unit>& units)
    : context_(context),
      options_(context.job.training.sharded),
      shards_(shards),
      units_(units),
      stream_(context),
      holds_gradients_(units.size()) {}

void UnitReduction::hold_gradients(std::uint32_t unit, const std::vector<OpId>& done) {
  if (holds_gradients_[unit] || options_.no_sync)
    return;
  holds_gradients_[unit] = true;
  allocate_at_start(context_, MemoryCategory::communication_buffers, whole(units_[unit]), done);
}

void UnitReduction::release_gradients(std::uint32_t unit, const std::vector<OpId>& done) {
  if (holds_gradients_[unit])
    release_at_end(context_, MemoryCategory::communication_buffers, whole(units_[unit]), done);
  holds_gradients_[unit] = false;
}

std::vector<OpId> UnitReduction::concatenate(std::uint32_t index, std::vector<OpId> done) {
  const Unit& unit = units_[index];
  if (options_.version == 2 || unit.elements == 0)
    return done;
  context_.writer.section("concatenate " + unit.name, Category::gradient_copy);
  return write_kernels(context_, copy_work(1, shards_.whole(unit, options_.param_dtype)));
}

void UnitReduction::reduce(std::uint32_t index, std::vector<OpId> ready) {
  const Unit& unit = units_[index];
  if (unit.elements == 0)
    return;
  const std::int64_t before_sum = divides() ? division_before_sum(options_.shard_group) : 1;
  ready = convert(copy_in(std::move(ready), unit), unit);
  if (before_sum > 1)
    ready = divide(ready, unit, whole(unit));
  std::vector<OpId> reduced = scatter_sum(std::move(ready), unit);
  release_gradients(index, reduced);
  if (before_sum > 1)
    stream_.follow(reduced);
  if (before_sum > 1 && before_sum < options_.shard_group)
    reduced = divide(reduced, unit, shards_.shard(unit, options_.reduce_dtype));
  reduced = sum_over_replicas(std::move(reduced), unit);
  reduced_.push_back(shards_.cast(std::move(reduced), unit, options_.reduce_dtype));
  wait_unless_overlapped(context_, reduced_.back());
}

void UnitReduction::wait_for_all() {
  for (const std::vector<OpId>& unit : reduced_) write_wait(context_, "wait for gradients", unit);
}

// fully_shard lets the library divide, but for fp16.
bool UnitReduction::divides() const {
  return options_.version == 1 || options_.reduce_dtype == Precision::fp16;
}

std::vector<OpId> UnitReduction::copy_in(std::vector<OpId> ready, const Unit& unit) {
  if (options_.version == 1)
    return ready;
  context_.writer.section("copy in " + unit.name, Category::gradient_copy);
  return write_kernels(context_, copy_work(1, whole(unit)));
}

// The first version casts whole gradients to the type they are reduced in; the second does as it copies.
std::vector<OpId> UnitReduction::convert(std::vector<OpId> ready, const Unit& unit) {
  if (options_.version == 2 ||
      parameter_bytes(options_.param_dtype) == parameter_bytes(options_.reduce_dtype))
    return ready;
  const Bytes both = shards_.whole(unit, options_.param_dtype) + whole(unit);
  context_.writer.section("convert " + unit.name, Category::gradient_copy);
  return stream_.write(copy_work(1, Bytes{both.count() / 2}), ready);
}

// In place.
std::vector<OpId> UnitReduction::divide(std::span<const OpId> ready, const Unit& unit, Bytes bytes) {
  context_.writer.section("divide " + unit.name, Category::gradient_copy);
  return stream_.write(copy_work(1, bytes), ready);
}

std::vector<OpId> UnitReduction::scatter_sum(std::vector<OpId> ready, const Unit& unit) {
  return write_collective(context_,
                          {.name = "reduce " + unit.name,
                           .op = CollectiveOp::reduce_scatter,
                           .bytes = whole(unit),
                           .tensors = unit.tensors,
                           .group = &shards_.holders()},
                          std::move(ready));
}

std::vector<OpId> UnitReduction::sum_over_replicas(std::vector<OpId> ready, const Unit& unit) {
  if (shards_.replicas() == nullptr)
    return ready;
  return write_collective(context_,
                          {.name = "sum " + unit.name + " over replicas",
                           .op = CollectiveOp::all_reduce,
                           .bytes = shards_.shard(unit, options_.reduce_dtype),
                           .tensors = unit.tensors,
                           .group = shards_.replicas()},
                          std::move(ready));
}

}  // namespace lockstep
