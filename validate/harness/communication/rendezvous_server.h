#pragma once

// Rank 0's side of a rendezvous: who is there, what they told, and who is gone.
//
// Problem:   see rendezvous.h. All ranks must hear the same verdict, the ones that come late too.
// Idea:      one coroutine a connection, all on one thread. Whoever says hello in the right words becomes a
//            member; anything else is closed without a word to the members. A verdict against the whole group
//            (a refusal before all are there, a failure after) goes to rank 0 last, since this process ends
//            with it.
// Invariant: the server ends, and with it the thread's work, when all members have said goodbye or a verdict
//            has been told to all; a verdict is final.

#include <asio.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validate/harness/communication/connection.h"
#include "validate/harness/communication/message.h"

namespace lockstep::harness {

class RendezvousServer {
 public:
  static constexpr const char* protocol = "lockstep-rendezvous/1";

  struct Options {
    int size = 1;
    std::chrono::milliseconds arrival_timeout{};
    std::chrono::milliseconds silence_timeout{};
  };

  RendezvousServer(asio::io_context& io, asio::ip::tcp::acceptor acceptor, Options options);
  void start();

 private:
  struct Member {
    Connection* connection = nullptr;  // while it is there
    bool has_come = false;
    bool has_left = false;  // in good order
  };
  struct Question {
    int rank = 0;
    std::uint32_t number = 0;
  };
  struct Gathering {
    std::vector<std::string> values;
    std::vector<Question> questions;
  };
  // One connection, from its beginning to its end.
  struct Visit {
    Connection& connection;
    int rank = -1;  // of a member
    bool has_spoken = false;
  };

  asio::awaitable<void> accept_all();
  asio::awaitable<void> await_arrivals();
  asio::awaitable<void> serve(asio::ip::tcp::socket socket);
  asio::awaitable<void> tell_all();

  void on_message(Visit& visit, const Message& message);
  void admit(Visit& visit, const Message& hello);
  std::string conflict_of(std::size_t rank, int size) const;
  void welcome_all();
  void answer(int rank, const Message& message);
  void set(const std::string& key, const std::string& value);
  void gather(int rank, const Message& message);
  void take_leave(int rank);
  void on_end(const Visit& visit, const std::string& reason);

  static void refuse(Connection& connection, const std::string& why, int exit_code);
  void end_all(const std::string& why, int exit_code);
  bool somebody_must_hear() const;
  void stop_accepting();
  void send_to(int rank, const Message& message);
  std::string outside_address() const;

  asio::io_context& io_;
  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer deadline_;  // of arrivals; then of those who still have to hear a verdict
  Options options_;
  std::vector<Member> members_;
  int arrived_ = 0;
  int left_ = 0;
  int expected_ = 0;                    // the largest world size anybody spoke of
  int visitors_ = 0;                    // who said hello
  std::vector<Connection*> strangers_;  // who did not yet
  std::optional<Message> verdict_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<Question>> unanswered_;
  std::map<std::string, Gathering> gatherings_;
};

}  // namespace lockstep::harness
