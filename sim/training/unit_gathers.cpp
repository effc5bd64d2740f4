#include "sim/training/unit_gathers.h"

#include <utility>

#include "sim/training/step_writer.h"

namespace lockstep {
namespace {

// torch's _FreeEventQueue: so many units may be gathered and not yet freed.
constexpr std::size_t most_gathers_in_flight = 2;

}  // namespace

UnitGathers::UnitGathers(const StrategyContext& context, const UnitShards& shards,
                         const std::vector<Unit>& units)
    : context_(context),
      options_(context.job.training.sharded),
      shards_(shards),
      units_(units),
      limit_(options_.limit_all_gathers && options_.version == 1 ? most_gathers_in_flight : 0),
      gathered_(units.size()) {}

void UnitGathers::begin() {
  start_ = write_mark(context_);
}

// _runtime_utils.py, _root_pre_forward (_wait_for_computation_stream).
void UnitGathers::begin_forward() {
  if (is_backward_)
    begin();
  is_backward_ = false;
}

void UnitGathers::begin_backward() {
  is_backward_ = true;
  limit_.gate();  // the root asks the limiter too, although it is there
}

void UnitGathers::gather(std::uint32_t index) {
  const Unit& unit = units_[index];
  if (is_gathered(index) || unit.elements == 0)
    return;
  std::vector<OpId> ready = gate();
  // What is spread after forward has been cast already.
  const bool is_spread = is_backward_ && shards_.reshards() != nullptr;
  if (!is_spread)
    ready = shards_.cast(std::move(ready), unit, options_.param_dtype);
  allocate_at_end(context_, MemoryCategory::parameters, whole(index), ready);
  gathered_[index].arrived = write_collective(context_,
                                              {.name = "gather " + unit.name,
                                               .payload = Payload::parameters,
                                               .op = CollectiveOp::all_gather,
                                               .bytes = whole(index),
                                               .tensors = unit.tensors,
                                               .group = is_spread ? shards_.reshards() : &shards_.holders()},
                                              std::move(ready));
  wait_unless_overlapped(context_, gathered_[index].arrived);
}

std::vector<OpId> UnitGathers::gate() {
  std::vector<OpId> ready = options_.version == 1 ? limit_.gate() : copied_out_;
  if (!context_.job.communication.overlap)
    return write_mark(context_);
  return ready.empty() ? start_ : ready;
}

void UnitGathers::wait_for(std::uint32_t index) {
  Gathered& unit = gathered_[index];
  if (unit.is_waited_for || unit.arrived.empty())
    return;
  unit.is_waited_for = true;
  write_wait(context_, "wait for " + units_[index].name, unit.arrived);
  if (options_.version == 2)
    copy_out(index);
}

void UnitGathers::copy_out(std::uint32_t unit) {
  context_.writer.section("copy out " + units_[unit].name, Category::gradient_copy);
  copied_out_ = write_kernels(context_, copy_work(1, whole(unit)));
}

void UnitGathers::leave_forward(std::uint32_t unit, const std::vector<OpId>& done) {
  if (options_.reshard_group == 1)
    return;
  if (shards_.reshards() != nullptr)
    allocate_at_end(context_, MemoryCategory::parameters, shards_.between_passes(units_[unit]), done);
  free(unit, done);
  limit_.freed(done);
}

void UnitGathers::leave_backward(std::uint32_t unit, const std::vector<OpId>& done) {
  free(unit, done);
  if (unit == root_unit)
    return;
  if (shards_.reshards() != nullptr)
    release_at_end(context_, MemoryCategory::parameters, shards_.between_passes(units_[unit]), done);
  limit_.freed(done);
}

void UnitGathers::free(std::uint32_t unit, const std::vector<OpId>& done) {
  if (is_gathered(unit))
    release_at_end(context_, MemoryCategory::parameters, whole(unit), done);
  gathered_[unit] = {};
}

}  // namespace lockstep
