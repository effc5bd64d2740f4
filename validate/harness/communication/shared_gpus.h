#pragma once

// Which ranks compute on one GPU.
//
// Problem:   ranks that share a GPU take turns on it, and what is timed there is neither's time.
// Idea:      every rank says which GPU it was given, by the GPU's own name for itself; who says the same shares.

#include <string>
#include <vector>

namespace lockstep::harness {

// "ranks 0, 2 share GPU ..., ranks 1, 3 share GPU ..."; empty where none is shared. In order of rank; a rank
// without a GPU says nothing.
std::string describe_sharing(const std::vector<std::string>& gpus);

// Whether two ranks are at one place, their host and their number on it: then their launcher misled them.
bool has_doubles(std::vector<std::string> places);

}  // namespace lockstep::harness
