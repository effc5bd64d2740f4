#pragma once

// How much of the heap is in use, and how much was at the highest: bytes that were asked for.
//
// Idea:      a program that is linked with counted_memory.cpp allocates through counters.
// Invariant: the same work counts the same on every machine, as far as its library asks for the same.

#include <cstddef>

namespace lockstep::testing {

std::size_t heap_in_use();
// Since the start, or since it was last forgotten.
std::size_t highest_heap();
void forget_highest_heap();

}  // namespace lockstep::testing
