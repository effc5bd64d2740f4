#pragma once

// Collectives of ranks that are threads: who takes part, what was called, and the sums.
//
// Problem:   ranks that call different collectives hang on a GPU, without a word.
// Idea:      the nth call of every rank of a group is one collective. Its parts are compared as they come; it
//            may run when it is the first item of a stream on every rank.
// Invariant: a sum is in the order of the ranks, rounded to its type after each: all ranks hold equal bits.
// Errors:    calls that differ are reported with both sides.

#include <nccl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "validate/harness/stand_in/device_memory.h"

namespace lockstep::harness::stand_in {

struct CollectiveGroup;

// One rank's part of one collective.
struct CollectiveCall {
  ncclComm_t communicator = nullptr;
  std::uint32_t number = 0;  // of the calls of its communicator
  const char* name = "";
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclFloat32;
  int root = -1;  // -1: a sum for all
  cudaStream_t stream = nullptr;

  std::int64_t bytes() const;
};

struct CollectiveGroup {
  std::string id;
  std::vector<ncclComm_t> members;                                // by rank; null: not yet there
  std::vector<std::vector<std::optional<CollectiveCall>>> calls;  // by number, then rank
  std::uint32_t done = 0;                                         // numbers below have run
  bool is_whole() const;
  bool has_aborted_member() const;
};

class Collectives {
 public:
  // A number that is the group's alone.
  ncclUniqueId new_id();
  // Its members may still be coming. Null where the rank is taken or the group has another size.
  ncclComm_t join(const ncclUniqueId& id, int size, int rank);
  // What is wrong with it beside what other ranks called, else nothing; its number is set.
  std::optional<std::string> add(CollectiveCall& call);
  bool is_first_on_every_rank(const CollectiveCall& call) const;
  // By rank; of a collective that every rank has called.
  std::vector<CollectiveCall> parts_of(const CollectiveCall& call) const;
  // In host memory; afterwards the group waits for its next one.
  static void compute(const std::vector<CollectiveCall>& parts);
  static void finish(const CollectiveCall& call);

 private:
  std::vector<std::unique_ptr<CollectiveGroup>> groups_;
  std::vector<std::unique_ptr<ncclComm>> communicators_;
  int ids_ = 0;
};

}  // namespace lockstep::harness::stand_in

struct ncclComm {
  lockstep::harness::stand_in::CollectiveGroup* group = nullptr;
  int rank = 0;
  std::uint32_t calls = 0;
  bool is_live = true;
  bool is_aborted = false;
};
