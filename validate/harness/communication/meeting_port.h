#pragma once

// The port at which rank 0 listens.
//
// Problem:   an open port is open to everybody who reaches the machine.
// Idea:      where MASTER_ADDR is this machine for itself (nothing was set, 127.0.0.1, localhost, ::1), nobody else
//            need reach it: rank 0 listens there alone. Where it names a host, rank 0 listens at every address, since
//            the name may be another's for this machine (a container's, a translated address).
// Errors:    ConfigError for a port that is taken or may not be used.

#include <asio.hpp>
#include <string>

#include "validate/harness/communication/world.h"

namespace lockstep::harness {

// The world's listener where it has inherited one.
asio::ip::tcp::acceptor open_meeting_port(asio::io_context& io, const World& world);

bool is_open_to_others(const World& world);

// Where this rank looks for rank 0, which finds itself where a name or a firewall cannot be in the way.
std::string address_of_rank_0(const World& world);

}  // namespace lockstep::harness
