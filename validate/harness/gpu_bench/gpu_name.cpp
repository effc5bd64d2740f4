#include "validate/harness/gpu_bench/gpu_name.h"

#include <algorithm>
#include <cctype>

namespace lockstep::harness {
namespace {

constexpr std::string_view vendor = "NVIDIA ";

std::string_view without_vendor(std::string_view name) {
  return name.starts_with(vendor) ? name.substr(vendor.size()) : name;
}

// One underscore for each run of what is neither letter nor digit.
std::string as_identifier(std::string_view name) {
  std::string text;
  for (const char letter : name) {
    const auto code = static_cast<unsigned char>(letter);
    if (std::isalnum(code) != 0)
      text += static_cast<char>(std::tolower(code));
    else if (!text.empty() && text.back() != '_')
      text += '_';
  }
  while (!text.empty() && text.back() == '_') text.pop_back();
  return text.empty() ? "unknown_gpu" : text;
}

}  // namespace

// From memory of nvidia-smi's answers.
const std::vector<std::pair<std::string_view, std::string_view>>& known_gpu_names() {
  static const std::vector<std::pair<std::string_view, std::string_view>> names = {
      {"H100 80GB HBM3", "h100_sxm_80gb"},
      {"H100 PCIe", "h100_pcie_80gb"},
      {"H200", "h200_sxm"},
      {"H800", "h800_sxm"},
      {"GH200 480GB", "gh200_96gb"},
      {"B200", "b200"},
      {"GB200", "gb200"},
      {"A100-SXM4-80GB", "a100_sxm_80gb"},
      {"A100-SXM4-40GB", "a100_sxm_40gb"},
      {"A100 80GB PCIe", "a100_pcie_80gb"},
      {"A100-PCIE-40GB", "a100_pcie_40gb"},
      {"A10", "a10"},
      {"L4", "l4"},
      {"L40S", "l40s"},
      {"Tesla T4", "t4"},
      {"Tesla V100-SXM2-16GB", "v100_sxm2_16gb"},
      {"Tesla V100-SXM2-32GB", "v100_sxm2_32gb"},
      {"Tesla V100-SXM3-32GB", "v100_sxm3_32gb"},
      {"Tesla P100-PCIE-16GB", "p100_pcie_16gb"},
      {"Tesla P100-SXM2-16GB", "p100_sxm2_16gb"},
      {"Tesla K80", "k80"},
      {"GeForce RTX 2080 Ti", "rtx2080ti"},
      {"GeForce RTX 3090", "rtx3090"},
      {"GeForce RTX 4090", "rtx4090"},
      {"GeForce RTX 5090", "rtx5090"}};
  return names;
}

std::string profile_name_of(std::string_view cuda_name) {
  const std::string_view name = without_vendor(cuda_name);
  for (const auto& [known, profile] : known_gpu_names())
    if (name == known)
      return std::string(profile);
  return as_identifier(name);
}

}  // namespace lockstep::harness
