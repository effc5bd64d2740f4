#include "validate/harness/stand_in/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/base/check.h"

namespace lockstep::harness::stand_in {

Streams::Streams(int gpus, bool computes, DeviceMemory& memory, Collectives& collectives, Hooks hooks)
    : computes_(computes), memory_(memory), collectives_(collectives), hooks_(std::move(hooks)) {
  for (int gpu = 0; gpu < gpus; ++gpu) legacy_.push_back(make_stream(gpu, false));
}

cudaStream_t Streams::make_stream(int gpu, bool is_blocking) {
  streams_.push_back(std::make_unique<CUstream_st>());
  *streams_.back() = {.gpu = gpu, .is_blocking = is_blocking, .line = hooks_.new_line()};
  return streams_.back().get();
}

cudaStream_t Streams::spare_stream(int gpu) {
  cudaStream_t& stream = spare_[gpu];
  if (stream == nullptr)
    stream = make_stream(gpu, false);
  return stream;
}

cudaEvent_t Streams::make_event(bool tells_time) {
  events_.push_back(std::make_unique<CUevent_st>());
  events_.back()->tells_time = tells_time;
  return events_.back().get();
}

std::uint32_t Streams::new_recording() {
  recordings_.emplace_back();
  return static_cast<std::uint32_t>(recordings_.size() - 1);
}

// What is on `first` so far happens before what comes on `then`.
void Streams::order(CUstream_st& first, CUstream_st& then, const VectorClock& issued) {
  const std::uint32_t recording = new_recording();
  first.items.push_back({.kind = Item::Kind::record, .issued = issued, .recording = recording});
  then.items.push_back({.kind = Item::Kind::wait, .issued = issued, .recording = recording});
}

void Streams::push(cudaStream_t stream, Item item) {
  const VectorClock issued = item.issued;
  std::vector<CUstream_st*> blocking;
  if (stream == legacy_stream(stream->gpu))
    for (const auto& other : streams_)
      if (other->gpu == stream->gpu && other->is_blocking && other->is_live)
        blocking.push_back(other.get());
  for (CUstream_st* other : blocking) order(*other, *stream, issued);
  stream->items.push_back(std::move(item));
  for (CUstream_st* other : blocking) order(*stream, *other, issued);
}

bool Streams::is_idle(int gpu) const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [&](const auto& stream) { return stream->gpu != gpu || stream->items.empty(); });
}

VectorClock Streams::clock_of(int gpu) const {
  VectorClock clock;
  for (const auto& stream : streams_)
    if (stream->gpu == gpu)
      clock.join(stream->clock);
  return clock;
}

bool Streams::can_go_on(const CUstream_st& stream) const {
  if (stream.items.empty())
    return false;
  const Item& item = stream.items.front();
  if (item.kind == Item::Kind::wait)
    return recordings_[item.recording].is_done;
  if (item.kind != Item::Kind::collective)
    return true;
  return item.collective.communicator->is_aborted || collectives_.is_first_on_every_rank(item.collective);
}

void Streams::finish_first(CUstream_st& stream, double seconds) {
  LOCKSTEP_CHECK(can_go_on(stream), "only what waits for nothing is run");
  if (stream.items.front().kind == Item::Kind::collective &&
      !stream.items.front().collective.communicator->is_aborted)
    return run_collective(CollectiveCall(stream.items.front().collective));
  const Item item = std::move(stream.items.front());
  stream.items.pop_front();
  stream.is_running = false;
  stream.clock.join(item.issued);
  if (item.kind == Item::Kind::record)
    recordings_[item.recording] = {.is_done = true, .clock = stream.clock, .seconds = seconds};
  else if (item.kind == Item::Kind::wait)
    stream.clock.join(recordings_[item.recording].clock);
  else if (item.kind == Item::Kind::operation)
    run(stream, item);
}

void Streams::run(CUstream_st& stream, const Item& item) {
  if (check(stream, item.operation.name, item.reads, item.writes) && computes_)
    item.operation.run();
}

// Each part is an operation of its own stream that has seen what came before it on every rank.
void Streams::run_collective(const CollectiveCall& call) {
  const std::vector<CollectiveCall> parts = collectives_.parts_of(call);
  VectorClock joined;
  std::vector<Item> items;
  for (const CollectiveCall& part : parts) {
    items.push_back(std::move(part.stream->items.front()));
    part.stream->items.pop_front();
    part.stream->is_running = false;
    part.stream->clock.join(items.back().issued);
    joined.join(part.stream->clock);
  }
  bool is_sound = true;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    parts[rank].stream->clock.join(joined);
    is_sound =
        check(*parts[rank].stream, parts[rank].name, items[rank].reads, items[rank].writes) && is_sound;
  }
  Collectives::finish(call);
  if (is_sound && computes_)
    Collectives::compute(parts);
}

bool Streams::check(CUstream_st& stream, const char* name, const std::vector<Place>& reads,
                    const std::vector<Place>& writes) {
  const Moment moment = stream.clock.advance(stream.line);
  bool is_sound = true;
  for (const Place& place : reads)
    is_sound = check_place(stream, place, {.name = name, .moment = moment}) && is_sound;
  for (const Place& place : writes)
    is_sound = check_place(stream, place, {.writes = true, .name = name, .moment = moment}) && is_sound;
  return is_sound;
}

bool Streams::check_place(const CUstream_st& stream, const Place& place, const Access& access) {
  DeviceMemory::Allocation& allocation = memory_.at(place.allocation);
  if (!allocation.is_live) {
    hooks_.report(fmt::format("{} runs on memory that was freed", access.name));
    return false;
  }
  Access placed = access;
  placed.begin = place.begin;
  placed.end = place.end;
  const std::optional<std::string> problem = allocation.history.add(placed, stream.clock);
  if (problem)
    hooks_.report(*problem);
  return !problem;
}

}  // namespace lockstep::harness::stand_in
