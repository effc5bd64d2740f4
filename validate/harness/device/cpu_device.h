#pragma once

// A CPU core as a device: OpenBLAS multiplies matrices, a loop runs the small kernels.
//
// Problem:   the whole loop of measuring and predicting must run, and be tested, where there is no GPU.
// Idea:      work is done when it is asked for, by the thread that asks; a mark is the clock. One thread, so
//            that ranks on one machine do not disturb each other more than processes must. Products of half
//            types go through fp32: slow, and the same numbers as on a GPU to a rounding of the sum's order.
// Errors:    EnvironmentError where memory is used up.

#include <memory>

#include "validate/harness/device/device.h"

namespace lockstep::harness {

std::unique_ptr<Device> make_cpu_device();

}  // namespace lockstep::harness
