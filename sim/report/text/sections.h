#pragma once

// The sections of a report's text.
//
// Idea:      each is a function of the part of the report that it shows, heading included, and knows nothing of
//            the others; what the report is whole for (the iteration it divides by) it is given.
// Invariant: empty where there is nothing to show.

#include <string>
#include <vector>

#include "sim/report/report.h"
#include "sim/report/text/text_style.h"

namespace lockstep {

// Iteration time, throughput, efficiency, and what disturbs them.
std::string headline_text(const Report& report, const LoadedScenario& scenario, const TextStyle& style);
std::string breakdown_text(const Report& report, const TextStyle& style);
std::string buckets_text(const std::vector<BucketReport>& buckets, const TextStyle& style);
// Where more is exchanged than the buckets.
std::string collectives_text(const CommunicationReport& communication, const TextStyle& style);
std::string dimensions_text(const CommunicationReport& communication, Duration iteration,
                            const TextStyle& style);
std::string communication_text(const CommunicationReport& communication, Duration iteration,
                               const TextStyle& style);
std::string asynchrony_text(const AsynchronyReport& asynchrony, const TextStyle& style);
// And what would make it fit.
std::string memory_text(const MemoryReport& memory, const TextStyle& style);
std::string imbalance_text(const Imbalance& imbalance);
std::string input_text(const InputReport& input, const TextStyle& style);
std::string goodput_text(const Goodput& goodput, const TextStyle& style);
std::string critical_path_text(const std::vector<PathItem>& path, const TextStyle& style);
std::string warnings_text(const std::vector<std::string>& warnings, const TextStyle& style);

}  // namespace lockstep
