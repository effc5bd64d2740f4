#pragma once

// Rank 0's side of a rendezvous: who is there, what they told, and who is gone.
//
// Problem:   see rendezvous.h. All ranks must hear the same verdict, the ones that come late too.
// Idea:      one coroutine a connection, all on one thread. Whoever shows the run's secret in its hello becomes a
//            member; anything else is closed without a word to the members. A verdict against the whole group
//            (a refusal before all are there, a failure after) goes to rank 0 last, since this process ends
//            with it.
// Invariant: the server ends, and with it the thread's work, when all members have said goodbye or a verdict
//            has been told to all; a verdict is final. Where the run has no secret, who says hello may be anybody: it
//            speaks for its own connection alone until all are there, so what is wrong with it ends nothing else; and it
//            is never rank 0.
//            At most `most_strangers` are kept; beyond them, and where descriptors end, the oldest goes.

#include <asio.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "validate/harness/communication/connection.h"
#include "validate/harness/communication/message.h"
#include "validate/harness/communication/proof.h"
#include "validate/harness/communication/shared_values.h"

namespace lockstep::harness {

class RendezvousServer {
 public:
  static constexpr std::size_t most_strangers = 512;

  struct Options {
    int size = 1;
    std::chrono::milliseconds arrival_timeout{};
    std::chrono::milliseconds silence_timeout{};
    std::string secret;
    std::string secret_of_rank_0;  // this process's own, where the run has none
  };

  RendezvousServer(asio::io_context& io, asio::ip::tcp::acceptor acceptor, Options options);
  void start();

 private:
  struct Member {
    Connection* connection = nullptr;  // while it is there
    bool has_come = false;
    bool has_left = false;  // in good order
  };
  // One connection, from its beginning to its end.
  struct Visit {
    Connection& connection;
    std::string challenge;
    int rank = -1;  // of a member
    bool has_spoken = false;
  };

  asio::awaitable<void> accept_all();
  asio::awaitable<void> await_arrivals();
  asio::awaitable<void> serve(asio::ip::tcp::socket socket);
  asio::awaitable<void> tell_all();

  void on_message(Visit& visit, const Message& message);
  Handshake read_hello(const Visit& visit, const Message& hello) const;
  void admit(Visit& visit, const Message& hello);
  void take_seat(Visit& visit, const Handshake& handshake);
  void on_conflict(Connection& connection, const std::string& conflict);
  std::string conflict_of(std::size_t rank, int size) const;
  bool is_complete() const { return arrived_ == options_.size; }
  const std::string& secret_of(const Handshake& handshake) const {
    return handshake.rank == 0 ? options_.secret_of_rank_0 : options_.secret;
  }
  bool knows_its_ranks() const { return !options_.secret.empty(); }
  void welcome_all();
  void answer(int rank, const Message& message);
  void send_answers(const std::vector<SharedValues::Answer>& answers);
  void take_leave(int rank);
  void on_end(const Visit& visit, const std::string& reason);

  static void refuse(Connection& connection, const std::string& why, int exit_code);
  void end_all(const std::string& why, int exit_code);
  bool somebody_must_hear() const;
  void stop_accepting();
  bool drop_oldest_stranger();  // false: there is none
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
  int visitors_ = 0;                    // who is known to be of the run
  std::vector<Connection*> strangers_;  // who is not known to be of the run
  std::optional<Message> verdict_;
  std::string conflict_;  // of somebody who was refused alone
  SharedValues values_;
};

}  // namespace lockstep::harness
