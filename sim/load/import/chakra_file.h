#pragma once

// A Chakra execution trace of one rank, as it lies in a file: records that are read and written one by one.
//
// Problem:   a trace is a row of protobuf messages, each after its length; the schema knows more kinds of values than
//            anybody needs, and a file may be cut off anywhere.
// Idea:      the few fields that traces are made of, by their published numbers, over protozero, which needs neither
//            generated code nor a library at run time. All integers are one kind of value here, and so are all texts.
// Invariant: what is written is read back the same. Every failure of a damaged file is a ConfigError with the file and the
//            number of the record.
// Cost:      linear in the file, which is held once.
// Reference: mlcommons/chakra, schema/protobuf/et_def.proto (GlobalMetadata, Node, AttributeProto) and
//            src/third_party/utils/protolib.py (a varint before each message).

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep {

enum class ChakraNodeType : std::uint8_t {
  invalid,
  metadata,
  memory_load,
  memory_store,
  compute,
  send,
  receive,
  collective,
  storage,
  batch,
  checkpoint
};

// As et_def.proto spells them, in the order of their numbers.
inline constexpr std::string_view chakra_node_types[] = {
    "INVALID_NODE",   "METADATA_NODE",  "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE",      "COMM_SEND_NODE",
    "COMM_RECV_NODE", "COMM_COLL_NODE", "STORAGE_NODE",  "BATCH_NODE",     "CHECKPOINT_NODE"};
inline constexpr std::string_view chakra_collectives[] = {
    "ALL_REDUCE", "REDUCE",         "ALL_GATHER",           "GATHER", "SCATTER", "BROADCAST",
    "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER"};

// `narrow`: an integer that readers expect in 32 bits.
struct ChakraInteger {
  std::int64_t value = 0;
  bool is_narrow = false;
  bool operator==(const ChakraInteger&) const = default;
};

using ChakraValue =
    std::variant<std::monostate, bool, ChakraInteger, double, std::string, std::vector<std::int64_t>>;

struct ChakraAttribute {
  std::string name;
  ChakraValue value = {};  // monostate: a list of a kind that nobody asks for
  bool operator==(const ChakraAttribute&) const = default;
};

struct ChakraMetadata {
  std::string version;
  std::vector<ChakraAttribute> attributes = {};
};

struct ChakraNode {
  std::uint64_t id = 0;
  std::string name = {};
  std::uint32_t type = 0;
  std::vector<std::uint64_t> control_dependencies = {};
  std::vector<std::uint64_t> data_dependencies = {};
  std::uint64_t start_micros = 0;
  std::uint64_t duration_micros = 0;
  std::string input_values = {};
  std::vector<ChakraAttribute> attributes = {};

  const ChakraValue* find(std::string_view attribute) const;
  void add(std::string_view attribute, ChakraValue value);
};

// What Lockstep writes beside the schema's own attributes, so that its plans come back exactly.
namespace chakra_key {
inline constexpr std::string_view steps =
    "lockstep.steps";  // of the file: so many iterations, one after another
inline constexpr std::string_view step = "lockstep.step";
inline constexpr std::string_view kind = "lockstep.kind";          // kernel, delay, join
inline constexpr std::string_view category = "lockstep.category";  // what its time is charged to
inline constexpr std::string_view lane = "lockstep.lane";          // "communication 1", or "own"
inline constexpr std::string_view picoseconds = "lockstep.duration_ps";
inline constexpr std::string_view bound = "lockstep.bound";            // KernelBound: multiplying, moving
inline constexpr std::string_view collective = "lockstep.collective";  // that the schema has no type for
inline constexpr std::string_view bytes = "lockstep.bytes";            // as nccl-tests counts them
inline constexpr std::string_view algorithm = "lockstep.algorithm";    // that a strategy insists on
inline constexpr std::string_view after = "lockstep.after";            // nodes of other ranks: rank, id, ...
inline constexpr std::string_view previous = "lockstep.previous";      // likewise, of the repetition before
}  // namespace chakra_key

// In the order of Category.
inline constexpr std::string_view chakra_categories[] = {
    "forward",       "backward",        "recompute",   "optimizer",  "gradient_copy", "host_overhead",
    "communication", "pipeline_bubble", "input_stall", "checkpoint", "other"};

std::string to_bytes(const ChakraMetadata& metadata);
std::string to_bytes(const ChakraNode& node);

// Whether a file begins as traces do: a message of one short text, the version.
bool begins_as_chakra(std::string_view beginning);

// Calls `visit` for every node. Throws ConfigError.
ChakraMetadata read_chakra(std::string_view bytes, const std::string& file_name,
                           const std::function<void(ChakraNode)>& visit);

}  // namespace lockstep
