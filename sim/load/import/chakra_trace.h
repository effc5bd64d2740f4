#pragma once

// One rank's trace: its nodes, and in which iteration each stands.
//
// Problem:   nodes name each other by ids of the schema's choosing, in any order.
// Idea:      each node gets a position: its iteration, and which node it is there. Files that Lockstep wrote hold several
//            iterations and number them; any other is one.
// Invariant: iterations come in their order. What is wrong is told with the file and the node, the first of it, once all
//            has been looked at.
// Cost:      the file's nodes in memory.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/load/import/chakra_file.h"
#include "sim/load/import/chakra_groups.h"

namespace lockstep {

inline constexpr std::size_t most_chakra_problems = 20;
inline constexpr std::int64_t most_chakra_bytes = std::int64_t{1} << 50;

// What a node's attribute says; nothing where it is missing or says something else.
std::optional<std::int64_t> integer_of(const ChakraValue* value);
std::string text_of(const ChakraValue* value);
std::span<const std::int64_t> list_of(const ChakraValue* value);
bool is_cpu_op(const ChakraNode& node);

class ChakraProblems {
 public:
  explicit ChakraProblems(std::string file) : file_(std::move(file)) {}

  const std::string& file() const { return file_; }
  void add(const std::string& what);
  void add(const ChakraNode& node, const std::string& what);
  void throw_if_any() const;

 private:
  std::string file_;
  std::vector<std::string> problems_;
};

class ChakraTrace {
 public:
  struct Position {
    std::uint32_t step = 0;
    std::uint32_t node = 0;
  };

  // Groups that its nodes tell are added to `groups`. Throws ConfigError where the file is damaged.
  ChakraTrace(std::string_view bytes, ChakraProblems& problems, ChakraGroups& groups);

  const std::vector<ChakraNode>& nodes() const { return nodes_; }
  Position position(std::size_t index) const { return positions_[index]; }
  // Null: no node has this id.
  const Position* find(std::uint64_t id) const;
  std::int64_t steps() const { return steps_; }
  bool is_exact() const { return is_exact_; }  // Lockstep wrote it

 private:
  void find_steps(const ChakraMetadata& metadata);
  void place_nodes(ChakraProblems& problems);

  std::vector<ChakraNode> nodes_;
  std::vector<Position> positions_;  // by node
  std::unordered_map<std::uint64_t, Position> by_id_;
  std::int64_t steps_ = 1;
  bool is_exact_ = false;
};

}  // namespace lockstep
