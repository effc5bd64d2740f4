#include "sim/network/hamilton.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/network/two_factors.h"

namespace lockstep {
namespace {

// GPUs put on a cycle or a path, or taken off again.
constexpr std::size_t most_steps = 50'000;

// A walk that is tried link by link, past every GPU once, and taken back where it leads nowhere. What it takes
// stays taken while walks that follow it are tried.
class Walk {
 public:
  explicit Walk(const LinkMatrix& matrix) : free_(matrix) {}

  std::size_t gpus() const { return free_.size(); }
  bool has_given_up() const { return steps_ > most_steps; }

  // Tries all ways from `first` until `arrive`, told of each that passes every GPU, says that it is enough, or
  // the steps have run out: then true.
  template <class Arrive>
  bool from(std::uint32_t first, const Arrive& arrive) {
    GpuOrder order{first};
    std::vector<bool> is_passed(gpus());
    is_passed[first] = true;
    return extend(order, is_passed, arrive);
  }

  // What `next` says, with a link from a to b taken; false where none is free.
  template <class Next>
  bool with_link(std::uint32_t a, std::uint32_t b, const Next& next) {
    if (free_[a][b] == 0)
      return false;
    --free_[a][b];
    --free_[b][a];
    const bool is_done = next();
    ++free_[a][b];
    ++free_[b][a];
    return is_done;
  }

 private:
  template <class Arrive>
  bool extend(GpuOrder& order, std::vector<bool>& is_passed, const Arrive& arrive) {
    if (++steps_ > most_steps)
      return true;
    if (order.size() == gpus())
      return arrive(order);
    for (std::uint32_t next = 0; next < gpus(); ++next) {
      if (is_passed[next])
        continue;
      is_passed[next] = true;
      const bool is_done = with_link(order.back(), next, [&] {
        order.push_back(next);
        const bool is_enough = extend(order, is_passed, arrive);
        order.pop_back();
        return is_enough;
      });
      is_passed[next] = false;
      if (is_done)
        return true;
    }
    return false;
  }

  LinkMatrix free_;
  std::size_t steps_ = 0;
};

// As many cycles at once as there can be.
class CycleSearch {
 public:
  CycleSearch(const LinkMatrix& matrix, std::size_t bound) : walk_(matrix), bound_(bound) {}

  std::vector<GpuOrder> run() {
    if (bound_ > 0)
      extend_set();
    return best_;
  }
  bool has_tried_all() const { return !walk_.has_given_up(); }

 private:
  bool extend_set() {
    if (found_.size() > best_.size())
      best_ = found_;
    if (best_.size() == bound_)
      return true;
    return walk_.from(0, [&](const GpuOrder& order) {
      return walk_.with_link(order.back(), 0, [&] {
        found_.push_back(order);
        const bool is_done = extend_set();
        found_.pop_back();
        return is_done;
      });
    });
  }

  Walk walk_;
  std::size_t bound_;
  std::vector<GpuOrder> found_;
  std::vector<GpuOrder> best_;
};

// A path for each two of the ends.
class PathSearch {
 public:
  PathSearch(const LinkMatrix& matrix, const std::vector<std::uint32_t>& ends)
      : walk_(matrix), open_ends_(ends) {}

  std::vector<GpuOrder> run() {
    extend_set();
    return best_;
  }

 private:
  bool extend_set() {
    if (open_ends_.empty()) {
      best_ = found_;
      return true;
    }
    return walk_.from(open_ends_.front(), [&](const GpuOrder& order) {
      const std::vector<std::uint32_t> before = open_ends_;
      if (std::erase(open_ends_, order.back()) == 0)
        return false;
      std::erase(open_ends_, order.front());
      found_.push_back(order);
      const bool is_done = extend_set();
      found_.pop_back();
      open_ends_ = before;
      return is_done;
    });
  }

  Walk walk_;
  std::vector<std::uint32_t> open_ends_;
  std::vector<GpuOrder> found_;
  std::vector<GpuOrder> best_;
};

// Links between every two GPUs; 0 where some two have none.
std::int64_t links_of_each_pair(const LinkMatrix& matrix) {
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (std::size_t a = 0; a < matrix.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) fewest = std::min(fewest, matrix[a][b]);
  return fewest;
}

// t, t + 1, t - 1, t + 2, ... round `gpus` places, an even number: those of half as many turns t pass each
// pair once, and end where the turns in the other half begin.
GpuOrder zigzag(std::uint32_t gpus, std::uint32_t turn) {
  GpuOrder order;
  for (std::uint32_t place = 0; place < gpus; ++place) {
    const std::uint32_t offset = place % 2 == 1 ? (place + 1) / 2 : gpus - place / 2;
    order.push_back((turn + offset) % gpus);
  }
  return order;
}

// Whom a GPU meets in a round of a tournament of an even number: the last one meets each other in turn, and
// these meet their mirror images.
std::uint32_t partner_in_round(std::uint32_t gpu, std::uint32_t round, std::uint32_t gpus) {
  const std::uint32_t last = gpus - 1;
  if (gpu == last)
    return round;
  const std::uint32_t mirrored = (2 * round + last - gpu) % last;
  return mirrored == gpu ? last : mirrored;
}

// Of an odd number of GPUs: round a hub and a zigzag of the others.
GpuOrder cycle_round_hub(std::uint32_t gpus, std::size_t index) {
  GpuOrder cycle = zigzag(gpus - 1, static_cast<std::uint32_t>(index) % ((gpus - 1) / 2));
  cycle.push_back(gpus - 1);
  std::rotate(cycle.begin(), std::find(cycle.begin(), cycle.end(), 0u), cycle.end());
  return cycle;
}

// Of an even number: two rounds of a tournament that follow each other are one cycle.
GpuOrder cycle_of_two_rounds(std::uint32_t gpus, std::size_t index) {
  const std::size_t rounds = gpus - 1;
  const auto first = static_cast<std::uint32_t>(2 * index % rounds);
  const auto second = static_cast<std::uint32_t>((2 * index + 1) % rounds);
  GpuOrder cycle;
  std::uint32_t gpu = 0;
  do {
    cycle.push_back(gpu);
    gpu = partner_in_round(gpu, cycle.size() % 2 == 1 ? first : second, gpus);
  } while (gpu != 0);
  return cycle;
}

// Where every two GPUs are joined by as many links, at least: all that (gpus - 1) * links / 2 allows.
std::vector<GpuOrder> cycles_of_complete_mesh(const LinkMatrix& matrix, std::size_t wanted) {
  const auto gpus = static_cast<std::uint32_t>(matrix.size());
  const auto links = static_cast<std::size_t>(links_of_each_pair(matrix));
  const std::size_t count = std::min(wanted, (gpus - 1) * links / 2);
  std::vector<GpuOrder> cycles;
  for (std::size_t index = 0; index < count; ++index)
    cycles.push_back(gpus % 2 == 1 ? cycle_round_hub(gpus, index) : cycle_of_two_rounds(gpus, index));
  return cycles;
}

// Zigzags, with the first two ends put where the first of them begins and ends, and so on.
std::vector<GpuOrder> paths_of_complete_mesh(std::uint32_t gpus, const std::vector<std::uint32_t>& ends) {
  constexpr std::uint32_t nobody = 0xffffffff;
  std::vector<std::uint32_t> gpu_at(gpus, nobody);
  for (std::size_t end = 0; end < ends.size(); ++end) gpu_at[end / 2 + end % 2 * gpus / 2] = ends[end];
  std::uint32_t other = 0;
  for (std::uint32_t& gpu : gpu_at) {
    while (std::find(ends.begin(), ends.end(), other) != ends.end()) ++other;
    if (gpu == nobody)
      gpu = other++;
  }
  std::vector<GpuOrder> paths;
  for (std::uint32_t turn = 0; turn < ends.size() / 2; ++turn) {
    paths.push_back(zigzag(gpus, turn));
    for (std::uint32_t& place : paths.back()) place = gpu_at[place];
  }
  return paths;
}

// Links that must be cut to part the GPUs, at least (Stoer and Wagner): each turn parts the last of them in
// the order of how much it is joined to those before, and then takes the last two for one.
class MinimumCut {
 public:
  explicit MinimumCut(LinkMatrix links) : links_(std::move(links)), left_(links_.size()) {
    std::iota(left_.begin(), left_.end(), std::size_t{0});
  }

  std::int64_t find() {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    while (left_.size() > 1) least = std::min(least, part_last());
    return least;
  }

 private:
  std::int64_t part_last() {
    std::vector<std::size_t> waiting = left_;
    std::vector<std::int64_t> joined(links_.size());
    std::size_t last = 0;
    std::size_t before = 0;
    while (!waiting.empty()) {
      const auto next = std::max_element(waiting.begin(), waiting.end(),
                                         [&](std::size_t a, std::size_t b) { return joined[a] < joined[b]; });
      before = std::exchange(last, *next);
      waiting.erase(next);
      for (const std::size_t gpu : waiting) joined[gpu] += links_[last][gpu];
    }
    merge(before, last);
    return joined[last];
  }

  void merge(std::size_t kept, std::size_t gone) {
    for (const std::size_t gpu : left_) {
      links_[kept][gpu] += links_[gone][gpu];
      links_[gpu][kept] = links_[kept][gpu];
    }
    std::erase(left_, gone);
  }

  LinkMatrix links_;
  std::vector<std::size_t> left_;
};

LinkMatrix at_most(LinkMatrix matrix, std::int64_t most) {
  for (std::vector<std::int64_t>& row : matrix)
    for (std::int64_t& links : row) links = std::min(links, most);
  return matrix;
}

}  // namespace

// Each cycle crosses a cut twice or more, and, of three GPUs, joins two of them once at most.
std::size_t most_disjoint_cycles(const LinkMatrix& matrix) {
  if (matrix.size() < 2)
    return 0;
  auto most = static_cast<std::int64_t>(most_cycles);
  if (matrix.size() == 2)
    return static_cast<std::size_t>(std::min(most, matrix[0][1]));
  while (most > 0) {
    const std::int64_t allowed = MinimumCut(at_most(matrix, most)).find() / 2;
    if (allowed >= most)
      break;
    most = allowed;
  }
  return static_cast<std::size_t>(most);
}

CycleSet find_disjoint_cycles(const LinkMatrix& matrix) {
  CycleSet set{.cycles = {}, .bound = most_disjoint_cycles(matrix)};
  if (matrix.size() == 2)
    set.cycles.assign(set.bound, {0, 1});
  if (matrix.size() < 3)
    return set;
  CycleSearch search(matrix, set.bound);
  set.cycles = search.run();
  if (set.cycles.size() == set.bound || search.has_tried_all())
    return set;
  for (const auto find : {cycles_of_complete_mesh, merge_two_factors}) {
    std::vector<GpuOrder> found = find(matrix, set.bound);
    if (found.size() > set.cycles.size())
      set.cycles = std::move(found);
    if (set.cycles.size() == set.bound)
      return set;
  }
  set.is_largest = false;
  return set;
}

std::vector<GpuOrder> find_disjoint_paths(const LinkMatrix& matrix, const std::vector<std::uint32_t>& ends) {
  const auto gpus = static_cast<std::uint32_t>(matrix.size());
  if (gpus < 2 || ends.size() % 2 == 1)
    return {};
  if (gpus % 2 == 0 && links_of_each_pair(matrix) > 0)
    return paths_of_complete_mesh(gpus, ends);
  return PathSearch(matrix, ends).run();
}

}  // namespace lockstep
