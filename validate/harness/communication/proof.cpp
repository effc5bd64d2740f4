#include "validate/harness/communication/proof.h"

#include <sodium.h>

#include "sim/base/check.h"
#include "validate/harness/communication/message.h"

namespace lockstep::harness {
namespace {

void use_sodium() {
  LOCKSTEP_CHECK(sodium_init() >= 0, "libsodium finds the system's source of randomness");
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string proof(std::string_view secret, const char* whose, const Handshake& handshake) {
  return hmac_sha256(secret,
                     join_values({whose, protocol, handshake.challenge, handshake.answer,
                                  std::to_string(handshake.rank), std::to_string(handshake.world_size)}));
}

}  // namespace

std::string draw_nonce() {
  use_sodium();
  std::string nonce(nonce_bytes, '\0');
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

std::string draw_secret() {
  const std::string nonce = draw_nonce();
  std::string digits(2 * nonce.size() + 1, '\0');
  sodium_bin2hex(digits.data(), digits.size(), bytes_of(nonce), nonce.size());
  digits.pop_back();  // the zero that ends it
  return digits;
}

std::string proof_of_rank(std::string_view secret, const Handshake& handshake) {
  return proof(secret, "rank", handshake);
}

std::string proof_of_server(std::string_view secret, const Handshake& handshake) {
  return proof(secret, "server", handshake);
}

bool is_same_proof(std::string_view shown, std::string_view expected) {
  return shown.size() == expected.size() &&
         sodium_memcmp(shown.data(), expected.data(), expected.size()) == 0;
}

std::string hmac_sha256(std::string_view key, std::string_view text) {
  use_sodium();
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, bytes_of(key), key.size());
  crypto_auth_hmacsha256_update(&state, bytes_of(text), text.size());
  std::string mac(crypto_auth_hmacsha256_BYTES, '\0');
  crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(mac.data()));
  return mac;
}

}  // namespace lockstep::harness
