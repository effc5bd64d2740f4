#include "sim/study/bench/collective_account.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/median.h"
#include "sim/base/quantity_text.h"
#include "sim/load/hardware/machine_parts.h"
#include "sim/report/text_table.h"

namespace lockstep {
namespace {

using nlohmann::ordered_json;

void forget_launches(Calibration& calibration) {
  calibration.collective_launch = Duration::zero();
  calibration.channel_start = Duration::zero();
  calibration.shared_channel_start = Duration::zero();
  calibration.peer.start = Duration::zero();
  for (ProtocolCost& protocol : calibration.protocols) protocol.launch = Duration::zero();
  for (AlgorithmCost& algorithm : calibration.algorithms) algorithm.launch = Duration::zero();
}

void forget_steps(Calibration& calibration, bool between_nodes) {
  for (ProtocolCost& protocol : calibration.protocols)
    std::erase_if(protocol.step,
                  [&](const auto& step) { return (step.first == LinkClass::network) == between_nodes; });
  if (between_nodes)
    calibration.message_gap = Duration::zero();
}

struct Removal {
  const char* what;
  void (*apply)(Calibration& calibration);
};

// From what comes first in a call to what comes last.
constexpr std::array removals{
    Removal{"host: waiting for its next launch", [](Calibration& c) { c.host_launch = Duration::zero(); }},
    Removal{"launch: the kernel, its channels, its peers", forget_launches},
    Removal{"steps over links in a node", [](Calibration& c) { forget_steps(c, false); }},
    Removal{"steps between nodes", [](Calibration& c) { forget_steps(c, true); }},
    Removal{"channels that copy: starting slowly, chunks in hand, a rank's own part", [](Calibration& c) {
              c.peer.channel_bandwidth.reset();
              c.own_copy_channel_bandwidth.reset();
            }}};

std::vector<AccountPiece> pieces_of(const Scenario& scenario, const CollectiveQuery& query,
                                    const CollectiveRow& row) {
  Scenario stripped = scenario;
  stripped.communication.algorithm = row.algorithm;
  stripped.communication.protocol = row.protocol;
  std::vector<AccountPiece> pieces;
  Duration left = row.time;
  for (const Removal& removal : removals) {
    removal.apply(stripped.cluster.calibration);
    const Duration without = std::min(CollectiveBench(stripped).predict(query.op, query.bytes).time, left);
    pieces.push_back({removal.what, left - without});
    left = without;
  }
  pieces.push_back({"bytes and wires", left});
  return pieces;
}

double typical_spread(const PartProfile& part) {
  std::vector<double> spreads;
  for (const auto& [key, constant] : part.constants) spreads.push_back(constant.spread);
  return spreads.empty() ? 0 : median(std::move(spreads));
}

void add_parts(const Scenario& scenario, const ProfileStore& store, CollectiveAccount& account) {
  if (scenario.communication.library == LibraryKind::gloo)
    return;
  LoadContext context{.store = store, .folder = ""};
  MachineParts parts =
      open_parts(scenario.cluster.machine, scenario.cluster.gpu.compute_capability, {context, ""});
  for (const MachinePart part : machine_parts) {
    const PartProfile& profile = parts.profiles[static_cast<std::size_t>(part)];
    account.parts.push_back({.part = std::string(name_of(part)),
                             .name = profile.name,
                             .tables = profile.tables,
                             .machines = profile.machines,
                             .spread = typical_spread(profile)});
  }
  account.remarks = std::move(parts.remarks);
}

double microseconds(Duration time) {
  return time.in_seconds() * 1e6;
}

}  // namespace

CollectiveAccount account_of(const Scenario& scenario, const CollectiveQuery& query,
                             const ProfileStore& store) {
  CollectiveAccount account{.row = CollectiveBench(scenario).predict(query.op, query.bytes),
                            .pieces = {},
                            .parts = {},
                            .remarks = {},
                            .source = scenario.cluster.calibration.source};
  account.pieces = pieces_of(scenario, query, account.row);
  add_parts(scenario, store, account);
  return account;
}

std::string to_text(const CollectiveAccount& account) {
  const CollectiveRow& row = account.row;
  std::string text = fmt::format("#\n# {} bytes, {} {}, {:.2f} us\n", row.size.count(), row.algorithm,
                                 row.protocol, microseconds(row.time));
  for (const AccountPiece& piece : account.pieces)
    text += fmt::format("#   {:>10.2f} us {:>5.1f} %  {}\n", microseconds(piece.time),
                        100 * piece.time.in_seconds() / row.time.in_seconds(), piece.what);
  text += fmt::format("# constants: {}\n", account.source);
  for (const AccountPart& part : account.parts)
    text +=
        fmt::format("#   {:<8} {:<18} {} tables of {} machines, constants of the next one within {:.0f} %\n",
                    part.part, part.name, part.tables, part.machines, 100 * std::expm1(part.spread));
  for (const std::string& remark : account.remarks) text += fmt::format("#   {}\n", remark);
  return text;
}

ordered_json to_json(const CollectiveAccount& account) {
  ordered_json json{{"size_bytes", account.row.size.count()}, {"time_us", microseconds(account.row.time)},
                    {"algorithm", account.row.algorithm},     {"protocol", account.row.protocol},
                    {"pieces", ordered_json::array()},        {"source", account.source},
                    {"parts", ordered_json::array()},         {"remarks", account.remarks}};
  for (const AccountPiece& piece : account.pieces)
    json["pieces"].push_back({{"what", piece.what}, {"time_us", microseconds(piece.time)}});
  for (const AccountPart& part : account.parts)
    json["parts"].push_back({{"part", part.part},
                             {"name", part.name},
                             {"tables", part.tables},
                             {"machines", part.machines},
                             {"spread", part.spread}});
  return json;
}

}  // namespace lockstep
