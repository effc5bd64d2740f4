#include "validate/harness/communication/nccl_communicator.h"

#include <fmt/format.h>
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "validate/harness/communication/local_communicator.h"
#include "validate/harness/device/cuda_check.h"
#include "validate/harness/device/cuda_device.h"

namespace lockstep::harness {
namespace {

constexpr auto watch_period = std::chrono::milliseconds(200);

[[noreturn]] void fail(const char* call, ncclResult_t code, const std::string& details) {
  throw EnvironmentError(fmt::format("{} failed with \"{}\" ({}): NCCL_DEBUG=WARN makes NCCL tell more", call,
                                     ncclGetErrorString(code), details));
}

void check_call(ncclResult_t code, const char* call) {
  if (code != ncclSuccess)
    fail(call, code, ncclGetLastError(nullptr));
}

ncclDataType_t data_type_of(Type type) {
  switch (type) {
    case Type::fp32:
      return ncclFloat32;
    case Type::fp16:
      return ncclFloat16;
    case Type::bf16:
      return ncclBfloat16;
    case Type::int32:
      return ncclInt32;
  }
  LOCKSTEP_CHECK(false, "every type is one of NCCL's");
  return ncclFloat32;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

// NCCL reads it once, when the first communicator of the process is made.
void become_host_of_its_own(const World& world, const std::vector<std::string>& gpus) {
  const std::string& own = gpus[static_cast<std::size_t>(world.rank)];
  if (std::count(gpus.begin(), gpus.end(), own) == 1 || std::getenv("NCCL_HOSTID") != nullptr)
    return;
  setenv("NCCL_HOSTID", fmt::format("{}-rank{}", host_name(), world.rank).c_str(), 1);
  if (world.rank == 0)
    fmt::print(
        stderr,
        "lockstep_ddp: several ranks share a GPU: each counts as a host (NCCL_HOSTID) and they talk over "
        "sockets\n");
}

ncclUniqueId share_id(Rendezvous& rendezvous) {
  ncclUniqueId id;
  if (rendezvous.world().rank == 0) {
    check_call(ncclGetUniqueId(&id), "ncclGetUniqueId");
    rendezvous.set("nccl id", std::string(id.internal, sizeof(id.internal)));
    return id;
  }
  const std::string text = rendezvous.get("nccl id");
  if (text.size() != sizeof(id.internal))
    throw EnvironmentError("rank 0 shares what is no NCCL id");
  std::memcpy(id.internal, text.data(), text.size());
  return id;
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const World& world, const ncclUniqueId& id, CudaRuntime& runtime);
  ~NcclCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string library() const override;
  Ticket start_all_reduce(Tensor values) override;
  Ticket start_all_reduce_beside(Tensor values) override;
  Ticket start_broadcast(Tensor values, int root) override;
  void wait(Ticket ticket) override;
  bool has_ended(Ticket ticket) override;
  void reserve_tickets(std::int64_t count) override;
  void forget_tickets() override { events_.forget(); }
  CollectiveTimes times_of(Ticket ticket, Mark since) override;

 private:
  // Of one collective; a ticket's index is that of the first.
  static constexpr std::uint32_t events_per_collective = 2;

  ncclResult_t all_reduce(Tensor values);
  void order_after_computing();
  template <class Launch>
  Ticket start(const char* call, Launch launch);
  void watch(const std::stop_token& stop);
  void throw_if_broken();  // under the mutex

  int rank_;
  int size_;
  CudaRuntime& runtime_;
  CudaStream stream_;
  CudaEvents events_;
  CudaEvent computed_;
  int exceptions_ = std::uncaught_exceptions();
  ncclComm_t communicator_ = nullptr;
  std::mutex mutex_;  // of what follows, and of calls into NCCL
  std::condition_variable_any stopped_;
  bool is_aborted_ = false;
  std::string failure_;
  std::jthread watcher_;  // the last, so that it ends first
};

NcclCommunicator::NcclCommunicator(const World& world, const ncclUniqueId& id, CudaRuntime& runtime)
    : rank_(world.rank), size_(world.size), runtime_(runtime) {
  // Blocks until all ranks are there; should one never come, the rendezvous ends this process.
  ncclConfig_t configuration = NCCL_CONFIG_INITIALIZER;
  configuration.blocking = 1;
  check_call(ncclCommInitRankConfig(&communicator_, size_, id, rank_, &configuration),
             "ncclCommInitRankConfig");
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

NcclCommunicator::~NcclCommunicator() {
  watcher_.request_stop();
  watcher_.join();
  if (!is_aborted_ && std::uncaught_exceptions() > exceptions_)
    ncclCommAbort(communicator_);
  else if (!is_aborted_)
    ncclCommDestroy(communicator_);
}

std::string NcclCommunicator::library() const {
  int version = 0;
  check_call(ncclGetVersion(&version), "ncclGetVersion");
  return fmt::format("NCCL {}.{}.{}", version / 10'000, version / 100 % 100, version % 100);
}

void NcclCommunicator::watch(const std::stop_token& stop) {
  ignore_failure(cudaSetDevice(runtime_.device()));  // a thread begins on the first GPU
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &state);
    if (asked != ncclSuccess || (state != ncclSuccess && state != ncclInProgress)) {
      failure_ = fmt::format("NCCL lost its connections: {} ({})",
                             ncclGetErrorString(asked != ncclSuccess ? asked : state),
                             ncclGetLastError(communicator_));
      ncclCommAbort(communicator_);  // ends the kernels that wait for other ranks
      is_aborted_ = true;
      return;
    }
    stopped_.wait_for(lock, stop, watch_period, [] { return false; });
  }
}

void NcclCommunicator::throw_if_broken() {
  if (is_aborted_)
    throw EnvironmentError(failure_);
}

void NcclCommunicator::order_after_computing() {
  lockstep::harness::check_call(cudaEventRecord(computed_.get(), runtime_.stream()), "cudaEventRecord");
  lockstep::harness::check_call(cudaStreamWaitEvent(stream_.get(), computed_.get(), 0), "cudaStreamWaitEvent");
}

template <class Launch>
Ticket NcclCommunicator::start(const char* call, Launch launch) {
  const std::lock_guard lock(mutex_);
  throw_if_broken();
  const Ticket ticket{events_.record(stream_.get()) / events_per_collective};
  const ncclResult_t code = launch();
  if (code != ncclSuccess)
    fail(call, code, ncclGetLastError(communicator_));
  events_.record(stream_.get());
  return ticket;
}

ncclResult_t NcclCommunicator::all_reduce(Tensor values) {
  return ncclAllReduce(values.data, values.data, static_cast<std::size_t>(values.elements),
                       data_type_of(values.type), ncclSum, communicator_, stream_.get());
}

Ticket NcclCommunicator::start_all_reduce(Tensor values) {
  order_after_computing();
  return start_all_reduce_beside(values);
}

Ticket NcclCommunicator::start_all_reduce_beside(Tensor values) {
  return start("ncclAllReduce", [&] { return all_reduce(values); });
}

Ticket NcclCommunicator::start_broadcast(Tensor values, int root) {
  order_after_computing();
  return start("ncclBroadcast", [&] {
    return ncclBroadcast(values.data, values.data, static_cast<std::size_t>(values.elements),
                         data_type_of(values.type), root, communicator_, stream_.get());
  });
}

void NcclCommunicator::wait(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  throw_if_broken();
  const cudaEvent_t end = events_.at(ticket.index * events_per_collective + 1);
  lockstep::harness::check_call(cudaStreamWaitEvent(runtime_.stream(), end, 0), "cudaStreamWaitEvent");
}

bool NcclCommunicator::has_ended(Ticket ticket) {
  return events_.has_passed(ticket.index * events_per_collective + 1);
}

void NcclCommunicator::reserve_tickets(std::int64_t count) {
  events_.reserve(count * events_per_collective);
}

CollectiveTimes NcclCommunicator::times_of(Ticket ticket, Mark since) {
  const cudaEvent_t origin = runtime_.marks().at(since.index);
  const std::uint32_t first = ticket.index * events_per_collective;
  const CollectiveTimes times{.start = seconds_between_events(origin, events_.at(first)),
                              .end = seconds_between_events(origin, events_.at(first + 1))};
  const std::lock_guard lock(mutex_);
  throw_if_broken();
  return times;
}

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(Rendezvous& rendezvous, Device& device) {
  if (rendezvous.world().size == 1)
    return std::make_unique<LocalCommunicator>();
  CudaRuntime& runtime = runtime_of(device);
  become_host_of_its_own(rendezvous.world(), rendezvous.exchange("gpu", runtime.uuid()));
  return std::make_unique<NcclCommunicator>(rendezvous.world(), share_id(rendezvous), runtime);
}

}  // namespace lockstep::harness
