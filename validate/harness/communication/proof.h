#pragma once

// How two ends of a connection show that they know the secret of one run.
//
// Problem:   whoever reaches the port could take a rank's place or end the run; and a secret that crosses the wire is
//            one no longer.
// Idea:      a challenge each way. Either end draws a nonce, and shows the HMAC-SHA-256 under the secret of both, of
//            what the rank says of itself, and of whose proof it is.
// Invariant: a proof is good for one connection and one end of it; without the secret none is found. Proofs are
//            compared in a time that does not depend on them.
// Reference: RFC 2104 (HMAC), RFC 4231 (its test vectors). libsodium's.

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::harness {

inline constexpr std::size_t nonce_bytes = 32;

// What one connection's proofs are of.
struct Handshake {
  std::string challenge;  // the server's nonce
  std::string answer;     // the rank's
  std::uint32_t rank = 0;
  int world_size = 1;
};

std::string draw_nonce();   // bytes that nobody can foretell
std::string draw_secret();  // as a text of 64 digits

std::string proof_of_rank(std::string_view secret, const Handshake& handshake);
std::string proof_of_server(std::string_view secret, const Handshake& handshake);
bool is_same_proof(std::string_view shown, std::string_view expected);

std::string hmac_sha256(std::string_view key, std::string_view text);

}  // namespace lockstep::harness
