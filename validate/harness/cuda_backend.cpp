#include "sim/base/error.h"
#include "validate/harness/backend.h"
#include "validate/harness/communication/local_communicator.h"
#include "validate/harness/device/cuda_device.h"

#ifdef LOCKSTEP_HAS_NCCL
#include "validate/harness/communication/nccl_communicator.h"
#endif

namespace lockstep::harness {
namespace {

// More ranks than GPUs share them in turn.
std::unique_ptr<Device> make_device(const World& world) {
  return make_cuda_device(world.local_rank % count_cuda_devices());
}

std::unique_ptr<Communicator> make_communicator(Rendezvous& rendezvous, [[maybe_unused]] Device& device) {
  if (rendezvous.world().size == 1)
    return std::make_unique<LocalCommunicator>();
#ifdef LOCKSTEP_HAS_NCCL
  return make_nccl_communicator(rendezvous, device);
#else
  throw EnvironmentError("several ranks need NCCL, which was not there when this program was built");
#endif
}

std::string gpu_of(Device& device) {
  return runtime_of(device).uuid();
}

constexpr Backend cuda_backend{.name = "cuda",
                               .pins_ranks = false,
                               .make_device = make_device,
                               .make_communicator = make_communicator,
                               .gpu_of = gpu_of};

}  // namespace

const Backend& linked_backend() {
  return cuda_backend;
}

}  // namespace lockstep::harness
