#include "validate/harness/communication/meeting_port.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <optional>
#include <string>

#include "sim/base/error.h"

namespace lockstep::harness::meeting_port_test {

using asio::ip::tcp;

// Of this machine's addresses one that others could use.
std::optional<std::string> outside_address() {
  ifaddrs* first = nullptr;
  REQUIRE(::getifaddrs(&first) == 0);
  std::optional<std::string> found;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET ||
        (one->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto* const address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    found = ::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
  }
  ::freeifaddrs(first);
  return found;
}

bool is_reached(const std::string& address, asio::ip::port_type port) {
  asio::io_context io;
  tcp::socket socket(io);
  asio::error_code error;
  socket.connect({asio::ip::make_address(address), port}, error);
  return !error;
}

TEST_CASE("Where no host is named rank 0 listens on this machine for this machine alone") {
  for (const char* address : {"127.0.0.1", "localhost"}) {
    asio::io_context io;
    const tcp::acceptor acceptor = open_meeting_port(io, {.size = 2, .address = address, .port = 0});
    const auto port = acceptor.local_endpoint().port();
    CHECK(acceptor.local_endpoint().address().is_loopback());
    CHECK(is_reached("127.0.0.1", port));
    if (const auto outside = outside_address())
      CHECK_FALSE(is_reached(*outside, port));
  }
}

TEST_CASE("Where a host is named rank 0 listens at each of its addresses") {
  asio::io_context io;
  const tcp::acceptor acceptor = open_meeting_port(io, {.size = 2, .address = "node0", .port = 0});
  const auto port = acceptor.local_endpoint().port();
  CHECK(is_reached("127.0.0.1", port));
  if (const auto outside = outside_address())
    CHECK(is_reached(*outside, port));
}

TEST_CASE("Only a host that is named lets others in, and rank 0 finds itself in any case") {
  struct Case {
    const char* address;
    bool is_open;
    const char* own;
  };
  for (const Case& one : {Case{"127.0.0.1", false, "127.0.0.1"}, Case{"127.0.1.1", false, "127.0.1.1"},
                          Case{"localhost", false, "127.0.0.1"}, Case{"::1", false, "::1"},
                          Case{"::ffff:127.0.0.1", false, "127.0.0.1"}, Case{"10.0.0.1", true, "127.0.0.1"},
                          Case{"0.0.0.0", true, "127.0.0.1"}, Case{"node0", true, "127.0.0.1"}}) {
    World world{.size = 2, .address = one.address};
    CHECK(is_open_to_others(world) == one.is_open);
    CHECK(address_of_rank_0(world) == one.own);
    world.rank = 1;
    CHECK(address_of_rank_0(world) == one.address);
    world.listener = 3;  // the launcher's, on loopback
    CHECK_FALSE(is_open_to_others(world));
  }
}

}  // namespace lockstep::harness::meeting_port_test
