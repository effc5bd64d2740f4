#include "validate/harness/communication/rendezvous_server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "sim/base/failure.h"

namespace lockstep::harness {
namespace {

using asio::redirect_error;
using asio::use_awaitable;

// How long a verdict waits for those who are connected, and a refusal for those who are still to come.
constexpr std::chrono::milliseconds most_farewell{1'000};
constexpr std::chrono::milliseconds most_linger{3'000};
// Before another connection is asked for where none could be taken and none be given up: it would fail again.
constexpr std::chrono::milliseconds pause_without_descriptors{50};

int to_number(const std::string& text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

RendezvousServer::RendezvousServer(asio::io_context& io, asio::ip::tcp::acceptor acceptor, Options options)
    : io_(io),
      acceptor_(std::move(acceptor)),
      deadline_(io),
      options_(std::move(options)),
      members_(static_cast<std::size_t>(options_.size)),
      expected_(options_.size),
      values_(members_.size()) {}

void RendezvousServer::start() {
  asio::co_spawn(io_, accept_all(), asio::detached);
  asio::co_spawn(io_, await_arrivals(), asio::detached);
}

asio::awaitable<void> RendezvousServer::accept_all() {
  asio::error_code error;
  asio::steady_timer pause(io_);
  while (acceptor_.is_open()) {
    asio::ip::tcp::socket socket(io_);
    co_await acceptor_.async_accept(socket, redirect_error(use_awaitable, error));
    if (!error) {
      asio::co_spawn(io_, serve(std::move(socket)), asio::detached);
    } else if (acceptor_.is_open() && !drop_oldest_stranger()) {
      pause.expires_after(pause_without_descriptors);
      co_await pause.async_wait(redirect_error(use_awaitable, error));
    }
  }
}

asio::awaitable<void> RendezvousServer::await_arrivals() {
  asio::error_code ignored;
  deadline_.expires_after(options_.arrival_timeout);
  co_await deadline_.async_wait(redirect_error(use_awaitable, ignored));
  if (is_complete() || verdict_)
    co_return;
  std::vector<int> missing;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!members_[static_cast<std::size_t>(rank)].has_come)
      missing.push_back(rank);
  }
  const double seconds = std::chrono::duration<double>(options_.arrival_timeout).count();
  end_all(fmt::format("{} {} of {} did not come within {:g} s{}", missing.size() == 1 ? "rank" : "ranks",
                      fmt::join(missing, ", "), options_.size, seconds,
                      conflict_.empty() ? "" : fmt::format(" (somebody was refused: {})", conflict_)),
          exit_environment);
}

asio::awaitable<void> RendezvousServer::serve(asio::ip::tcp::socket socket) {
  Connection connection(std::move(socket), options_.silence_timeout);
  Visit visit{connection, draw_nonce()};
  if (strangers_.size() == most_strangers)
    drop_oldest_stranger();
  strangers_.push_back(&connection);
  connection.send({.kind = Message::Kind::challenge, .value = visit.challenge});
  const std::string end =
      co_await connection.run([this, &visit](const Message& message) { on_message(visit, message); });
  std::erase(strangers_, &connection);
  on_end(visit, end);
}

void RendezvousServer::on_message(Visit& visit, const Message& message) {
  if (visit.rank >= 0)
    answer(visit.rank, message);
  else if (!visit.has_spoken)
    admit(visit, message);
}

// Throws ProtocolError for all but the hello of somebody who knows the secret.
Handshake RendezvousServer::read_hello(const Visit& visit, const Message& hello) const {
  if (hello.kind != Message::Kind::hello || hello.key != protocol)
    throw ProtocolError("no hello");
  const std::vector<std::string> parts = split_values(hello.value);
  if (parts.size() != 3 || parts[1].size() != nonce_bytes)
    throw ProtocolError("a hello without its parts");
  const Handshake handshake{.challenge = visit.challenge,
                            .answer = parts[1],
                            .rank = hello.number,
                            .world_size = to_number(parts[0])};
  if (!is_same_proof(parts[2], proof_of_rank(secret_of(handshake), handshake)))
    throw ProtocolError("another secret");
  return handshake;
}

void RendezvousServer::admit(Visit& visit, const Message& hello) {
  const Handshake handshake = read_hello(visit, hello);
  visit.has_spoken = true;
  visit.connection.send(
      {.kind = Message::Kind::proof, .value = proof_of_server(secret_of(handshake), handshake)});
  if (knows_its_ranks()) {
    std::erase(strangers_, &visit.connection);
    ++visitors_;
    expected_ = std::max(expected_, handshake.world_size);
  }
  if (verdict_) {
    deadline_.cancel();
    return refuse(visit.connection, verdict_->value, static_cast<int>(verdict_->number));
  }
  const std::string conflict = conflict_of(handshake.rank, handshake.world_size);
  if (conflict.empty())
    take_seat(visit, handshake);
  else
    on_conflict(visit.connection, conflict);
}

void RendezvousServer::take_seat(Visit& visit, const Handshake& handshake) {
  visit.rank = static_cast<int>(handshake.rank);
  visit.connection.trust();
  std::erase(strangers_, &visit.connection);
  members_[handshake.rank] = {.connection = &visit.connection, .has_come = true};
  ++arrived_;
  if (is_complete())
    welcome_all();
}

// A group that is complete goes on: the stray process is not of it. One that is not is as its launcher made it, wrong,
// if whoever came is known to be of it.
void RendezvousServer::on_conflict(Connection& connection, const std::string& conflict) {
  refuse(connection, conflict, exit_wrong_input);
  if (is_complete())
    return;
  if (knows_its_ranks())
    end_all(conflict, exit_wrong_input);
  else
    conflict_ = conflict;
}

// Why this rank cannot be a member; nothing where it can.
std::string RendezvousServer::conflict_of(std::size_t rank, int size) const {
  if (size != options_.size) {
    return fmt::format("rank {} is told that there are {} ranks, rank 0 that there are {}", rank, size,
                       options_.size);
  }
  if (rank >= members_.size())
    return fmt::format("rank {} does not exist among {} ranks", rank, options_.size);
  if (members_[rank].has_come)
    return fmt::format("two processes are told that they are rank {} of {}", rank, options_.size);
  return {};
}

void RendezvousServer::welcome_all() {
  deadline_.cancel();
  const std::string address = outside_address();
  for (int rank = 0; rank < options_.size; ++rank)
    send_to(rank, {.kind = Message::Kind::welcome, .value = address});
}

// Where somebody reached this process from another machine; without such, where all did.
std::string RendezvousServer::outside_address() const {
  asio::ip::address address = asio::ip::address_v4::loopback();
  for (const Member& member : members_) {
    asio::error_code error;
    if (member.connection == nullptr)
      continue;
    const auto end = member.connection->socket().local_endpoint(error);
    if (!error && !plain_address(end.address()).is_loopback())
      address = plain_address(end.address());
  }
  return address.to_string();
}

void RendezvousServer::answer(int rank, const Message& message) {
  if (!is_complete() && message.kind != Message::Kind::alive)
    throw ProtocolError("a message before all are there");
  const SharedValues::Question question{rank, message.number};
  switch (message.kind) {
    case Message::Kind::set:
      return send_answers(values_.set(message.key, message.value));
    case Message::Kind::get:
      return send_answers(values_.get(question, message.key));
    case Message::Kind::gather:
      return send_answers(values_.gather(question, message.key, message.value));
    case Message::Kind::goodbye:
      return take_leave(rank);
    case Message::Kind::failure: {
      members_[static_cast<std::size_t>(rank)].connection->close_when_sent();
      return end_all(fmt::format("rank {} failed: {}", rank, reason_of(message)), exit_code_of(message));
    }
    case Message::Kind::alive:
      return;
    default:
      throw ProtocolError("a message that only the server sends");
  }
}

void RendezvousServer::send_answers(const std::vector<SharedValues::Answer>& answers) {
  for (const auto& [question, value] : answers)
    send_to(question.rank, {Message::Kind::answer, question.number, {}, value});
}

// Rank 0 is let go last: until then it is this process that hears of losses.
void RendezvousServer::take_leave(int rank) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  if (std::exchange(member.has_left, true))
    return;
  ++left_;
  if (rank != 0) {
    send_to(rank, {.kind = Message::Kind::goodbye});
    member.connection->close_when_sent();
  }
  if (left_ < options_.size)
    return;
  stop_accepting();
  send_to(0, {.kind = Message::Kind::goodbye});
  if (Connection* const own = members_.front().connection)
    own->close_when_sent();
}

void RendezvousServer::on_end(const Visit& visit, const std::string& reason) {
  if (visit.rank < 0)
    return;
  Member& member = members_[static_cast<std::size_t>(visit.rank)];
  member.connection = nullptr;
  if (!is_complete() && !verdict_ && !knows_its_ranks()) {
    member = {};  // whoever this was, its place is free again
    --arrived_;
  } else if (verdict_)
    deadline_.cancel();
  else if (left_ < options_.size && (!member.has_left || visit.rank == 0))
    end_all(fmt::format("rank {} was lost ({})", visit.rank, reason), exit_environment);
}

void RendezvousServer::refuse(Connection& connection, const std::string& why, int exit_code) {
  connection.send({Message::Kind::refusal, static_cast<std::uint32_t>(exit_code), {}, why});
  connection.close_when_sent();
}

void RendezvousServer::end_all(const std::string& why, int exit_code) {
  if (verdict_)
    return;
  const auto kind = is_complete() ? Message::Kind::failure : Message::Kind::refusal;
  verdict_ = Message{kind, static_cast<std::uint32_t>(exit_code), {}, why};
  asio::co_spawn(io_, tell_all(), asio::detached);
}

bool RendezvousServer::somebody_must_hear() const {
  const bool somebody_comes = verdict_->number == exit_wrong_input && visitors_ < expected_;
  return somebody_comes || std::any_of(members_.begin() + 1, members_.end(),
                                       [](const Member& member) { return member.connection != nullptr; });
}

asio::awaitable<void> RendezvousServer::tell_all() {
  for (int rank = 1; rank < options_.size; ++rank) {
    send_to(rank, *verdict_);
    if (Connection* const connection = members_[static_cast<std::size_t>(rank)].connection)
      connection->close_when_sent();
  }
  asio::error_code ignored;
  deadline_.expires_after(visitors_ < expected_ ? most_linger : most_farewell);
  while (somebody_must_hear() && deadline_.expiry() > std::chrono::steady_clock::now())
    co_await deadline_.async_wait(redirect_error(use_awaitable, ignored));
  for (auto member = members_.begin() + 1; member != members_.end(); ++member) {
    if (member->connection != nullptr)
      member->connection->abort();
  }
  send_to(0, *verdict_);
  if (Connection* const own = members_.front().connection)
    own->close_when_sent();
  stop_accepting();
}

void RendezvousServer::stop_accepting() {
  asio::error_code ignored;
  acceptor_.close(ignored);
  for (Connection* const stranger : strangers_) stranger->abort();
}

bool RendezvousServer::drop_oldest_stranger() {
  if (strangers_.empty())
    return false;
  strangers_.front()->abort();
  strangers_.erase(strangers_.begin());
  return true;
}

void RendezvousServer::send_to(int rank, const Message& message) {
  if (Connection* const connection = members_[static_cast<std::size_t>(rank)].connection)
    connection->send(message);
}

}  // namespace lockstep::harness
