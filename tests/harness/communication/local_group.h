#pragma once

// Ranks as threads of one process, who meet at a port that was free a moment ago and is held since.

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <vector>

#include "validate/harness/communication/rendezvous.h"

namespace lockstep::harness {

// A socket that listens at a free port of this machine; whoever serves it closes it.
struct Listener {
  int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  int port = 0;

  Listener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(::bind(socket, generic, size) == 0);
    REQUIRE(::listen(socket, 64) == 0);
    REQUIRE(::getsockname(socket, generic, &size) == 0);
    port = ntohs(address.sin_port);
  }
};

inline constexpr const char* known_secret = "known to the ranks of tests alone";

inline Rendezvous::Options options_of(const Listener& listener, int rank, int size) {
  Rendezvous::Options options;
  options.world = {.rank = rank,
                   .size = size,
                   .local_rank = rank,
                   .local_size = size,
                   .port = listener.port,
                   .listener = rank == 0 ? listener.socket : -1,
                   .secret = known_secret};
  return options;
}

// Runs each function in a thread; the first exception comes out of `get` of its future.
template <class Function>
std::vector<std::future<void>> start_ranks(int size, Function function) {
  std::vector<std::future<void>> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(std::async(std::launch::async, function, rank));
  return ranks;
}

inline void join(std::vector<std::future<void>>& ranks) {
  for (std::future<void>& rank : ranks) rank.get();
}

}  // namespace lockstep::harness
