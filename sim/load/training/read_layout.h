#pragma once

// How a model is cut over ranks, and how many samples they train at a time.
//
// Problem:   five degrees, an order of dimensions, a schedule and three sizes of a batch depend on each other, on
//            the cluster and on the model; most of them are left out.
// Idea:      the degrees come first, and what is left of the ranks are copies of the model. Of micro-batch, number
//            of micro-batches and global batch the one that is missing follows from the others.
// Invariant: what is accepted can be built: degrees multiply to the ranks and divide what they cut, and a schedule
//            runs its shape.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/load/reading/load_context.h"
#include "sim/load/training/framework_presets.h"
#include "sim/run/stage_balance.h"
#include "sim/training/layout.h"

namespace lockstep {

// What `training.strategy` may name instead: the dimension that all ranks lie along, so that there is one copy of the
// model.
struct WholeDimension {
  std::string_view name;
  std::string_view degree;  // its key
  bool reduces = false;     // its ranks have gradients of the same parameters
};
const WholeDimension* find_whole_dimension(std::string_view name);
std::vector<std::string> names_of_whole_dimensions();

// Into `training.layout`, over what its framework does with options that are left out. `whole`: null where the strategy
// is named itself. Returns how stages are to be balanced, once the scenario is whole.
std::optional<StageBalance> read_layout(const JsonReader& json, const Place& place,
                                        const TrainingFacts& facts, TrainingSpec& training,
                                        const WholeDimension* whole);

struct BatchSizes {
  std::int64_t micro_batch = 1;
  std::int64_t micro_batches = 1;  // gradient_accumulation
};
BatchSizes read_batch_sizes(const JsonReader& json, const Layout& layout, const TrainingFacts& facts);

// Of what has been read: whether the schedule runs it, the strategy under it, and whether the framework has it, if it
// is named.
void check_pipeline(const JsonReader& json, const TrainingSpec& training);

// What a pipeline of fewer micro-batches than stages idles; empty: it has enough.
std::string few_micro_batches(const TrainingSpec& training);

// What a strategy sees of the cluster: the ranks that hold the same parameters.
TrainingFacts facts_of_copies(const TrainingFacts& facts, const Layout& layout);

}  // namespace lockstep
