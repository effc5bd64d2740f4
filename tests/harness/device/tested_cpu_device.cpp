#include "tests/harness/device/tested_device.h"
#include "validate/harness/device/cpu_device.h"

namespace lockstep::harness {

std::unique_ptr<Device> make_tested_device() {
  return make_cpu_device();
}

}  // namespace lockstep::harness
