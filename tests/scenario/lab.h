#pragma once

// A small scenario that every test may bend: four CPU hosts on 1 Gbit/s links with two layers of stated
// times.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "sim/base/error.h"
#include "sim/load/load.h"

namespace lockstep::testing {

inline const std::string lab_text = R"({
  "name": "lab",
  "cluster": {
    "nodes": 4,
    "machine": { "name": "lab", "source": "ours", "gpu": "cpu", "gpus": 1, "gpu_links": {"kind": "none"},
                 "nics": { "count": 1, "link": { "bandwidth": "0.124 GB/s", "latency": "100 us" } },
                 "library": "gloo" }
  },
  "model": { "layers": [
    { "name": "a", "parameters": [1000, 10], "forward_time": "8.3 ms", "backward_time": "20 ms" },
    { "name": "b", "parameters": [500], "forward_time": "1 ms", "backward_time": "2 ms" } ] },
  "training": { "strategy": "ddp" }
})";

// The contract's example.
inline const std::string resnet_text = R"({
  "name": "ResNet-50 DDP on two DGX A100",
  "cluster":  { "machine": "dgx_a100_40gb", "nodes": 2, "gpus_per_node": 8 },
  "model":    { "name": "resnet50", "batch_per_gpu": 256, "precision": "amp_fp16" },
  "training": { "strategy": "ddp", "bucket_cap_mb": 25, "gradient_accumulation": 1, "optimizer": "sgd" },
  "communication": { "library": "nccl", "algorithm": "auto", "protocol": "auto", "overlap": true },
  "compute":  { "single_gpu_iteration": "103.6 ms" }
})";

inline LoadedScenario load_lab(Overrides overrides = {}) {
  return load({.text = lab_text, .overrides = std::move(overrides)});
}

inline LoadedScenario load_resnet(Overrides overrides = {}) {
  return load({.text = resnet_text, .overrides = std::move(overrides)});
}

// Everything that is wrong with a request; empty when it loads.
inline std::string problems_of(const LoadRequest& request) {
  try {
    load(request);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

inline std::string problems_of_lab(Overrides overrides) {
  return problems_of({.text = lab_text, .overrides = std::move(overrides)});
}

inline std::string problems_of_resnet(Overrides overrides) {
  return problems_of({.text = resnet_text, .overrides = std::move(overrides)});
}

// A folder of its own for one test, removed with it.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "lockstep_test_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }

 private:
  std::string path_;
};

}  // namespace lockstep::testing
