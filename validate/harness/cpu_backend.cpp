#include "validate/harness/backend.h"
#include "validate/harness/communication/gloo_communicator.h"
#include "validate/harness/communication/local_communicator.h"
#include "validate/harness/device/cpu_device.h"

namespace lockstep::harness {
namespace {

std::unique_ptr<Communicator> make_communicator(Rendezvous& rendezvous, Device& device) {
  if (rendezvous.world().size == 1)
    return std::make_unique<LocalCommunicator>();
  return std::make_unique<GlooCommunicator>(rendezvous, device);
}

}  // namespace

const Backend& linked_backend() {
  static const Backend backend{.name = "cpu",
                               .pins_ranks = true,
                               .make_device = [](const World&) { return make_cpu_device(); },
                               .make_communicator = make_communicator,
                               .gpu_of = [](Device&) { return std::string(); }};
  return backend;
}

}  // namespace lockstep::harness
