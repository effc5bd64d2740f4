#include "validate/harness/communication/gloo_communicator.h"

#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <signal.h>

#include <cstdlib>
#include <exception>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "validate/harness/device/half.h"

namespace lockstep::harness {
namespace {

// ProcessGroupGloo's default.
constexpr int worker_threads = 2;
// A rank that computes may be late; one that is gone is the watchdog's business.
constexpr std::chrono::minutes most_waiting{30};
constexpr std::chrono::milliseconds most_connecting{60'000};
// Within which a lost rank is known to all: far above a message's way, far below the 10 s that are promised.
constexpr std::chrono::milliseconds watchdog_first{3'000};

// Gloo's store of addresses, kept at the rendezvous.
class RendezvousStore : public gloo::rendezvous::Store {
 public:
  explicit RendezvousStore(Rendezvous& rendezvous) : rendezvous_(rendezvous) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    rendezvous_.set("gloo/" + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = rendezvous_.get("gloo/" + key);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) rendezvous_.get("gloo/" + key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }

 private:
  Rendezvous& rendezvous_;
};

// Gloo writes to connections whose other end may be gone, and the signal for that would end the process
// without a word. Threads inherit the mask of the one that starts them, Gloo's own among them.
class BlockedPipeSignal {
 public:
  BlockedPipeSignal() {
    sigset_t blocked;
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  BlockedPipeSignal(const BlockedPipeSignal&) = delete;
  BlockedPipeSignal& operator=(const BlockedPipeSignal&) = delete;
  ~BlockedPipeSignal() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

std::shared_ptr<gloo::transport::Device> open_device(const std::string& own_address) {
  gloo::transport::tcp::attr attributes;
  if (const char* const interface = std::getenv("GLOO_SOCKET_IFNAME");
      interface != nullptr && *interface != '\0')
    attributes.iface = interface;
  else
    attributes.hostname = own_address;
  return gloo::transport::tcp::CreateDevice(attributes);
}

// The sum of two numbers of 16 bits is rounded once, from fp32.
template <class Number>
void add_numbers(void* sums, const void* a, const void* b, std::size_t count) {
  auto* const to = static_cast<Number*>(sums);
  const auto* const first = static_cast<const Number*>(a);
  const auto* const second = static_cast<const Number*>(b);
  for (std::size_t i = 0; i < count; ++i) to[i] = stored<Number>(load(first[i]) + load(second[i]));
}

template <class Number>
void all_reduce(gloo::AllreduceOptions& options, Tensor values) {
  options.setOutput(values.as<Number>(), static_cast<std::size_t>(values.elements));
  options.setReduceFunction(add_numbers<Number>);
  gloo::allreduce(options);
}

void all_reduce(gloo::AllreduceOptions& options, Tensor values) {
  switch (values.type) {
    case Type::fp32:
      return all_reduce<float>(options, values);
    case Type::fp16:
      return all_reduce<Half>(options, values);
    case Type::bf16:
      return all_reduce<Bfloat16>(options, values);
    case Type::int32:
      break;
  }
  LOCKSTEP_CHECK(false, "only floating-point numbers are reduced");
}

}  // namespace

GlooCommunicator::GlooCommunicator(Rendezvous& rendezvous, Device& device)
    : rendezvous_(rendezvous), device_(device) {
  const BlockedPipeSignal blocked;
  const World& world = rendezvous.world();
  context_ = std::make_shared<gloo::rendezvous::Context>(world.rank, world.size);
  try {
    RendezvousStore store(rendezvous);
    auto transport = open_device(rendezvous.own_address());
    context_->setTimeout(most_connecting);
    context_->connectFullMesh(store, transport);
    context_->setTimeout(most_waiting);
    // A rank that failed right away would close connections that Gloo's thread of another is still opening.
    rendezvous.barrier("gloo is connected");
  } catch (const gloo::Exception& error) {
    rendezvous.wait_for_loss(watchdog_first);
    throw EnvironmentError(fmt::format("Gloo cannot connect the ranks: {}", error.what()));
  }
  for (int i = 0; i < worker_threads; ++i) threads_.emplace_back([this] { work(); });
}

// All ranks have their results before one closes its connections; unless one failed, and nobody should wait.
GlooCommunicator::~GlooCommunicator() {
  bool has_failed = false;
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
    has_failed = has_failed_ || next_ < collectives_.size();
  }
  changed_.notify_all();
  if (has_failed || std::uncaught_exceptions() > 0) {
    context_->closeConnections();
  } else {
    try {
      rendezvous_.barrier("gloo is done");
    } catch (const EnvironmentError&) {
      // A lost rank: its verdict has been heard.
    }
  }
  for (std::thread& thread : threads_) thread.join();
}

int GlooCommunicator::rank() const {
  return context_->rank;
}

int GlooCommunicator::size() const {
  return context_->size;
}

std::string GlooCommunicator::library() const {
  return fmt::format("Gloo {}.{}.{}", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
}

Ticket GlooCommunicator::start_all_reduce(Tensor values) {
  return start([this, values](std::uint32_t tag) {
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options.setTag(tag);
    all_reduce(options, values);
  });
}

Ticket GlooCommunicator::start_broadcast(Tensor values, int root) {
  return start([this, values, root](std::uint32_t tag) {
    gloo::BroadcastOptions options(context_);
    options.setOutput(values.as<char>(), static_cast<std::size_t>(values.bytes()));
    options.setRoot(root);
    options.setTag(tag);
    gloo::broadcast(options);
  });
}

Ticket GlooCommunicator::start(std::function<void(std::uint32_t tag)> run) {
  Ticket ticket;
  {
    const std::lock_guard lock(mutex_);
    ticket.index = static_cast<std::uint32_t>(collectives_.size());
    Collective& collective = collectives_.emplace_back();
    collective.run = std::move(run);
    collective.tag = next_tag_++;
  }
  changed_.notify_all();
  return ticket;
}

void GlooCommunicator::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_closing_ || next_ < collectives_.size(); });
    if (is_closing_)
      return;
    Collective& collective = collectives_[next_++];
    lock.unlock();
    run(collective);
    lock.lock();
    collective.is_done = true;
    has_failed_ = has_failed_ || !collective.error.empty();
    changed_.notify_all();
  }
}

void GlooCommunicator::run(Collective& collective) const {
  collective.start = Clock::now();
  try {
    collective.run(collective.tag);
  } catch (const std::exception& error) {
    collective.error = error.what();
  }
  collective.end = Clock::now();
}

void GlooCommunicator::wait(Ticket ticket) {
  std::string error;
  {
    std::unique_lock lock(mutex_);
    LOCKSTEP_CHECK(ticket.index < collectives_.size(), "a ticket is waited for before it is forgotten");
    Collective& collective = collectives_[ticket.index];
    changed_.wait(lock, [&] { return collective.is_done; });
    error = collective.error;
  }
  if (error.empty())
    return;
  rendezvous_.wait_for_loss(watchdog_first);
  throw EnvironmentError(fmt::format("Gloo: {}", error));
}

bool GlooCommunicator::has_ended(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  return collectives_.at(ticket.index).is_done;
}

void GlooCommunicator::forget_tickets() {
  const std::lock_guard lock(mutex_);
  for (const Collective& collective : collectives_)
    LOCKSTEP_CHECK(collective.is_done, "tickets are forgotten when all have been waited for");
  collectives_.clear();
  next_ = 0;
}

// The device's marks and this clock run alike, so one reading of both relates them.
CollectiveTimes GlooCommunicator::times_of(Ticket ticket, Mark since) {
  const Mark now = device_.mark();
  const auto now_here = Clock::now();
  const double age = device_.seconds_between(since, now);
  const std::lock_guard lock(mutex_);
  const Collective& collective = collectives_.at(ticket.index);
  const auto after_mark = [&](Clock::time_point time) {
    return age + std::chrono::duration<double>(time - now_here).count();
  };
  return {.start = after_mark(collective.start), .end = after_mark(collective.end)};
}

}  // namespace lockstep::harness
