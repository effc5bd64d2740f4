#pragma once

// One end of a connection between a rank and the rendezvous server.
//
// Problem:   a peer may die without a word, stop answering, or never have been one of ours.
// Idea:      three coroutines of one thread run while a connection lives: one reads, one writes what was
//            queued, one sends a sign of life each beat and counts beats without any. The first to end ends
//            all.
// Invariant: a peer is silent when `silent_beats` beats in a row brought no whole message. Beats are counted, not
//            time: a process that was suspended itself hears of its peers in time. A peer that is not trusted yet has
//            these beats in all, hears no sign of life, and may send `most_first_bytes` at once: what it makes this
//            process hold is below 64 KiB. Of longer messages no more is held than has come.

#include <asio.hpp>
#include <chrono>
#include <functional>
#include <string>

#include "validate/harness/communication/message.h"

namespace lockstep::harness {

class Connection {
 public:
  static constexpr int silent_beats = 6;

  Connection(asio::ip::tcp::socket socket, std::chrono::milliseconds silence_timeout);

  // Until the connection ends; returns how it did: "connection closed", "silent for 6 s", ...
  asio::awaitable<std::string> run(std::function<void(const Message&)> on_message);

  void trust();  // the other end has shown that it is of the run
  void send(const Message& message);
  // Nothing is sent after what is queued; `run` ends when the other end closes too, or falls silent.
  void close_when_sent();
  void abort();  // now

  const asio::ip::tcp::socket& socket() const { return socket_; }

 private:
  asio::awaitable<std::string> read_all(const std::function<void(const Message&)>& on_message);
  asio::awaitable<asio::error_code> read_into(std::string& bytes, std::size_t size);
  asio::awaitable<std::string> write_all();
  asio::awaitable<std::string> watch();

  asio::ip::tcp::socket socket_;
  std::chrono::milliseconds beat_;
  asio::steady_timer next_beat_;
  asio::steady_timer more_to_send_;  // never expires; cancelled when there is something to do
  std::string outbox_;
  bool is_trusted_ = false;
  bool heard_ = false;
  bool closes_when_sent_ = false;
};

// IPv4 within IPv6 as IPv4.
asio::ip::address plain_address(const asio::ip::address& address);

}  // namespace lockstep::harness
