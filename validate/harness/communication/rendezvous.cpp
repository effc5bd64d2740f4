#include "validate/harness/communication/rendezvous.h"

#include <fmt/format.h>
#include <unistd.h>

#include <asio.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <bit>
#include <charconv>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "sim/base/atomic_file.h"
#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/base/failure.h"
#include "validate/harness/communication/connection.h"
#include "validate/harness/communication/meeting_port.h"
#include "validate/harness/communication/proof.h"
#include "validate/harness/communication/rendezvous_server.h"

namespace lockstep::harness {
namespace {

using asio::redirect_error;
using asio::use_awaitable;
using asio::ip::tcp;

constexpr std::chrono::milliseconds pause_between_attempts{50};

void end_process(const World& world, const std::string& message, int exit_code) {
  const std::string line = fmt::format("lockstep_ddp: {}; ending rank {}\n", message, world.rank);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  remove_temporary_files();
  ::_exit(exit_code);
}

std::string secret_of(const World& world) {
  return world.secret.empty() && world.rank == 0 ? draw_secret() : world.secret;
}

// What nobody sent in good faith is the environment's fault.
std::uint64_t to_number(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw ProtocolError("rank 0 answers with what is no number");
  return number;
}

}  // namespace

struct Rendezvous::State {
  explicit State(Options given);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  // On the thread of `io`.
  asio::awaitable<void> attend();
  asio::awaitable<tcp::resolver::results_type> resolve();
  asio::awaitable<std::string> visit(const tcp::resolver::results_type& hosts);
  asio::awaitable<asio::error_code> connect(tcp::socket& socket, const tcp::resolver::results_type& hosts);
  void on_message(const Message& message);
  void shake_hands(const Message& message);
  void end(const std::string& message, int exit_code);
  void be_over(const std::string& message, int exit_code);

  // On any other thread.
  void await_arrival();
  void send(Message message, bool is_last = false);
  std::string ask(Message question);
  void leave();
  void watch_farewell(int exit_code);

  Options options;
  std::string secret;  // rank 0 has one in any case
  asio::io_context io;
  asio::steady_timer farewell{io};         // of a rank that failed
  // The thread stays when the others have left: a rank may fail after them.
  asio::executor_work_guard<asio::io_context::executor_type> is_needed{io.get_executor()};
  std::optional<RendezvousServer> server;  // rank 0's
  std::chrono::steady_clock::time_point deadline;
  Connection* connection = nullptr;
  Handshake handshake;  // of that connection
  bool is_admitted = false;

  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  enum class Phase : std::uint8_t { arriving, together, over } phase = Phase::arriving;
  bool has_met = false;  // all were there, whatever happened since
  std::string end_message;
  int end_code = exit_environment;
  bool has_left = false;        // said goodbye or reported a failure
  bool ignores_losses = false;  // what happens to others no longer ends this process
  std::uint32_t next_question = 0;
  std::map<std::uint32_t, std::string> answers;
  std::string own_address = "127.0.0.1";
  std::map<std::string, std::string> own_values;  // of a rank that is alone

  int exceptions_at_start = std::uncaught_exceptions();
  std::thread thread;
};

Rendezvous::State::State(Options given) : options(std::move(given)), secret(secret_of(options.world)) {
  const World& world = options.world;
  if (!options.on_lost) {
    options.on_lost = [world](const std::string& message, int exit_code) {
      end_process(world, message, exit_code);
    };
  }
  if (world.size == 1)
    return;
  deadline = std::chrono::steady_clock::now() + options.connect_timeout;
  if (world.rank == 0) {
    server.emplace(io, open_meeting_port(io, world),
                   RendezvousServer::Options{.size = world.size,
                                             .arrival_timeout = options.connect_timeout,
                                             .silence_timeout = options.silence_timeout,
                                             .secret = world.secret,
                                             .secret_of_rank_0 = secret});
    server->start();
  }
  asio::co_spawn(io, attend(), asio::detached);
  thread = std::thread([this] { io.run(); });
}

Rendezvous::State::~State() {
  asio::post(io, [this] { farewell.cancel(); });
  is_needed.reset();
  if (thread.joinable())
    thread.join();
}

void Rendezvous::State::watch_farewell(int exit_code) {
  asio::post(io, [this, exit_code] {
    farewell.expires_after(options.farewell_timeout);
    farewell.async_wait([this, exit_code](const asio::error_code& error) {
      if (!error)
        options.on_lost("what this rank uses cannot be given back in time", exit_code);
    });
  });
}

asio::awaitable<void> Rendezvous::State::attend() {
  const std::string place = fmt::format("{}:{}", options.world.address, options.world.port);
  std::string reason;
  try {
    const tcp::resolver::results_type hosts = co_await resolve();
    while (!is_admitted) {
      reason = co_await visit(hosts);
      if (!is_admitted && std::chrono::steady_clock::now() > deadline) {
        co_return end(fmt::format("cannot reach rank 0 at {} within {:g} s ({})", place,
                                  std::chrono::duration<double>(options.connect_timeout).count(), reason),
                      exit_environment);
      }
      if (!is_admitted)
        co_await asio::steady_timer(io, pause_between_attempts).async_wait(use_awaitable);
    }
  } catch (const std::system_error& error) {
    co_return end(
        fmt::format("cannot find {}, MASTER_ADDR ({})", options.world.address, error.code().message()),
        exit_environment);
  }
  end(fmt::format("rank 0 was lost ({})", reason), exit_environment);
}

asio::awaitable<tcp::resolver::results_type> Rendezvous::State::resolve() {
  tcp::resolver resolver(io);
  co_return co_await resolver.async_resolve(address_of_rank_0(options.world),
                                            std::to_string(options.world.port), use_awaitable);
}

// One attempt to be admitted, and all that follows where it succeeds; returns how it ended.
asio::awaitable<std::string> Rendezvous::State::visit(const tcp::resolver::results_type& hosts) {
  tcp::socket socket(io);
  if (const asio::error_code error = co_await connect(socket, hosts))
    co_return error.message();
  Connection visited(std::move(socket), options.silence_timeout);
  connection = &visited;
  handshake = {};
  const std::string reason = co_await visited.run([this](const Message& message) { on_message(message); });
  connection = nullptr;
  const bool is_unheard = !is_admitted && !handshake.challenge.empty();
  co_return is_unheard ? fmt::format("{}; is {} the same for all ranks?", reason, secret_variable) : reason;
}

asio::awaitable<asio::error_code> Rendezvous::State::connect(tcp::socket& socket,
                                                             const tcp::resolver::results_type& hosts) {
  using namespace asio::experimental::awaitable_operators;  // NOLINT: what `||` of coroutines is
  asio::error_code error;
  asio::steady_timer timer(io, deadline);
  const auto first = co_await (asio::async_connect(socket, hosts, redirect_error(use_awaitable, error)) ||
                               timer.async_wait(use_awaitable));
  co_return first.index() == 0 ? error : asio::error_code(asio::error::timed_out);
}

// Nothing that the other end says is believed before it has shown that it knows the secret, too.
void Rendezvous::State::shake_hands(const Message& message) {
  const World& world = options.world;
  const bool is_challenged = !handshake.challenge.empty();
  if (message.kind == Message::Kind::challenge && !is_challenged && message.value.size() == nonce_bytes) {
    handshake = {.challenge = message.value,
                 .answer = draw_nonce(),
                 .rank = static_cast<std::uint32_t>(world.rank),
                 .world_size = world.size};
    return connection->send(
        {Message::Kind::hello, handshake.rank, protocol,
         join_values({std::to_string(world.size), handshake.answer, proof_of_rank(secret, handshake)})});
  }
  if (message.kind != Message::Kind::proof || !is_challenged ||
      !is_same_proof(message.value, proof_of_server(secret, handshake)))
    throw ProtocolError("what listens there is not this run's rank 0");
  connection->trust();
  is_admitted = true;
}

void Rendezvous::State::on_message(const Message& message) {
  if (!is_admitted)
    return shake_hands(message);
  switch (message.kind) {
    case Message::Kind::welcome: {
      const std::lock_guard lock(mutex);
      asio::error_code ignored;
      const asio::ip::address own = plain_address(connection->socket().local_endpoint(ignored).address());
      own_address = own.is_loopback() ? message.value : own.to_string();
      phase = Phase::together;
      has_met = true;
      break;
    }
    case Message::Kind::answer: {
      const std::lock_guard lock(mutex);
      answers[message.number] = message.value;
      break;
    }
    case Message::Kind::refusal:
    case Message::Kind::failure:
      connection->close_when_sent();
      return end(reason_of(message), exit_code_of(message));
    case Message::Kind::goodbye:
      connection->close_when_sent();
      return be_over("this rank has left", exit_environment);
    case Message::Kind::alive:
      return;
    default:
      throw ProtocolError("a message that only ranks send");
  }
  changed.notify_all();
}

// Those who wait are told last: the process should end by what `on_lost` says, not by what they throw.
void Rendezvous::State::end(const std::string& message, int exit_code) {
  bool is_lost = false;
  {
    const std::lock_guard lock(mutex);
    is_lost = phase == Phase::together && !ignores_losses;
    if (phase == Phase::over)
      return;
  }
  if (is_lost)
    options.on_lost(message, exit_code);
  be_over(message, exit_code);
}

void Rendezvous::State::be_over(const std::string& message, int exit_code) {
  {
    const std::lock_guard lock(mutex);
    phase = Phase::over;
    end_message = message;
    end_code = exit_code;
  }
  changed.notify_all();
}

void Rendezvous::State::await_arrival() {
  if (options.world.size == 1)
    return;
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return phase != Phase::arriving; });
  if (has_met)
    return;
  if (end_code == exit_wrong_input)
    throw ConfigError(end_message);
  throw EnvironmentError(end_message);
}

void Rendezvous::State::send(Message message, bool is_last) {
  asio::post(io, [this, is_last, sent = std::move(message)] {
    if (connection == nullptr)
      return;
    connection->send(sent);
    if (is_last)
      connection->close_when_sent();
  });
}

std::string Rendezvous::State::ask(Message question) {
  std::unique_lock lock(mutex);
  const std::uint32_t number = question.number = next_question++;
  send(std::move(question));
  changed.wait(lock, [&] { return answers.contains(number) || phase == Phase::over; });
  if (!answers.contains(number))
    throw EnvironmentError(end_message);
  return std::move(answers.extract(number).mapped());
}

void Rendezvous::State::leave() {
  {
    const std::lock_guard lock(mutex);
    if (has_left || phase != Phase::together)
      return;
    has_left = true;
    ignores_losses = options.world.rank != 0;  // rank 0 hears of losses until all others have left
  }
  send({.kind = Message::Kind::goodbye});
}

Rendezvous::Rendezvous(Options options) : state_(std::make_unique<State>(std::move(options))) {
  state_->await_arrival();
}

Rendezvous::~Rendezvous() {
  if (world().size == 1)
    return;
  if (std::uncaught_exceptions() > state_->exceptions_at_start)
    report_failure("it ended early", exit_environment);
  state_->leave();
}

const World& Rendezvous::world() const {
  return state_->options.world;
}

void Rendezvous::set(const std::string& key, const std::string& value) {
  if (world().size == 1)
    state_->own_values[key] = value;
  else
    state_->send({.kind = Message::Kind::set, .key = key, .value = value});
}

std::string Rendezvous::get(const std::string& key) {
  if (world().size > 1)
    return state_->ask({.kind = Message::Kind::get, .key = key});
  LOCKSTEP_CHECK(state_->own_values.contains(key), "a rank that is alone gets what it has set before");
  return state_->own_values.at(key);
}

void Rendezvous::barrier(const std::string& name) {
  exchange("barrier/" + name, std::string());
}

std::vector<std::string> Rendezvous::exchange(const std::string& name, const std::string& value) {
  if (world().size == 1)
    return {value};
  std::vector<std::string> values =
      split_values(state_->ask({.kind = Message::Kind::gather, .key = name, .value = value}));
  if (values.size() != static_cast<std::size_t>(world().size))
    throw ProtocolError("rank 0 answers with other values than those of all ranks");
  return values;
}

std::vector<double> Rendezvous::exchange(const std::string& name, double value) {
  std::vector<double> values;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (const std::string& text : exchange("number/" + name, fmt::format("{}", bits)))
    values.push_back(std::bit_cast<double>(to_number(text)));
  return values;
}

void Rendezvous::check_same(const std::string& what, const std::string& text) {
  const std::vector<std::string> texts = exchange("same/" + what, text);
  std::vector<std::string> problems{fmt::format("ranks differ in {}; rank 0 has {}", what, texts.front())};
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] != texts.front())
      problems.push_back(fmt::format("rank {} has {}", rank, texts[rank]));
  }
  if (problems.size() == 1)
    return;
  // All ranks leave for the same reason and of their own accord: nobody is lost.
  state_->leave();
  throw ConfigError(problems);
}

void Rendezvous::report_failure(const std::string& why, int exit_code) {
  if (world().size == 1)
    return;
  bool is_heard = false;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->has_left)
      return;
    is_heard = state_->phase == State::Phase::together;
    state_->has_left = is_heard;
    state_->ignores_losses = true;
  }
  if (is_heard)
    state_->send({Message::Kind::failure, static_cast<std::uint32_t>(exit_code), {}, why}, true);
  state_->watch_farewell(exit_code);
}

void Rendezvous::wait_for_loss(std::chrono::milliseconds most) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, most, [this] { return state_->phase == State::Phase::over; });
}

const std::string& Rendezvous::own_address() const {
  return state_->own_address;
}

}  // namespace lockstep::harness
