#pragma once

// What a training strategy lets the user choose, with the names and defaults of the frameworks themselves.
//
// Idea:      plain data that strategies read; which default belongs to which framework and version is decided
//            at load.

#include <cstdint>
#include <optional>
#include <string>

#include "sim/plan/fidelity.h"
#include "sim/plan/library.h"

namespace lockstep {

enum class Optimizer : std::uint8_t { none, sgd, momentum, adam, adamw, lamb };
enum class Compression : std::uint8_t { none, fp16, bf16 };

struct TrainingSpec {
  std::string strategy = "ddp";  // an entry of Registry<Strategy>
  std::string framework = "pytorch_ddp";
  std::string framework_version = "2.8";
  double bucket_cap_mb = 25;
  double first_bucket_mb = 1;
  bool gradient_as_bucket_view = false;
  bool static_graph = false;
  bool find_unused_parameters = false;
  bool broadcast_buffers = true;
  std::int64_t gradient_accumulation = 1;
  Optimizer optimizer = Optimizer::sgd;
  Compression compression = Compression::none;
};

struct CommunicationSpec {
  LibraryKind library = LibraryKind::nccl;
  std::int64_t library_version = 0;  // NCCL_VERSION_CODE; 0: the calibration's, else the newest known
  std::string algorithm = "auto";
  std::string protocol = "auto";
  bool overlap = true;
  std::int64_t collectives_in_flight = 1;
  std::optional<std::int64_t> channels;
};

}  // namespace lockstep
