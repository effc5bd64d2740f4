#pragma once

// The clock a GPU runs at now.
//
// Problem:   a GPU slows down when it is hot or out of power; a measurement without its clock cannot be
//            compared. CUDA tells only what the clock may be, NVIDIA's management library tells what it is.
// Idea:      that library comes with the driver, not with CUDA: it is opened where it is found.
// Errors:    none: nothing where the library or its answer is missing.

#include <optional>

namespace lockstep::harness {

std::optional<double> multiprocessor_clock_mhz(const char* pci_bus_id);

}  // namespace lockstep::harness
