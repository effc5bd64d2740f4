#pragma once

// What ranks and the rendezvous server say to each other.
//
// Problem:   a stream of bytes has no messages, and what connects to an open port may be anything.
// Idea:      a message is its length and a body: kind, number, key, value. Values are any bytes.
// Invariant: what `encode` wrote `decode` reads back; anything else throws ProtocolError. Of an end that has not yet
//            shown that it is of the run, nothing above `most_first_bytes` is read.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace lockstep::harness {

struct Message {
  enum class Kind : std::uint8_t {
    challenge,  // from the server, first: value = its nonce
    hello,      // the answer: number = rank, key = the protocol, value = world size, own nonce, proof
    proof,      // the server's own, to a rank that has shown its own: value
    refusal,    // number = exit code, value = why
    welcome,    // all ranks are there; value = the address of rank 0 as the farthest rank sees it
    set,        // key, value
    get,        // key; answered with the same number when the key is set
    gather,     // key, value; answered with the values of all ranks when all have given theirs
    answer,     // number of the question, value
    alive,      // nothing but that
    goodbye,    // to the server: done; from the server: you may go
    failure,    // number = exit code, value = what happened
  };
  Kind kind = Kind::alive;
  std::uint32_t number = 0;
  std::string key = {};
  std::string value = {};
};

// The other end is not what it should be: no bug of ours.
struct ProtocolError : EnvironmentError {
  using EnvironmentError::EnvironmentError;
};

inline constexpr const char* protocol = "lockstep-rendezvous/2";
inline constexpr std::uint32_t most_message_bytes = 1U << 24U;
inline constexpr std::uint32_t most_first_bytes = 1U << 10U;  // of a challenge, a hello or a proof
inline constexpr std::size_t length_bytes = 4;

std::string encode(const Message& message);            // with its length before it
std::uint32_t decode_length(std::string_view length, std::uint32_t most);  // of the body that follows
Message decode(std::string_view body);

// Of a refusal or a failure. No peer ends this process as if all were well, nor as if it were a bug: codes that are
// not those of a failure become that of the environment. Its text may go to a terminal, and is cut where it is long.
int exit_code_of(const Message& message);
std::string reason_of(const Message& message);

// Several values as one.
std::string join_values(const std::vector<std::string>& values);
std::vector<std::string> split_values(std::string_view joined);

}  // namespace lockstep::harness
