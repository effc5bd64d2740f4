#pragma once

// The device that the tests of kernels run on.
//
// Idea:      one set of tests for every executor: each test program says which device it means.

#include <memory>

#include "validate/harness/device/device.h"

namespace lockstep::harness {

std::unique_ptr<Device> make_tested_device();

}  // namespace lockstep::harness
