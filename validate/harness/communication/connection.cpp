#include "validate/harness/communication/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <asio/experimental/awaitable_operators.hpp>
#include <utility>
#include <variant>

namespace lockstep::harness {
namespace {

using asio::redirect_error;
using asio::use_awaitable;

constexpr std::size_t most_read_at_once = std::size_t{1} << 16;

std::string describe_end(const asio::error_code& error) {
  if (error == asio::error::eof || error == asio::error::connection_reset ||
      error == asio::error::broken_pipe)
    return "connection closed";
  return error.message();
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, std::chrono::milliseconds silence_timeout)
    : socket_(std::move(socket)),
      beat_(silence_timeout / silent_beats),
      next_beat_(socket_.get_executor()),
      more_to_send_(socket_.get_executor(), asio::steady_timer::time_point::max()) {
  asio::error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

asio::awaitable<std::string> Connection::run(std::function<void(const Message&)> on_message) {
  using namespace asio::experimental::awaitable_operators;  // NOLINT: what `||` of coroutines is
  const auto end = co_await (read_all(on_message) || write_all() || watch());
  co_return std::visit([](const std::string& reason) { return reason; }, end);
}

void Connection::trust() {
  is_trusted_ = true;
}

void Connection::send(const Message& message) {
  if (closes_when_sent_)
    return;
  outbox_ += encode(message);
  more_to_send_.cancel();
}

void Connection::close_when_sent() {
  closes_when_sent_ = true;
  more_to_send_.cancel();
}

void Connection::abort() {
  asio::error_code ignored;
  socket_.close(ignored);
}

// Piece by piece: a length that was only announced takes no memory.
asio::awaitable<asio::error_code> Connection::read_into(std::string& bytes, std::size_t size) {
  asio::error_code error;
  bytes.clear();
  while (!error && bytes.size() < size) {
    const std::size_t before = bytes.size();
    bytes.resize(std::min(size, before + most_read_at_once));
    co_await asio::async_read(socket_, asio::buffer(bytes) + before, redirect_error(use_awaitable, error));
  }
  co_return error;
}

asio::awaitable<std::string> Connection::read_all(const std::function<void(const Message&)>& on_message) {
  std::string bytes;
  for (;;) {
    if (const asio::error_code error = co_await read_into(bytes, length_bytes))
      co_return describe_end(error);
    try {
      const std::uint32_t size = decode_length(bytes, is_trusted_ ? most_message_bytes : most_first_bytes);
      if (const asio::error_code error = co_await read_into(bytes, size))
        co_return describe_end(error);
      heard_ = is_trusted_;
      on_message(decode(bytes));
    } catch (const ProtocolError& problem) {
      co_return problem.what();
    }
  }
}

asio::awaitable<std::string> Connection::write_all() {
  asio::error_code error;
  for (;;) {
    while (!outbox_.empty()) {
      const std::string bytes = std::exchange(outbox_, {});
      co_await asio::async_write(socket_, asio::buffer(bytes), redirect_error(use_awaitable, error));
      if (error)
        co_return describe_end(error);
    }
    // A close with signs of life unread would make the kernel forget what is not yet delivered: so only this
    // direction ends here, and the reader goes on until the other end has closed.
    if (closes_when_sent_)
      socket_.shutdown(asio::ip::tcp::socket::shutdown_send, error);
    co_await more_to_send_.async_wait(redirect_error(use_awaitable, error));
  }
}

asio::awaitable<std::string> Connection::watch() {
  int quiet_beats = 0;
  while (quiet_beats < silent_beats) {
    next_beat_.expires_after(beat_);
    co_await next_beat_.async_wait(use_awaitable);
    quiet_beats = std::exchange(heard_, false) ? 0 : quiet_beats + 1;
    if (is_trusted_)
      send({.kind = Message::Kind::alive});
  }
  co_return fmt::format("silent for {:g} s", std::chrono::duration<double>(beat_ * silent_beats).count());
}

asio::ip::address plain_address(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  return address;
}

}  // namespace lockstep::harness
