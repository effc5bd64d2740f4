#pragma once

// What ranks and the rendezvous server say to each other.
//
// Problem:   a stream of bytes has no messages, and what connects to an open port may be anything.
// Idea:      a message is its length and a body: kind, number, key, value. Values are any bytes.
// Invariant: what `encode` wrote `decode` reads back; anything else throws ProtocolError and allocates no
//            more than `most_message_bytes`.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::harness {

struct Message {
  enum class Kind : std::uint8_t {
    hello,    // to the server, first: number = rank, key = the protocol, value = world size
    refusal,  // number = exit code, value = why
    welcome,  // all ranks are there; value = the address of rank 0 as the farthest rank sees it
    set,      // key, value
    get,      // key; answered with the same number when the key is set
    gather,   // key, value; answered with the values of all ranks when all have given theirs
    answer,   // number of the question, value
    alive,    // nothing but that
    goodbye,  // to the server: done; from the server: you may go
    failure,  // number = exit code, value = what happened
  };
  Kind kind = Kind::alive;
  std::uint32_t number = 0;
  std::string key = {};
  std::string value = {};
};

struct ProtocolError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

constexpr std::uint32_t most_message_bytes = 1U << 24U;
constexpr std::size_t length_bytes = 4;

std::string encode(const Message& message);            // with its length before it
std::uint32_t decode_length(std::string_view length);  // of the body that follows
Message decode(std::string_view body);

// Several values as one.
std::string join_values(const std::vector<std::string>& values);
std::vector<std::string> split_values(std::string_view joined);

}  // namespace lockstep::harness
