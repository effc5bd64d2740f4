#pragma once

// Text that may go to a terminal, a table or a picture, whoever wrote it.
//
// Problem: names come from files of strangers. An escape sequence in one moves the cursor, renames the window
// or recolours what follows; a carriage return or a bidirectional override shows another text than the one
// that stands there; in SVG and HTML such characters are not allowed at all. Idea: what controls rather than
// prints is written out as JSON would write it, \u001b, so that JSON text stays the same JSON. Invariant: the
// result is UTF-8 without control characters (but line feeds and tabs, where they are kept), marks of
// direction, line and paragraph separators; bytes that are no UTF-8 become \ufffd. Cost: linear.
// Reference: Unicode 15, categories Cc, Zl, Zp, and the Bidi_Control property (UAX 9; Boucher and Anderson,
// "Trojan Source", 2021).

#include <string>
#include <string_view>

namespace lockstep {

// Whole answers: line feeds and tabs stay.
std::string printable(std::string_view text);

// A name within a line.
std::string printable_name(std::string_view text);

}  // namespace lockstep
