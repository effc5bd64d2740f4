#include "sim/training/unit_shards.h"

#include "sim/training/step_writer.h"

namespace lockstep {

bool reshards_in_groups(const ShardedOptions& options) {
  return options.reshard_group != 1 && options.reshard_group != options.shard_group;
}

MeshGroups sharding_groups(const TrainingSpec& training, std::uint32_t ranks) {
  const auto shard = static_cast<std::uint32_t>(training.sharded.shard_group);
  const bool reshards = reshards_in_groups(training.sharded);
  // A layout whose copies fill no nodes is refused (compatibility.h), for which it needs a mesh.
  if ((shard == ranks && !reshards) || ranks % shard != 0)
    return {};
  const std::uint32_t reshard = reshards ? static_cast<std::uint32_t>(training.sharded.reshard_group) : shard;
  MeshGroups wanted{
      .mesh = Mesh({{"reshard", reshard}, {"shard", shard / reshard}, {"replica", ranks / shard}}),
      .sets = {{.name = "shard", .along = {"reshard", "shard"}}}};
  if (shard < ranks)
    wanted.sets.push_back({.name = "replica", .along = {"replica"}});
  if (reshards)
    wanted.sets.push_back({.name = "reshard", .along = {"reshard"}});
  return wanted;
}

UnitShards::UnitShards(const StrategyContext& context)
    : context_(context),
      options_(context.job.training.sharded),
      holders_(context.subgroup("shard") != nullptr ? *context.subgroup("shard") : context.group),
      replicas_(context.subgroup("replica")),
      reshards_(context.subgroup("reshard")) {}

std::int64_t UnitShards::shard_elements(const Unit& unit) const {
  return divided_up(unit.elements, options_.shard_group);
}

Bytes UnitShards::shard(const Unit& unit, Precision precision) const {
  return Bytes{shard_elements(unit) * parameter_bytes(precision)};
}

Bytes UnitShards::whole(const Unit& unit, Precision precision) const {
  return shard(unit, precision) * options_.shard_group;
}

Bytes UnitShards::between_passes(const Unit& unit) const {
  return Bytes{whole(unit, options_.param_dtype).count() / options_.reshard_group};
}

std::vector<OpId> UnitShards::cast(std::vector<OpId> ready, const Unit& unit, Precision precision) const {
  const std::int64_t kept_bytes = weight_bytes(context_.job);
  if (parameter_bytes(precision) == kept_bytes)
    return ready;
  const std::int64_t both_ways = shard_elements(unit) * (parameter_bytes(precision) + kept_bytes);
  context_.writer.section("cast " + unit.name, Category::gradient_copy);
  return write_side_kernels(context_, copy_work(1, Bytes{both_ways / 2}), ready);
}

}  // namespace lockstep
