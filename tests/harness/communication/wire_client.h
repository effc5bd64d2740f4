#pragma once

// Plain TCP to a meeting port, as anything may speak it.

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

#include "validate/harness/communication/message.h"
#include "validate/harness/communication/proof.h"

namespace lockstep::harness {

class WireClient {
 public:
  explicit WireClient(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    REQUIRE(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  WireClient(const WireClient&) = delete;
  WireClient& operator=(const WireClient&) = delete;
  WireClient(WireClient&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  WireClient& operator=(WireClient&&) = delete;
  ~WireClient() {
    if (socket_ >= 0)
      ::close(socket_);
  }

  // False where the other end has closed.
  bool send(const std::string& bytes) const {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  bool send(const Message& message) const { return send(encode(message)); }

  // Until the other end closes.
  void drain() const {
    char bytes[256];
    while (::recv(socket_, bytes, sizeof bytes, 0) > 0) {
    }
  }

  bool is_closed_within(std::chrono::milliseconds most) const {
    pollfd polled{.fd = socket_, .events = POLLIN | POLLRDHUP, .revents = 0};
    char byte = 0;
    return ::poll(&polled, 1, static_cast<int>(most.count())) == 1 &&
           ::recv(socket_, &byte, 1, MSG_PEEK) <= 0;
  }

  Message read() const {
    const std::uint32_t size = decode_length(read_bytes(length_bytes), most_message_bytes);
    return decode(read_bytes(size));
  }

  // The hello of a rank that knows `secret`, in answer to the challenge, which is read first.
  Message hello(std::uint32_t rank, int world_size, const std::string& secret) const {
    const Message challenge = read();
    REQUIRE(challenge.kind == Message::Kind::challenge);
    const Handshake handshake{challenge.value, draw_nonce(), rank, world_size};
    return {Message::Kind::hello, rank, protocol,
            join_values({std::to_string(world_size), handshake.answer, proof_of_rank(secret, handshake)})};
  }

 private:
  std::string read_bytes(std::size_t size) const {
    std::string bytes(size, '\0');
    REQUIRE(::recv(socket_, bytes.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size));
    return bytes;
  }

  int socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
};

}  // namespace lockstep::harness
