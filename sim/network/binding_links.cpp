#include "sim/network/binding_links.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace lockstep {
namespace {

constexpr std::uint32_t none = 0xffffffff;

// The links that each list of uses so far crosses alike.
class AlikeLinks {
 public:
  explicit AlikeLinks(std::size_t links) : class_of_(links, 0), splits_(1) {}

  // Those of a class that this list crosses equally often become a class of their own.
  void split(std::uint32_t list, std::span<const LinkUse> uses) {
    for (const LinkUse& use : uses) move(class_of_[use.link.index], list, use.multiplicity);
  }

  std::uint32_t class_of(std::size_t link) const { return class_of_[link]; }
  std::size_t classes() const { return splits_.size(); }

 private:
  // Where those of a class went that were last split off it.
  struct Split {
    std::uint32_t list = none;
    std::uint32_t multiplicity = 0;
    std::uint32_t into = 0;
  };

  void move(std::uint32_t& of_link, std::uint32_t list, std::uint32_t multiplicity) {
    const Split& last = splits_[of_link];
    if (last.list != list || last.multiplicity != multiplicity) {
      splits_[of_link] = {list, multiplicity, static_cast<std::uint32_t>(splits_.size())};
      splits_.emplace_back();
    }
    of_link = splits_[of_link].into;
  }

  std::vector<std::uint32_t> class_of_;  // by link
  std::vector<Split> splits_;            // by class
};

AlikeLinks find_alike(std::size_t links, const RouteTable& routes) {
  AlikeLinks alike(links);
  for (std::uint32_t list = 0; list < routes.lists(); ++list) alike.split(list, routes.uses(UsesId{list}));
  return alike;
}

}  // namespace

std::vector<BindingLink> find_binding_links(std::span<const Bandwidth> capacities, const RouteTable& routes) {
  const AlikeLinks alike = find_alike(capacities.size(), routes);
  std::vector<Bandwidth> narrowest(alike.classes(), Bandwidth{std::numeric_limits<std::int64_t>::max()});
  for (std::size_t link = 0; link < capacities.size(); ++link) {
    Bandwidth& least = narrowest[alike.class_of(link)];
    least = std::min(least, capacities[link]);
  }
  std::vector<BindingLink> links(capacities.size());
  std::vector<bool> is_found(alike.classes(), false);
  for (std::uint32_t list = 0; list < routes.lists(); ++list)
    for (const LinkUse& use : routes.uses(UsesId{list})) {
      const std::uint32_t its_class = alike.class_of(use.link.index);
      if (!is_found[its_class])
        links[use.link.index] = {.binds = true, .capacity = narrowest[its_class]};
      is_found[its_class] = true;
    }
  return links;
}

}  // namespace lockstep
