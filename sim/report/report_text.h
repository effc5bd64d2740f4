#pragma once

// A report as a person reads it: the answer first, then where the time goes, then why.
//
// Invariant: at most 80 columns wide except where a name or a warning is longer; the same bytes for the same
//            report; colour is decoration only.

#include <string>

#include "sim/report/report.h"
#include "sim/report/text/text_style.h"

namespace lockstep {

std::string to_text(const Report& report, const LoadedScenario& scenario, const TextStyle& style = {});

// One row for all collectives that are alike.
std::string to_text(const std::vector<CollectiveGroup>& groups, std::size_t indent);

// "ddp of resnet50 on 16 GPUs: 2 nodes of 8 in dgx_a100_40gb", in one line.
std::string summary_of(const LoadedScenario& scenario);

}  // namespace lockstep
