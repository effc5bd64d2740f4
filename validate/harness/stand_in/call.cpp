#include "validate/harness/stand_in/call.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "sim/base/check.h"
#include "validate/harness/stand_in/operation.h"

namespace lockstep::harness::stand_in {

Call::Call(const char* entry_point, const void* site, double host_seconds)
    : machine_(Machine::current()),
      entry_point_(entry_point),
      site_{.entry_point = entry_point, .address = site},
      lock_(machine_.turns().lock()) {
  Host* const host = this_thread().host;
  if (host == nullptr)
    return;
  host->seconds += host_seconds;
  check_downloads();
  machine_.turns().pass(lock_, host->rank);
  if (site != nullptr)
    machine_.counts().remember(site_);
}

// A host that goes on may look at what has not come. Stricter than CUDA, which waits by itself where memory
// is not page-locked: no caller shall depend on that.
void Call::check_downloads() {
  const std::string name = entry_point_;
  const bool waits = name == "cudaStreamSynchronize" || name == "cudaDeviceSynchronize";
  if (this_thread().downloading != nullptr && !waits && !machine_.is_broken())
    machine_.report(name + " is called before a copy from the GPU was waited for");
}

void Call::wait_for(cudaStream_t stream) {
  wait_until([stream] { return stream->items.empty(); });
  see(stream->clock);
  if (this_thread().downloading == stream)
    this_thread().downloading = nullptr;
}

Host& Call::host() {
  Host* const host = this_thread().host;
  LOCKSTEP_CHECK(host != nullptr, "only a rank's own thread asks for work or waits");
  return *host;
}

bool Call::must_fail() {
  const Host* const host = this_thread().host;
  return machine_.counts().add(entry_point_, host == nullptr ? -1 : host->rank);
}

bool Call::is_dropped() const {
  return machine_.options().mutant.drops(site_);
}

cudaStream_t Call::stream(cudaStream_t argument) {
  const cudaStream_t stream = argument == nullptr ? machine_.streams().legacy_stream(gpu()) : argument;
  const Mutant& mutant = machine_.options().mutant;
  if (mutant.site != site_)
    return stream;
  if (mutant.change == Mutant::Change::legacy_stream)
    return machine_.streams().legacy_stream(stream->gpu);
  return mutant.change == Mutant::Change::other_stream ? machine_.streams().spare_stream(stream->gpu)
                                                       : stream;
}

void Call::wait(const Turns::Condition& condition) {
  Host& waiting = host();
  waiting.waits_for = entry_point_;
  machine_.turns().wait(lock_, waiting.rank, condition);
  waiting.waits_for.clear();
}

VectorClock Call::issue() {
  host().clock.advance(host().line);
  return host().clock;
}

double Call::not_before() const {
  VirtualClock* const clock = machine_.clock();
  return clock == nullptr ? 0 : this_thread().host->seconds + clock->rates().delay;
}

std::vector<Place> Call::places_of(int gpu, const std::vector<Memory>& memories) {
  std::vector<Place> places;
  for (const Memory& memory : memories) {
    if (memory.bytes <= 0)
      continue;
    const std::optional<Place> place = machine_.memory().find(memory.begin, memory.bytes);
    if (!place) {
      machine_.report(
          fmt::format("{} is given {} bytes that are not all of one allocation", entry_point_, memory.bytes));
      continue;
    }
    const int owner = machine_.memory().at(place->allocation).gpu;
    if (owner != gpu && owner != DeviceMemory::of_host)
      machine_.report(fmt::format("{} is given memory of another GPU", entry_point_));
    places.push_back(*place);
  }
  return places;
}

void Call::enqueue(cudaStream_t stream, Item item) {
  if (machine_.clock() != nullptr) {
    const auto most = static_cast<std::size_t>(machine_.clock()->rates().queue);
    wait_until([stream, most] { return stream->items.size() < most; });
  }
  item.issued = issue();
  item.not_before = not_before();
  item.reads = places_of(stream->gpu, item.operation.reads);
  item.writes = places_of(stream->gpu, item.operation.writes);
  if (!machine_.is_broken())
    machine_.streams().push(stream, std::move(item));
}

void enqueue(cudaStream_t stream, Operation operation) {
  const VirtualClock* const clock = Machine::current().clock();
  Call call(operation.name, nullptr, clock == nullptr ? 0 : clock->rates().launch);
  call.enqueue(call.stream(stream), {.operation = std::move(operation)});
}

cudaStream_t stream_argument(const char* entry_point, const void* call_site, cudaStream_t stream) {
  Call call(entry_point, call_site);
  return call.stream(stream);
}

bool must_fail(const char* entry_point) {
  Call call(entry_point);
  return call.must_fail();
}

void fail_launch() {
  this_thread().last_error = cudaErrorLaunchFailure;
}

void count_live(const char* kind, int change) {
  // Takes no turn: a library may hold a lock of its own here.
  Machine& machine = Machine::current();
  const Turns::Lock lock = machine.turns().lock();
  machine.count_live(kind, change);
}

}  // namespace lockstep::harness::stand_in
