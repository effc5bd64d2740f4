#pragma once

// What one rank takes part in during an iteration, collective by collective.
//
// Problem:   a step of a sharded model is hundreds of gathers and reductions; buckets of gradients are a
//            third of its bytes, and a table of all of them is a wall.
// Idea:      one entry for each collective, as the strategy wrote it; alike ones, of whatever unit, become
//            one row for people.
// Invariant: nothing that is exchanged is missing: `sent` of all entries adds up to what the rank sends.
// Cost:      linear in the collectives.

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/training/strategy.h"

namespace lockstep {

struct CollectiveReport {
  std::string name;  // "gather unit 1"
  CollectiveOp op = CollectiveOp::all_reduce;
  Payload payload = Payload::gradients;
  std::string dimension = "data";  // of the layout
  std::uint32_t ranks = 1;  // of its communicator
  std::uint32_t tensors = 0;
  Bytes bytes;                                // as nccl-tests counts them, before compression
  Bytes sent;                                 // by the rank
  Duration ready = {}, start = {}, end = {};  // from the start of the iteration
  Duration exposed = {};                      // the part of it in which the compute lane stood still
  std::string algorithm;
  std::string protocol;
  Bandwidth busbw = {};
  bool is_received = false;  // from another stage of a pipeline
};

// Of a mean rank: on rings every rank sends as much as each link of its ring carries.
Bytes sent_by_rank(const Communication& communication);

// Collectives that differ in name, size and time only.
struct CollectiveGroup {
  const CollectiveReport* first = nullptr;
  const CollectiveReport* last = nullptr;  // to come with a new name
  std::size_t count = 0;
  Bytes bytes = {}, sent = {};
  Duration active = {}, exposed = {};
};
// By their first; valid while `collectives` lives.
std::vector<CollectiveGroup> grouped_alike(const std::vector<CollectiveReport>& collectives);

// "gather unit 1 ... unit 32"
std::string name_of(const CollectiveGroup& group);
// "gradients", "parameters" or "other".
std::string_view name_of(Payload payload);

}  // namespace lockstep
