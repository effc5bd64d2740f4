// The entry points of NCCL, for ranks that are threads.

#include <nccl.h>

#include "validate/harness/stand_in/call.h"

using lockstep::harness::stand_in::Call;
using lockstep::harness::stand_in::CollectiveCall;
using lockstep::harness::stand_in::CollectiveGroup;
using lockstep::harness::stand_in::Item;
using lockstep::harness::stand_in::Machine;

namespace {

double collective_cost() {
  const auto* const clock = Machine::current().clock();
  return clock == nullptr ? 0 : clock->rates().collective;
}

ncclResult_t result_of(const Call& call) {
  return call.result() == cudaSuccess ? ncclSuccess : ncclSystemError;
}

ncclResult_t start(Call& call, CollectiveCall collective, cudaStream_t argument) {
  if (call.must_fail() || !collective.communicator->is_live || collective.communicator->is_aborted)
    return ncclInvalidUsage;
  collective.stream = call.stream(argument);
  if (const auto problem = call.machine().collectives().add(collective))
    call.machine().report(*problem);
  const bool is_sent = collective.root < 0 || collective.root == collective.communicator->rank;
  Item item{.kind = Item::Kind::collective, .operation = {.name = collective.name}, .collective = collective};
  if (is_sent)
    item.operation.reads = {{.begin = collective.from, .bytes = collective.bytes()}};
  item.operation.writes = {{.begin = collective.to, .bytes = collective.bytes()}};
  call.enqueue(collective.stream, item);
  return result_of(call);
}

// Whether work of this communicator is queued.
bool is_busy(Machine& machine, ncclComm_t communicator) {
  for (const auto& stream : machine.streams().all())
    for (const Item& item : stream->items)
      if (item.kind == Item::Kind::collective && item.collective.communicator == communicator)
        return true;
  return false;
}

void end(Call& call, ncclComm_t communicator) {
  if (!communicator->is_live)
    return call.machine().report(std::string(call.name()) + " is given a communicator that has ended");
  communicator->is_live = false;
  call.machine().count_live("communicator", -1);
}

}  // namespace

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "an error of the stand-in";
}

const char* ncclGetLastError(ncclComm_t /*communicator*/) {
  return "as a test asked, or a finding";
}

ncclResult_t ncclGetVersion(int* version) {
  Call call("ncclGetVersion");
  *version = 22809;
  return call.must_fail() ? ncclSystemError : ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  Call call("ncclGetUniqueId");
  if (call.must_fail())
    return ncclSystemError;
  *id = call.machine().collectives().new_id();
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* /*configuration*/) {
  Call call("ncclCommInitRankConfig");
  if (call.must_fail())
    return ncclSystemError;
  *communicator = call.machine().collectives().join(id, ranks, rank);
  if (*communicator == nullptr)
    return ncclInvalidUsage;
  call.machine().count_live("communicator", 1);
  const CollectiveGroup* const group = (*communicator)->group;
  call.wait_until([group] { return group->is_whole(); });
  if (result_of(call) != ncclSuccess)
    end(call, *communicator);
  return result_of(call);
}

// Ends together with what it still has to do.
ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  Call call("ncclCommDestroy");
  const bool fails = call.must_fail();
  Machine& machine = call.machine();
  call.wait_until([&machine, communicator] { return !is_busy(machine, communicator); });
  end(call, communicator);
  return fails ? ncclSystemError : result_of(call);
}

// Its collectives come to an end without having been done; other ranks' do not.
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  Call call("ncclCommAbort");
  const bool fails = call.must_fail();
  communicator->is_aborted = true;
  end(call, communicator);
  return fails ? ncclSystemError : ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
  Call call("ncclCommGetAsyncError");
  if (call.must_fail())
    return ncclSystemError;
  const bool is_lost = call.machine().is_broken() || communicator->group->has_aborted_member();
  *error = is_lost ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t /*operation*/, ncclComm_t communicator, cudaStream_t stream) {
  Call call("ncclAllReduce", __builtin_return_address(0), collective_cost());
  return start(call,
               {.communicator = communicator,
                .name = "ncclAllReduce",
                .from = from,
                .to = to,
                .count = count,
                .type = type},
               stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  Call call("ncclBroadcast", __builtin_return_address(0), collective_cost());
  return start(call,
               {.communicator = communicator,
                .name = "ncclBroadcast",
                .from = from,
                .to = to,
                .count = count,
                .type = type,
                .root = root},
               stream);
}
