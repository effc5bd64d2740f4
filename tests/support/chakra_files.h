#pragma once

// Rows of Chakra traces in a folder of their own.

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/load/import/chakra_file.h"
#include "sim/load/import/chakra_program.h"
#include "tests/scenario/lab.h"
#include "tests/support/scenarios.h"

namespace lockstep::testing {

class TraceFolder {
 public:
  std::string prefix() const { return folder_.path() + "/row"; }
  std::string folder() const { return folder_.path(); }
  void write(const std::string& path, std::string_view bytes) const {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  void write_rank(std::uint32_t rank, const std::vector<ChakraNode>& nodes) const {
    std::string bytes = to_bytes(ChakraMetadata{.version = "0.0.4"});
    for (const ChakraNode& node : nodes) bytes += to_bytes(node);
    write(chakra_file_of(prefix(), rank), bytes);
  }
  void write_groups(const nlohmann::ordered_json& groups) const {
    write(chakra_groups_file(prefix()), groups.dump());
  }

 private:
  Folder folder_;
};

inline ChakraNode chakra_node(std::uint64_t id, ChakraNodeType type, std::vector<std::uint64_t> after = {}) {
  ChakraNode node{.id = id, .name = fmt::format("node {}", id), .type = static_cast<std::uint32_t>(type)};
  node.data_dependencies = std::move(after);
  node.attributes.push_back({"is_cpu_op", false});
  return node;
}

inline ChakraNode chakra_kernel(std::uint64_t id, std::uint64_t micros,
                                std::vector<std::uint64_t> after = {}) {
  ChakraNode node = chakra_node(id, ChakraNodeType::compute, std::move(after));
  node.duration_micros = micros;
  return node;
}

// `type`: as et_def.proto numbers collectives.
inline ChakraNode chakra_collective(std::uint64_t id, std::int64_t type, std::int64_t bytes,
                                    std::vector<std::uint64_t> after = {}, const std::string& group = "") {
  ChakraNode node = chakra_node(id, ChakraNodeType::collective, std::move(after));
  node.attributes.push_back({"comm_type", ChakraInteger{type}});
  node.attributes.push_back({"comm_size", ChakraInteger{bytes}});
  if (!group.empty())
    node.attributes.push_back({"pg_name", group});
  return node;
}

inline ChakraNode chakra_message(std::uint64_t id, bool is_sent, std::int64_t from, std::int64_t to,
                                 std::int64_t bytes, std::vector<std::uint64_t> after = {}) {
  ChakraNode node =
      chakra_node(id, is_sent ? ChakraNodeType::send : ChakraNodeType::receive, std::move(after));
  node.attributes.push_back({"comm_src", ChakraInteger{from, true}});
  node.attributes.push_back({"comm_dst", ChakraInteger{to, true}});
  node.attributes.push_back({"comm_tag", ChakraInteger{0, true}});
  node.attributes.push_back({"comm_size", ChakraInteger{bytes}});
  return node;
}

inline nlohmann::ordered_json plan_scenario(const TraceFolder& folder, const std::string& machine,
                                            std::int64_t nodes, std::int64_t gpus) {
  return {{"cluster", {{"machine", machine}, {"nodes", nodes}, {"gpus_per_node", gpus}}},
          {"plan", {{"chakra", folder.prefix()}}}};
}

}  // namespace lockstep::testing
