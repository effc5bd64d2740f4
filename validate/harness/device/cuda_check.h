#pragma once

// Every call into CUDA's libraries, checked.
//
// Problem:   these libraries return codes, and an unread one surfaces much later as a wrong number or a hang.
// Idea:      each call is wrapped in `check_call(code, "its name")`, which says what failed, with which code,
//            and what to do about it.
// Errors:    EnvironmentError: the machine's fault, or that of what runs beside us on it.

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

namespace lockstep::harness {

void check_call(cudaError_t code, const char* call);
void check_call(cublasStatus_t code, const char* call);

// After <<<...>>>, which returns nothing.
void check_launch();

// For destructors, which must not throw: a failure there has been met before, or the process is ending.
inline void ignore_failure(cudaError_t /*code*/) noexcept {}

}  // namespace lockstep::harness
