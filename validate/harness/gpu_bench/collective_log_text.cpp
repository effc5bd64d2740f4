#include "validate/harness/gpu_bench/collective_log_text.h"

#include <fmt/format.h>

namespace lockstep::harness {
namespace {

constexpr std::int64_t element_bytes = 4;  // fp32

bool is_of_all_ranks(const std::string& op) {
  return op == "all_gather" || op == "reduce_scatter" || op == "all_to_all";
}

std::string executable_of(const std::string& op) {
  if (op == "all_to_all")
    return "alltoall_perf";
  return op == "send_recv" ? "sendrecv_perf" : op + "_perf";
}

const char* reduction_of(const std::string& op) {
  return op == "all_reduce" || op == "reduce_scatter" ? "sum" : "none";
}

std::string line_text(const CollectiveLogHeader& header, const CollectiveLogLine& line) {
  const double algbw = static_cast<double>(line.bytes) / 1e9 / line.seconds;
  const int ranks = static_cast<int>(header.gpus.size());
  const std::int64_t parts = is_of_all_ranks(header.op) ? ranks : 1;
  return fmt::format("{:12} {:12} {:>9} {:>7} {:>6} {:9.2f} {:7.2f} {:7.2f} {:6}\n", line.bytes,
                     line.bytes / element_bytes / parts, "float", reduction_of(header.op),
                     header.op == "broadcast" ? "0" : "-1", line.seconds * 1e6, algbw,
                     algbw * bus_factor(header.op, ranks), line.wrong);
}

}  // namespace

const std::vector<std::string>& collective_names() {
  static const std::vector<std::string> names = {"all_reduce", "all_gather", "reduce_scatter",
                                                 "broadcast",  "all_to_all", "send_recv"};
  return names;
}

double bus_factor(const std::string& op, int ranks) {
  const double n = ranks;
  if (op == "all_reduce")
    return 2 * (n - 1) / n;
  return is_of_all_ranks(op) ? (n - 1) / n : 1;
}

std::int64_t whole_bytes(const std::string& op, std::int64_t bytes, int ranks) {
  const std::int64_t unit = element_bytes * (is_of_all_ranks(op) ? ranks : 1);
  return bytes / unit * unit;
}

std::string collective_log_text(const CollectiveLogHeader& header,
                                const std::vector<CollectiveLogLine>& lines) {
  std::string text =
      fmt::format("# {} by lockstep_gpu_bench, one process, {} GPUs\nNCCL version {}\n# Using devices\n",
                  executable_of(header.op), header.gpus.size(), header.library_version);
  for (std::size_t rank = 0; rank < header.gpus.size(); ++rank)
    text += fmt::format("#  Rank {:2} Group  0 Pid {:6} on  localhost device {:2} [0x00] {}\n", rank, 1, rank,
                        header.gpus[rank]);
  text += "#\n#       size         count      type   redop    root      time   algbw   busbw #wrong\n";
  text += "#        (B)    (elements)                                (us)  (GB/s)  (GB/s)       \n";
  for (const CollectiveLogLine& line : lines) text += line_text(header, line);
  return text;
}

}  // namespace lockstep::harness
