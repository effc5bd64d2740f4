#include "sim/cli/statistics.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include "sim/cli/output.h"
#include "sim/report/text_table.h"

namespace lockstep {

void print_statistics(const Stopwatch& since_start, std::uint64_t events, double simulating_seconds) {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  const double rate = simulating_seconds > 0 ? static_cast<double>(events) / simulating_seconds : 0;
  TextTable table({Align::left, Align::left});
  table.add_row({"wall time", fmt::format("{:.1f} ms", since_start.seconds() * 1e3)});
  table.add_row({"one simulation", fmt::format("{} events in {:.1f} ms ({:.1f} M events/s)",
                                               grouped(static_cast<std::int64_t>(events)),
                                               simulating_seconds * 1e3, rate / 1e6)});
  table.add_row({"peak memory", fmt::format("{:.1f} MiB", static_cast<double>(usage.ru_maxrss) / 1024)});
  print_diagnostic(table.text(0));
}

}  // namespace lockstep
