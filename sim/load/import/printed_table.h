#pragma once

// Lines that a program printed for a terminal, without what only a terminal wants.
//
// Problem:   tables are pasted with their underlines, colours and carriage returns, and cut or wrapped where the terminal
//            ended.
// Idea:      control sequences (ECMA-48: ESC [ ... letter) and other control characters go, tabs are blanks; lines keep
//            their numbers, for messages.
// Invariant: a line's text holds no control characters and no blanks at its end.
// Cost:      one pass.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct PrintedLine {
  std::size_t number = 0;  // from 1
  std::string text = {};
};

std::vector<PrintedLine> printed_lines(std::string_view text);

// What blanks part.
std::vector<std::string> words_of(std::string_view text);

// Digits alone, at most 9 of them; -1: it is something else.
long number_of(std::string_view word);

}  // namespace lockstep
