#include "sim/base/fingerprint.h"

#include <doctest/doctest.h>

namespace lockstep::fingerprint_test {

// Of the authors' test vectors for 64 bits.
TEST_CASE("A text has the fingerprint of FNV-1a, however many pieces it comes in") {
  CHECK(fingerprint_of("") == "cbf29ce484222325");
  CHECK(fingerprint_of("foobar") == "85944171f73967e8");
  Fingerprint pieces;
  pieces.add("foo");
  pieces.add("bar");
  CHECK(pieces.text() == "85944171f73967e8");
}

}  // namespace lockstep::fingerprint_test
