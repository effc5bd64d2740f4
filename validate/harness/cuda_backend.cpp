#include "validate/harness/backend.h"
#include "validate/harness/communication/nccl_communicator.h"
#include "validate/harness/device/cuda_device.h"

namespace lockstep::harness {
namespace {

// More ranks than GPUs share them in turn.
std::unique_ptr<Device> make_device(const World& world) {
  return make_cuda_device(world.local_rank % count_cuda_devices());
}

constexpr Backend cuda_backend{
    .name = "cuda", .make_device = make_device, .make_communicator = make_nccl_communicator};

}  // namespace

const Backend& linked_backend() {
  return cuda_backend;
}

}  // namespace lockstep::harness
