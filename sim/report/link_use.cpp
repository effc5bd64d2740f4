#include "sim/report/link_use.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

struct KindOfLink {
  LinkClass link_class;
  std::string_view name;
};

constexpr std::array link_kinds{
    KindOfLink{LinkClass::nvlink, "GPU link"}, KindOfLink{LinkClass::pcie, "PCIe"},
    KindOfLink{LinkClass::socket, "socket link"}, KindOfLink{LinkClass::network, "network"}};

// One message while its bytes move.
struct Crossing {
  RouteId route;
  double bytes;
  Time start;
  Time end;
};

class LinkUseFinder {
 public:
  LinkUseFinder(const Run& run, const Topology& topology, Time from, Time to)
      : run_(run), topology_(topology), from_(from), to_(to) {
    for (std::uint32_t op = 0; op < run.plan.size(); ++op) add_op(OpId{op});
  }

  std::optional<LinkId> busiest(LinkClass link_class) const {
    std::optional<LinkId> found;
    double longest = 0;
    for (const auto& [link, seconds] : seconds_by_link_)
      if (topology_.links()[link].link_class == link_class && seconds > longest) {
        longest = seconds;
        found = link;
      }
    return found;
  }

  std::vector<Span> spans_of(LinkId link) const {
    std::map<Time, double> changes;  // of what is in use
    for (const Crossing& crossing : crossings_)
      for (const LinkUse& use : run_.routes.uses(crossing.route))
        if (use.link == link) {
          const double rate = seconds_of(crossing, use) / (crossing.end - crossing.start).in_seconds();
          changes[crossing.start] += rate;
          changes[crossing.end] -= rate;
        }
    return stairs_of(changes, topology_.link_name(link));
  }

 private:
  static constexpr double nothing = 1e-9;  // what rounding leaves of rates that cancel out

  static std::vector<Span> stairs_of(const std::map<Time, double>& changes, const std::string& name) {
    std::vector<Span> spans;
    double busy = 0;
    for (auto change = changes.begin(); change != changes.end() && std::next(change) != changes.end();
         ++change) {
      busy += change->second;
      if (busy > nothing)
        spans.push_back({.name = name,
                         .category = "link",
                         .start = change->first,
                         .end = std::next(change)->first,
                         .busy = std::min(busy, 1.0)});
    }
    return spans;
  }

  void add_op(OpId op) {
    const OpKind kind = run_.plan.kind[op.index];
    if (kind != OpKind::relay && kind != OpKind::transfer)
      return;
    if (run_.plan.paths[run_.plan.path[op.index]].kind == PathKind::kernel)
      return;
    if (kind == OpKind::transfer)
      return add_message(op, run_.timeline.start[op.index], run_.timeline.end[op.index]);
    const Relay& relay = relay_of(run_.plan, op);
    for (std::uint32_t message = 0; message < relay.messages; ++message) {
      const auto place = relay.place(message);
      add_message(op, run_.timeline.message_start[place], run_.timeline.message_end[place]);
    }
  }

  void add_message(OpId op, Time start, Time end) {
    const RouteId route{run_.plan.path[op.index].index};
    const Time moved = end - std::min(run_.routes.latency(route), end - start);
    if (moved <= start || moved <= from_ || start >= to_)
      return;
    crossings_.push_back({.route = route,
                          .bytes = static_cast<double>(run_.plan.amount[op.index]),
                          .start = start,
                          .end = moved});
    for (const LinkUse& use : run_.routes.uses(route))
      if (is_wire(use.link))
        seconds_by_link_[use.link] += seconds_of(crossings_.back(), use);
  }

  // Of nodes, NICs and the fabric; not what stands for computing or for what may be sent at all.
  bool is_wire(LinkId link) const {
    return link.index < topology_.compute_link(Rank{0}).index || link.index >= topology_.first_fabric_link();
  }

  // That it would take if it had the link to itself.
  double seconds_of(const Crossing& crossing, const LinkUse& use) const {
    return crossing.bytes * use.multiplicity /
           static_cast<double>(topology_.links()[use.link].bandwidth.count());
  }

  const Run& run_;
  const Topology& topology_;
  Time from_;
  Time to_;
  std::vector<Crossing> crossings_;
  std::map<LinkId, double> seconds_by_link_;
};

}  // namespace

std::vector<LinkUseTrack> busiest_links(const Run& run, const Topology& topology, Time from, Time to) {
  const LinkUseFinder finder(run, topology, from, to);
  std::vector<LinkUseTrack> tracks;
  for (const KindOfLink& kind : link_kinds)
    if (const std::optional<LinkId> link = finder.busiest(kind.link_class))
      tracks.push_back({.name = std::string(kind.name), .spans = finder.spans_of(*link)});
  return tracks;
}

}  // namespace lockstep
