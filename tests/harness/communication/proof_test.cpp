#include "validate/harness/communication/proof.h"

#include <doctest/doctest.h>

namespace lockstep::harness::proof_test {

std::string digits_of(const std::string& bytes) {
  std::string digits;
  for (const char byte : bytes)
    for (const unsigned shift : {4U, 0U})
      digits += "0123456789abcdef"[static_cast<unsigned char>(byte) >> shift & 0xfU];
  return digits;
}

// RFC 4231, cases 2 (a key shorter than a block of the hash) and 6 (one that is longer).
TEST_CASE("HMAC-SHA-256 is that of its published vectors") {
  CHECK(digits_of(hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(digits_of(hmac_sha256(std::string(131, '\xaa'),
                              "Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("A proof is of one secret, one end and one connection") {
  const Handshake handshake{draw_nonce(), draw_nonce(), 1, 2};
  const std::string proof = proof_of_rank("the secret of a run", handshake);
  CHECK(is_same_proof(proof, proof_of_rank("the secret of a run", handshake)));
  CHECK_FALSE(is_same_proof(proof, proof_of_rank("the secret of another", handshake)));
  CHECK_FALSE(is_same_proof(proof, proof_of_server("the secret of a run", handshake)));
  for (const Handshake& other :
       {Handshake{draw_nonce(), handshake.answer, 1, 2}, Handshake{handshake.challenge, draw_nonce(), 1, 2},
        Handshake{handshake.challenge, handshake.answer, 0, 2},
        Handshake{handshake.challenge, handshake.answer, 1, 3}})
    CHECK_FALSE(is_same_proof(proof, proof_of_rank("the secret of a run", other)));
  CHECK_FALSE(is_same_proof(proof.substr(1), proof));
  CHECK_FALSE(is_same_proof("", proof));
}

TEST_CASE("Nonces and secrets are not drawn twice") {
  CHECK(draw_nonce().size() == nonce_bytes);
  CHECK(draw_nonce() != draw_nonce());
  CHECK(draw_secret() != draw_secret());
}

}  // namespace lockstep::harness::proof_test
