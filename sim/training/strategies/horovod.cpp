// Horovod: gradients are announced to a background thread, which fuses those that all ranks have announced
// and reduces them while backward still runs.
//
// What is fused and when it may go is decided by `fuse` (fusion.h) from a rehearsal; here it is written: a
// group waits until it is agreed on and its last gradient is computed, is copied into the fusion buffer,
// reduced, and copied back, all on Horovod's own streams (`collectives_in_flight` of them, each in order). A
// group of one gradient is reduced where it lies. The optimizer waits for all of them; in the first iteration
// nothing is cached, and a round is dearer. Before anything was rehearsed all gradients form one group, sent
// after backward.
//
// With device cpu the gradients reach Horovod in the memory of the host, hence computed, and the thread
// copies, adds and sends itself: one group at a time, at the rate of a core (core_time_per_byte of the
// calibration, which stands for the copies from and to the GPU as well), and wakes again when it is done.
//
// A round is the processes' own small collectives: two bit vectors where the response cache knows the
// gradients, else requests gathered to rank 0 and responses sent back, two messages each, and a microsecond a
// rank for reading them. What the thread does besides is taken as 20 us (our choice).
//
// Volume: as DDP, 2 (n-1)/n S.
// Reference: Sergeev and Del Balso, "Horovod", arXiv 1802.05799; horovod/common/operations.cc, controller.cc.

#include <algorithm>
#include <optional>

#include "sim/training/option_spelling.h"
#include "sim/training/shared_options.h"
#include "sim/training/step_writer.h"
#include "sim/training/synchroniser.h"

namespace lockstep::strategies::horovod {
namespace {

// A batched copy takes so many gradients (horovod/common/ops/cuda/cuda_kernels.h, from memory).
constexpr std::int64_t copied_at_once = 160;

Duration negotiation(const Job& job, std::int64_t ranks, bool knows_gradients) {
  const Duration own = Duration::microseconds(20);
  return knows_gradients ? own + job.control_round * 2
                         : own + job.control_round * 4 + Duration::microseconds(1) * ranks;
}

class DistributedOptimizer : public Synchroniser {
 public:
  explicit DistributedOptimizer(const StrategyContext& context)
      : Synchroniser(context), options_(job_.training.horovod) {
    groups_ = job_.fused;
    if (!groups_.empty())
      return;
    waits_for_backward_ = true;
    groups_.push_back({.gradients = gradient_order(job_), .agreed = {}});
  }

  void begin() override {
    context_.watched.start = write_mark(context_);
    context_.watched.gradients.resize(job_.gradients.size());
  }

  void gradient_ready(std::uint32_t gradient, const std::vector<OpId>& done) override {
    context_.watched.gradients[gradient] = compressed(gradient, done);
  }

  void finish() override {
    if (waits_for_backward_ || !job_.communication.overlap)
      backward_ended_ = write_mark(context_);
    write_groups();
    for (const Sent& group : sent_) hand_back(group);
  }

 private:
  struct Sent {
    std::string name;
    std::int64_t tensors = 0;
    Bytes bytes = {};          // as computed
    Bytes bytes_on_wire = {};  // compressed
    std::vector<OpId> arrived = {};
  };

  bool on_host() const { return options_.device == CollectiveDevice::cpu; }

  bool halves(std::uint32_t gradient) const {
    return job_.training.compression.kind != CompressionKind::none &&
           job_.gradients[gradient].element_bytes > 2;
  }

  // Cast as it comes, before Horovod hears of it.
  std::vector<OpId> compressed(std::uint32_t gradient, const std::vector<OpId>& done) {
    if (!halves(gradient))
      return done;
    context_.writer.section("compress " + job_.gradients[gradient].name, Category::gradient_copy);
    return write_kernels(context_, copy_work(1, job_.gradients[gradient].bytes));
  }

  void write_groups() {
    clock_ = context_.watched.start;
    for (const Rank rank : context_.writer.representatives())
      clock_lanes_.push_back(context_.writer.new_channel_lane(rank));
    for (const FusedGroup& group : groups_) write_group(group);
  }

  void write_group(const FusedGroup& group) {
    Sent sent{.name = "fused " + std::to_string(sent_.size()),
              .tensors = static_cast<std::int64_t>(group.gradients.size())};
    for (const std::uint32_t gradient : group.gradients) {
      const Bytes bytes = job_.gradients[gradient].bytes;
      sent.bytes += bytes;
      sent.bytes_on_wire += halves(gradient) ? Bytes{bytes.count() / 2} : bytes;
    }
    tell_time(group.agreed);
    std::vector<OpId> ready = copied(sent, "copy in ", write_ready(group));
    sent.arrived = write_collective(context_,
                                    {.name = sent.name,
                                     .bytes = sent.bytes,
                                     .bytes_on_wire = sent.bytes_on_wire,
                                     .tensors = static_cast<std::uint32_t>(sent.tensors),
                                     .algorithm = runs_hierarchically() ? "hierarchical" : ""},
                                    std::move(ready));
    sent.arrived = copied(sent, "copy out ", std::move(sent.arrived));
    sent_.push_back(std::move(sent));
  }

  bool runs_hierarchically() const {
    const Communicator& members = *context_.group.communicator;
    return options_.hierarchical_allreduce && members.nodes > 1 && members.gpus_per_node > 1;
  }

  // Time passes on every rank alike, however far it is. The first iteration negotiates longer.
  void tell_time(Duration agreed) {
    const std::int64_t ranks = context_.group.members();
    if (context_.is_first_iteration)
      agreed += negotiation(job_, ranks, false) - negotiation(job_, ranks, options_.response_cache);
    context_.writer.section("negotiate", Category::host_overhead);
    for (std::size_t i = 0; i < clock_.size() && agreed > told_; ++i)
      clock_[i] = context_.writer.delay(clock_lanes_[i], agreed - told_, std::span(&clock_[i], 1));
    told_ = std::max(told_, agreed);
  }

  // Agreed on, computed, and the stream free again.
  std::vector<OpId> write_ready(const FusedGroup& group) {
    const auto streams =
        on_host() ? std::size_t{1} : static_cast<std::size_t>(job_.communication.collectives_in_flight);
    std::vector<OpId> ready;
    context_.writer.section("wait for data", Category::host_overhead);
    for (std::size_t i = 0; i < clock_.size(); ++i) {
      std::vector<OpId> after{clock_[i]};
      for (const std::uint32_t gradient : group.gradients)
        after.push_back(context_.watched.gradients[gradient][i]);
      if (!backward_ended_.empty())
        after.push_back(backward_ended_[i]);
      if (sent_.size() >= streams)
        after.push_back(sent_[sent_.size() - streams].arrived[i]);
      const LaneId lane = context_.writer.new_channel_lane(context_.writer.representatives()[i]);
      ready.push_back(context_.writer.join(lane, after));
    }
    return ready;
  }

  // To or from the fusion buffer.
  std::vector<OpId> copied(const Sent& group, const std::string& what, std::vector<OpId> after) {
    if (group.tensors < 2 || on_host())
      return after;
    const std::int64_t each = options_.batch_d2d_memcopies ? copied_at_once : 1;
    context_.writer.section(what + group.name, Category::gradient_copy);
    return write_side_kernels(context_, copy_work(divided_up(group.tensors, each), group.bytes_on_wire),
                              after);
  }

  void hand_back(const Sent& group) {
    write_wait(context_, "wait for " + group.name, group.arrived);
    if (group.bytes_on_wire == group.bytes)
      return;
    context_.writer.section("decompress " + group.name, Category::gradient_copy);
    write_kernels(context_, copy_work(group.tensors, group.bytes));
  }

  const HorovodOptions& options_;
  std::vector<FusedGroup> groups_;
  bool waits_for_backward_ = false;
  std::vector<OpId> backward_ended_;  // by representative, where all groups wait for it
  std::vector<LaneId> clock_lanes_;
  std::vector<OpId> clock_;
  Duration told_;
  std::vector<Sent> sent_;
};

std::int64_t launches(const KernelWork& work) {
  return std::max<std::int64_t>(work.launches, 0);
}

// When the host has launched what computes each gradient, if nothing holds it up.
std::vector<Duration> launch_times(const Job& job) {
  std::vector<Duration> times(job.gradients.size());
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  for (const LayerWork& layer : job.layers) {
    forward += launches(layer.forward);
    backward += launches(layer.backward);
  }
  std::int64_t so_far = (forward + backward) * (job.training.gradient_accumulation - 1) + forward;
  for (auto layer = job.layers.rbegin(); layer != job.layers.rend(); ++layer) {
    so_far += launches(layer->backward);
    for (const std::uint32_t gradient : layer->gradients) times[gradient] = job.host_launch * so_far;
  }
  return times;
}

// Gradients in registration order are dealt out in equal runs; a group is announced with its last gradient.
void announce_groups(std::vector<AnnouncedGradient>& gradients, std::int64_t groups) {
  const auto count = static_cast<std::int64_t>(gradients.size());
  for (std::int64_t group = 0, begin = 0; group < std::min(groups, count); ++group) {
    const std::int64_t end = begin + split(Bytes{count}, std::min(groups, count), group).count();
    const std::span<AnnouncedGradient> members(gradients.data() + begin, gradients.data() + end);
    Duration last;
    for (const AnnouncedGradient& gradient : members) last = std::max(last, gradient.announced);
    for (AnnouncedGradient& gradient : members) gradient.announced = last;
    begin = end;
  }
}

std::optional<Bandwidth> blocking_rate(const Job& job, const Rehearsal& seen) {
  if (job.training.horovod.device == CollectiveDevice::gpu || seen.reducing == Duration::zero())
    return std::nullopt;
  const auto per_second = static_cast<Unsigned128>(gradient_bytes(job).count()) * 1'000'000'000'000u;
  const auto rate = per_second / static_cast<Unsigned128>(seen.reducing.picoseconds());
  return Bandwidth{std::max<std::int64_t>(static_cast<std::int64_t>(rate), 1)};
}

std::vector<FusedGroup> fuse_gradients(const Job& job, const Rehearsal& seen, std::int64_t ranks) {
  const HorovodOptions& options = job.training.horovod;
  const std::vector<Duration> launched = launch_times(job);
  const bool knows_early = options.announce == Announcement::launched &&
                           options.device == CollectiveDevice::gpu && job.communication.overlap;
  std::vector<AnnouncedGradient> gradients;
  for (std::size_t index = 0; index < job.gradients.size(); ++index) {
    const Duration ready = seen.ready[index];
    gradients.push_back({.announced = knows_early ? std::min(launched[index], ready) : ready,
                         .ready = ready,
                         .bytes = job.gradients[index].bytes,
                         .type = job.gradients[index].element_bytes});
  }
  announce_groups(gradients, options.num_groups);
  return fuse(gradients, gradient_order(job),
              {.threshold = options.fusion_threshold,
               .cycle = options.cycle_time,
               .negotiation = negotiation(job, ranks, options.response_cache),
               .blocked_at = blocking_rate(job, seen)});
}

struct CycleChoice {
  const char* milliseconds;
  Duration time;
};

// What HOROVOD_AUTOTUNE searches by Bayesian optimisation (thresholds up to 64 MB, cycles of 1 to 100 ms), as
// a small grid: our choice.
std::vector<Trial> variants(const TrainingSpec& stated) {
  std::vector<Trial> tried;
  if (!stated.horovod.autotune)
    return tried;
  const CycleChoice cycles[] = {{"1", Duration::milliseconds(1)},    {"2.5", Duration::microseconds(2500)},
                                {"5", Duration::milliseconds(5)},    {"10", Duration::milliseconds(10)},
                                {"25", Duration::milliseconds(25)},  {"50", Duration::milliseconds(50)},
                                {"100", Duration::milliseconds(100)}};
  for (const std::int64_t mib : {0, 1, 2, 4, 8, 16, 32, 64})
    for (const CycleChoice& cycle : cycles) {
      Trial variant{
          .name = "fusion_threshold_mb " + std::to_string(mib) + ", cycle_time_ms " + cycle.milliseconds,
          .training = stated};
      variant.training.horovod.fusion_threshold = Bytes{mib * 1024 * 1024};
      variant.training.horovod.cycle_time = cycle.time;
      tried.push_back(std::move(variant));
    }
  return tried;
}

MemoryShares memory(const Job& job, std::int64_t) {
  if (job.training.horovod.device == CollectiveDevice::cpu)
    return {};
  return {.buffers = job.training.horovod.fusion_threshold * job.communication.collectives_in_flight};
}

OptionList options(TrainingSpec& training) {
  HorovodOptions& own = training.horovod;
  constexpr double most_mebibytes = 1e6;
  constexpr double most_milliseconds = 1e5;
  return {{"fusion_threshold_mb", MebibytesOption{own.fusion_threshold, 0, most_mebibytes}},
          {"cycle_time_ms", MillisecondsOption{own.cycle_time, most_milliseconds}},
          {"response_cache", FlagOption{own.response_cache}},
          {"hierarchical_allreduce", FlagOption{own.hierarchical_allreduce}},
          {"autotune", FlagOption{own.autotune}},
          {"device", choice(own.device, collective_device_spellings)},
          {"num_groups", CountOption{own.num_groups, 0, most_things}},
          {"batch_d2d_memcopies", FlagOption{own.batch_d2d_memcopies}},
          {"announce", choice(own.announce, announcement_spellings)}};
}

// At worst nothing is fused.
TrafficBound traffic(const TrafficInput& input) {
  return {.collectives = input.tensors};
}

std::optional<HostReduction> host_reduction(const TrainingSpec& training) {
  if (training.horovod.device == CollectiveDevice::gpu)
    return std::nullopt;
  return HostReduction{.key = "device", .stated = "cpu", .instead = "gpu"};
}

const Registration<Strategy> horovod_registration{
    "horovod",
    {.synchroniser = make_synchroniser<DistributedOptimizer>,
     .description = "Horovod: gradients fused every cycle and reduced while backward runs",
     .accepts = {.options = options, .compressions = {CompressionKind::none, CompressionKind::fp16}},
     .sends = {.at_most = traffic},
     .memory = memory,
     .host_reduction = host_reduction,
     .fuse = fuse_gradients,
     .variants = variants}};

}  // namespace
}  // namespace lockstep::strategies::horovod
