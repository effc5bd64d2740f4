#include "sim/load/hardware/kinship.h"

#include <doctest/doctest.h>

#include <functional>

#include "tests/support/clusters.h"

namespace lockstep::kinship_test {

LinkSpec named(LinkClass link_class, const std::string& name, std::int64_t gigabytes) {
  LinkSpec link = wire(link_class, gigabytes_per_second(gigabytes));
  link.name = name;
  return link;
}

// Eight GPUs of compute capability 9.0 round a switch, a NIC of 400 Gbit/s each.
Relative hopper_box() {
  MachineSpec machine = switch_machine(8, named(LinkClass::nvlink, "nvlink4", 25));
  machine.gpu = "hopper";
  machine.gpu_links.links_per_gpu = 18;
  machine.host.pcie = named(LinkClass::pcie, "pcie5_x16", 63);
  for (std::int64_t gpu = 0; gpu < 8; ++gpu)
    machine.nics.push_back({named(LinkClass::network, "ndr400", 50), {gpu}});
  return {
      .machine = machine, .compute_capability = 90, .library = LibraryKind::nccl, .library_version = 22'809};
}

void name_nics(Relative& relative, const std::string& name) {
  for (NicSpec& nic : relative.machine.nics) nic.link.name = name;
}

using Change = std::function<void(Relative&)>;

// Each is one step away; those of one line lead further and further.
const std::vector<std::vector<Change>> steps{
    {[](Relative& r) { r.machine.gpu = "ampere", r.compute_capability = 80; },
     [](Relative& r) { r.machine.gpu = "volta", r.compute_capability = 70; },
     [](Relative& r) { r.machine.gpu = "pascal", r.compute_capability = 60; },
     [](Relative& r) { r.machine.gpu = "of another maker", r.compute_capability = 0; }},
    {[](Relative& r) { r.machine.gpu_links.links_per_gpu = 8; },
     [](Relative& r) { r.machine.gpu_links.links_per_gpu = 4; }},
    {[](Relative& r) { r.machine.gpu_links.link.name = "nvlink3"; }},
    {[](Relative& r) {
       r.machine.gpu_links.kind = GpuLinkKind::mesh, r.machine.gpu_links.matrix = {{0, 18}};
     },
     [](Relative& r) { r.machine.gpu_links.kind = GpuLinkKind::pcie; }},
    {[](Relative& r) { r.machine.gpus = 4; }, [](Relative& r) { r.machine.gpus = 2; }},
    {[](Relative& r) { name_nics(r, "roce_400g"); }, [](Relative& r) { name_nics(r, "ethernet_400g"); }},
    {[](Relative& r) {
       for (NicSpec& nic : r.machine.nics) nic.link.bandwidth = gigabytes_per_second(25);
     },
     [](Relative& r) {
       for (NicSpec& nic : r.machine.nics) nic.link.bandwidth = gigabytes_per_second(12);
     }},
    {[](Relative& r) { r.knows_network = false; }},
    {[](Relative& r) { r.library = LibraryKind::rccl; }},
    {[](Relative& r) { r.library_version = 21'200; }}};

TEST_CASE("a machine is no distance from its like, whatever it is called") {
  Relative other = hopper_box();
  other.machine.name = "another";
  const Kinship kinship = find_kinship(hopper_box(), other);
  CHECK(kinship.distance == 0);
  CHECK(kinship.differences.empty());
}

// Without NVLinks their number says nothing, without a measured network the NICs.
bool is_seen_beside(std::size_t line, std::size_t other) {
  return !(line == 1 && other == 3) && !((line == 5 || line == 6) && other == 7);
}

TEST_CASE("each step away is further, whatever else differs") {
  for (std::size_t line = 0; line < steps.size(); ++line)
    for (std::size_t beside = 0; beside < steps.size(); ++beside) {
      if (beside == line || !is_seen_beside(line, beside))
        continue;
      INFO("step ", line, " beside ", beside);
      Relative there = hopper_box();
      steps[beside].front()(there);
      std::int64_t before = find_kinship(hopper_box(), there).distance;
      for (const Change& change : steps[line]) {
        change(there);
        const std::int64_t after = find_kinship(hopper_box(), there).distance;
        // PCIe has neither NVLinks nor a number of them.
        if (there.machine.gpu_links.kind != GpuLinkKind::pcie || line == 3)
          CHECK(after > before);
        before = after;
      }
    }
}

TEST_CASE("what differs is said, here instead of there") {
  Relative there = hopper_box();
  Relative here = there;
  here.machine.gpu = "blackwell";
  here.compute_capability = 100;
  here.machine.gpu_links.link = named(LinkClass::nvlink, "nvlink5", 50);
  for (NicSpec& nic : here.machine.nics) nic.link = named(LinkClass::network, "roce_200g", 25);
  CHECK(find_kinship(here, there).differences ==
        std::vector<std::string>{"blackwell instead of hopper, compute capability 10.0 instead of 9.0",
                                 "nvlink5 instead of nvlink4", "900 GB/s a GPU instead of 450 GB/s",
                                 "RoCE instead of InfiniBand", "NICs of 200 instead of 400 Gbit/s"});
}

TEST_CASE("what was fitted within a node alone is nearer than what was fitted to another network") {
  Relative within = hopper_box();
  within.knows_network = false;
  Relative elsewhere = hopper_box();
  for (NicSpec& nic : elsewhere.machine.nics) nic.link.name = "efa400";
  CHECK(find_kinship(hopper_box(), within).distance < find_kinship(hopper_box(), elsewhere).distance);
}

TEST_CASE("two ways to state one rate are no difference, a tenth more is one") {
  Relative there = hopper_box();
  there.machine.nics[0].link.bandwidth = Bandwidth{50'900'000'000};
  CHECK(find_kinship(hopper_box(), there).differences.empty());
  there.machine.nics[0].link.bandwidth = gigabytes_per_second(55);
  CHECK(find_kinship(hopper_box(), there).differences ==
        std::vector<std::string>{"NICs of 400 instead of 440 Gbit/s"});
  CHECK(find_kinship(hopper_box(), there).distance == 0);
}

TEST_CASE("rates that no machine has do not overflow") {
  Relative vast = hopper_box();
  vast.machine.gpu_links.link.bandwidth = Bandwidth{1'000'000'000'000'000};
  vast.machine.gpu_links.kind = GpuLinkKind::mesh;
  vast.machine.gpu_links.matrix = {std::vector<std::int64_t>(256, 1'000)};
  CHECK(bandwidth_in_node(vast.machine) == Bandwidth{1'000'000'000'000'000'000});
  CHECK(find_kinship(vast, hopper_box()).distance > 0);
}

}  // namespace lockstep::kinship_test
