#pragma once

// A transformer of eight blocks, small enough to simulate in every layout.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

inline nlohmann::ordered_json cut_transformer(const std::string& machine, std::int64_t nodes,
                                              const nlohmann::ordered_json& training) {
  return {{"name", "layout"},
          {"cluster", {{"machine", machine}, {"nodes", nodes}}},
          {"model",
           {{"family", "transformer"},
            {"style", "gpt2"},
            {"layers", 8},
            {"hidden", 1024},
            {"heads", 16},
            {"vocabulary", 8192},
            {"sequence_length", 512},
            {"attention", "fused"},
            {"precision", "bf16"}}},
          {"training", training}};
}

}  // namespace lockstep
