#pragma once

// Who shares what with whom: the mesh of a scenario's ranks, and the groups that collectives run in.
//
// Problem:   a strategy asks for groups of the ranks whose gradients it reduces; a layout adds those that share
//            layers, sequences, experts and copies.
// Idea:      one mesh with an axis for each dimension, in the order of the layout's placement. Where a strategy
//            cuts its own ranks up, its axes stand where the data dimension's would. Experts are dealt along the
//            data dimension: their axis is its inner part.
// Invariant: the first set of a cut model is "data", the ranks that hold the same parameters; of sets of single
//            ranks none but that. Without a layout the groups are the strategy's alone.

#include <cstdint>
#include <vector>

#include "sim/plan/group.h"
#include "sim/scenario/scenario.h"

namespace lockstep {

MeshGroups groups_wanted(const Scenario& scenario);

// By rank: its stage in the pipeline.
std::vector<std::uint32_t> stages_of_ranks(const Scenario& scenario);

}  // namespace lockstep
