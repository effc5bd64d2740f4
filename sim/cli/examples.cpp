#include "sim/cli/examples.h"

#include <map>
#include <vector>

namespace lockstep {
namespace {

using Lines = std::vector<std::string>;

const std::map<std::string, Lines>& examples() {
  static const std::map<std::string, Lines> all{
      {"predict",
       {"lockstep predict scenarios/resnet50_ddp_2x8_a100.json",
        "lockstep predict scenarios/resnet50_ddp_2x8_a100.json --set cluster.nodes=4 --json"}},
      {"explain",
       {"lockstep explain scenarios/resnet50_ddp_2x8_a100.json --what-if cluster.nodes=8",
        "lockstep explain scenarios/single_gpu_resnet50.json --kernels"}},
      {"check", {"lockstep check scenarios/fsdp_llama2_7b.json"}},
      {"collective",
       {"lockstep collective all_reduce --machine dgx_a100_80gb --nodes 2 -b 1M -e 1G",
        "lockstep collective all_gather --machine dgx_h100 --json"}},
      {"sweep",
       {"lockstep sweep scenarios/resnet50_ddp_2x8_a100.json --vary training.bucket_cap_mb=1:100:x10 -o "
        "caps.csv"}},
      {"compare",
       {"lockstep compare scenarios/resnet50_ddp_2x8_a100.json --set cluster.nodes=4 --set "
        "training.bucket_cap_mb=50",
        "lockstep compare scenarios/fsdp_llama2_7b.json scenarios/zero3_llama2_7b.json"}},
      {"layouts", {"lockstep layouts scenarios/llama2_13b_dp8_tp8.json --top 3"}},
      {"plan", {"lockstep plan scenarios/plans/resnet50_rented.json"}},
      {"validate", {"lockstep validate validate/measurements/single_gpu_steps.json"}},
      {"calibrate",
       {"lockstep calibrate --machine cpu_gloo validate/measurements/harness -o mine.json",
        "all_reduce_perf -b 8 -e 8G -f 2 -g 8 | lockstep calibrate --machine dgx_a100_40gb - -o mine.json"}},
      {"import",
       {"lockstep import hf_config scenarios/import/llama3_8b_config.json -o llama3_8b.json",
        "lockstep import hf_config scenarios/import/llama3_8b_config.json --explain"}},
      {"list", {"lockstep list", "lockstep list machines"}},
      {"show", {"lockstep show machine dgx_h100", "lockstep show model resnet50"}},
      {"schema", {"lockstep schema scenario"}},
      {"completion", {"source <(lockstep completion bash)"}},
      {"manual", {"lockstep manual predict"}}};
  return all;
}

}  // namespace

std::string examples_of(const std::string& verb) {
  const auto found = examples().find(verb);
  if (found == examples().end())
    return "";
  std::string text = found->second.size() == 1 ? "Example:" : "Examples:";
  for (const std::string& line : found->second) text += "\n  " + line;
  return text;
}

}  // namespace lockstep
