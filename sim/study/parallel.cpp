#include "sim/study/parallel.h"

#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <atomic>

#include "sim/base/check.h"

namespace lockstep {

int threads_for(int wanted) {
  return wanted > 0 ? wanted : tbb::info::default_concurrency();
}

void run_in_parallel(int threads, std::size_t count, const std::function<void(std::size_t)>& task) {
  const int wanted = threads_for(threads);
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(wanted));
  tbb::task_arena arena(wanted);
  // The thread sanitizer does not see how oneTBB joins its threads; this it sees.
  std::atomic<std::size_t> done = 0;
  arena.execute([&] {
    const tbb::blocked_range<std::size_t> all(0, count, 1);
    tbb::parallel_for(
        all,
        [&](const tbb::blocked_range<std::size_t>& part) {
          for (std::size_t index = part.begin(); index != part.end(); ++index) {
            task(index);
            done.fetch_add(1, std::memory_order_release);
          }
        },
        tbb::simple_partitioner());
  });
  LOCKSTEP_CHECK(done.load(std::memory_order_acquire) == count, "all tasks have run when the arena is left");
}

}  // namespace lockstep
