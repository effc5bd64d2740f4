#include "validate/harness/communication/meeting_port.h"

#include <fmt/format.h>

#include <optional>

#include "sim/base/error.h"
#include "validate/harness/communication/connection.h"

namespace lockstep::harness {
namespace {

using asio::ip::tcp;

[[noreturn]] void throw_unusable_port(int port, const asio::error_code& error) {
  if (error == asio::error::address_in_use)
    throw ConfigError(fmt::format("port {} is taken; --port or MASTER_PORT chooses another", port));
  throw ConfigError(fmt::format("port {} cannot be used ({}); --port or MASTER_PORT chooses another", port,
                                error.message()));
}

// Of a host that is this machine for itself.
std::optional<asio::ip::address> loopback_of(const std::string& host) {
  if (host == "localhost")
    return asio::ip::address_v4::loopback();
  asio::error_code error;
  const asio::ip::address address = plain_address(asio::ip::make_address(host, error));
  return !error && address.is_loopback() ? std::optional(address) : std::nullopt;
}

tcp::acceptor listen_at(tcp::acceptor acceptor, const tcp::endpoint& endpoint) {
  asio::error_code error;
  acceptor.set_option(tcp::acceptor::reuse_address(true));
  if (acceptor.bind(endpoint, error); error)
    throw_unusable_port(endpoint.port(), error);
  if (acceptor.listen(asio::socket_base::max_listen_connections, error); error)
    throw_unusable_port(endpoint.port(), error);
  return acceptor;
}

// Of IPv6 and IPv4 alike; of IPv4 alone where the machine has nothing else.
tcp::acceptor listen_everywhere(asio::io_context& io, asio::ip::port_type port) {
  tcp::acceptor acceptor(io);
  asio::error_code error;
  if (acceptor.open(tcp::v6(), error); error) {
    acceptor.open(tcp::v4());
    return listen_at(std::move(acceptor), {tcp::v4(), port});
  }
  acceptor.set_option(asio::ip::v6_only(false));
  return listen_at(std::move(acceptor), {tcp::v6(), port});
}

}  // namespace

tcp::acceptor open_meeting_port(asio::io_context& io, const World& world) {
  if (world.listener >= 0)
    return tcp::acceptor(io, tcp::v4(), world.listener);
  const auto port = static_cast<asio::ip::port_type>(world.port);
  if (const auto address = loopback_of(world.address)) {
    const tcp::endpoint endpoint(*address, port);
    return listen_at(tcp::acceptor(io, endpoint.protocol()), endpoint);
  }
  return listen_everywhere(io, port);
}

bool is_open_to_others(const World& world) {
  return world.listener < 0 && !loopback_of(world.address);
}

std::string address_of_rank_0(const World& world) {
  if (world.rank != 0)
    return world.address;
  return loopback_of(world.address).value_or(asio::ip::address_v4::loopback()).to_string();
}

}  // namespace lockstep::harness
