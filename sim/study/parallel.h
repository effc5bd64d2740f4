#pragma once

// Tasks that know nothing of each other, on several cores.
//
// Problem:   sweeps and cross-validations run thousands of simulations; one may be a thousand times as dear as
//            the next.
// Idea:      oneTBB's arena takes one task at a time for each thread, so that none waits behind a dear one.
// Invariant: when it returns every task has run, and what it wrote can be read. The first exception of a task
//            is thrown, once no task runs any more.
// Cost:      about a microsecond a task.
// Reference: oneTBB, parallel_for and task_arena.

#include <cstddef>
#include <functional>

namespace lockstep {

// What 0 stands for: one for each core that the program may use.
int threads_for(int wanted);

// task(0) to task(count - 1), in any order, on so many threads; 0: one for each core.
void run_in_parallel(int threads, std::size_t count, const std::function<void(std::size_t)>& task);

}  // namespace lockstep
