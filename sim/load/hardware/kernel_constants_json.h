#pragma once

// The constants of an architecture's kernels as profile files state them.
//
// Idea:      one table of fields: section, key, unit, place. Reading, writing and fitting walk it, so that none
//            of them can forget a constant.
// Invariant: what is written reads back as the same constants.

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "sim/compute/kernel_constants.h"
#include "sim/load/hardware/read_hardware.h"
#include "sim/plan/kernel.h"

namespace lockstep {

enum class ConstantUnit : std::uint8_t { ratio, time, bandwidth, power };

struct KernelConstantField {
  std::string_view section;
  std::string_view key;
  ConstantUnit unit;
  // In parts per million, picoseconds, bytes a second or milliwatts.
  std::int64_t (*get)(const KernelConstants&);
  void (*set)(KernelConstants&, std::int64_t);
};

std::span<const KernelConstantField> kernel_constant_fields();

// Libraries with a section of their own where their kernels were timed; elsewhere they have "attention", any one's.
struct OwnAttention {
  AttentionLibrary library;
  std::string_view section;
  AttentionConstants KernelConstants::*constants;
};
inline constexpr std::array own_attentions{
    OwnAttention{AttentionLibrary::flash_attention_2, "flash_attention_2",
                 &KernelConstants::flash_attention_2},
    OwnAttention{AttentionLibrary::tensorrt_llm, "server_attention", &KernelConstants::server_attention}};

// What units draw, where no limit acts, and how operands lie, where no table says so: may be left out, and a
// fit leaves it as it was known.
bool shows_in_few_tables(const KernelConstantField& field);
// Of AlignmentConstants.
bool is_of_alignment(const KernelConstantField& field);

KernelConstants read_kernel_constants(const JsonReader& json, const Place& place);
nlohmann::ordered_json write_kernel_constants(const KernelConstants& constants);

// Whose constants a GPU has that states none: its architecture's, else those of the nearest that was measured
// (the last are of other makers' GPUs). Empty: a processor that is no GPU.
struct ArchitectureChoice {
  std::string name;
  bool is_own = true;  // else only the nearest
};
ArchitectureChoice architecture_of(std::int64_t compute_capability, std::string_view vendor);

}  // namespace lockstep
