#pragma once

// Marks what runs on the host and, compiled by nvcc, on the GPU too.
//
// A macro because the attribute is no part of C++: other compilers must not see it.
#ifdef __CUDACC__
#define LOCKSTEP_DEVICE_FUNCTION __host__ __device__
#else
#define LOCKSTEP_DEVICE_FUNCTION
#endif
