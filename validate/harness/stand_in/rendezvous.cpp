// Rendezvous for ranks that are threads of one machine of the stand-in.
//
// Whoever waits here waits in the machine, so it knows who can go on, and when nobody can. Linked before the
// harness's own, which goes over TCP, it takes that one's place.

#include "validate/harness/communication/rendezvous.h"

#include <exception>

#include "sim/base/error.h"
#include "validate/harness/stand_in/call.h"

namespace lockstep::harness {

using stand_in::Call;
using stand_in::Machine;
using stand_in::Meeting;

struct Rendezvous::State {
  World world;
  std::string address = "127.0.0.1";
  int exceptions = std::uncaught_exceptions();
  bool has_failed = false;
};

namespace {

template <class Condition>
void wait(Call& call, Condition condition) {
  call.wait_until(condition);
  if (call.machine().is_broken())
    throw EnvironmentError("another rank has failed: " + call.machine().why_broken());
}

bool is_full(const Meeting::Round& round, int size) {
  if (static_cast<int>(round.size()) != size)
    return false;
  for (const auto& value : round)
    if (!value)
      return false;
  return true;
}

}  // namespace

Rendezvous::Rendezvous(Options options) : state_(std::make_unique<State>()) {
  state_->world = options.world;
  barrier("begin");
}

Rendezvous::~Rendezvous() {
  if (state_->has_failed)
    return;
  Call call("goodbye");
  if (std::uncaught_exceptions() > state_->exceptions) {
    call.machine().break_off("a rank left");
    return;
  }
  Meeting& meeting = call.machine().meeting();
  const int size = state_->world.size;
  ++meeting.goodbyes;
  if (state_->world.rank == 0)
    call.wait_until([&meeting, size] { return meeting.goodbyes >= size; });
}

const World& Rendezvous::world() const {
  return state_->world;
}

void Rendezvous::set(const std::string& key, const std::string& value) {
  Call call("set");
  call.machine().meeting().values[key] = value;
}

std::string Rendezvous::get(const std::string& key) {
  Call call("get");
  const auto& values = call.machine().meeting().values;
  wait(call, [&] { return values.contains(key); });
  return values.at(key);
}

void Rendezvous::barrier(const std::string& name) {
  exchange("barrier " + name, std::string());
}

std::vector<std::string> Rendezvous::exchange(const std::string& name, const std::string& value) {
  Call call("exchange");
  Meeting& meeting = call.machine().meeting();
  const int rank = state_->world.rank;
  const int size = state_->world.size;
  Meeting::Round& round = meeting.rounds[{name, meeting.rounds_begun[{name, rank}]++}];
  round.resize(static_cast<std::size_t>(size));
  round[static_cast<std::size_t>(rank)] = value;
  wait(call, [&round, size] { return is_full(round, size); });
  std::vector<std::string> values;
  for (const auto& text : round) values.push_back(*text);
  return values;
}

std::vector<double> Rendezvous::exchange(const std::string& name, double value) {
  std::vector<double> values;
  for (const std::string& text : exchange(name, std::to_string(value))) values.push_back(std::stod(text));
  return values;
}

void Rendezvous::check_same(const std::string& what, const std::string& text) {
  for (const std::string& other : exchange("same " + what, text))
    if (other != text)
      throw ConfigError("ranks differ in their " + what + ": " + text + " and " + other);
}

void Rendezvous::report_failure(const std::string& why, int /*exit_code*/) {
  Call call("report_failure");
  state_->has_failed = true;
  call.machine().break_off(why);
}

void Rendezvous::wait_for_loss(std::chrono::milliseconds /*most*/) {}

const std::string& Rendezvous::own_address() const {
  return state_->address;
}

}  // namespace lockstep::harness
