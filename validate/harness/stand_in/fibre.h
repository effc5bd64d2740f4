#pragma once

// A function that can stop in its middle and go on later, on a stack of its own.
//
// Problem:   the threads of a GPU's block wait for each other in the middle of a kernel; a thousand threads
//            of the operating system a block would be far too slow.
// Idea:      stacks are made by makecontext and changed by _setjmp and _longjmp, which save registers and
//            nothing else: swapcontext asks the kernel for its signal mask at every turn. Part of the C
//            library, so that the tests need no package for it.
// Invariant: `resume` is called from outside, `pause` from within, on one thread of the operating system. The
//            body never returns. A fibre that is destroyed in its middle drops its stack and unwinds nothing.
// Cost:      some 20 ns a turn; a page that cannot be written ends each stack.
// Reference: QEMU switches its coroutines on POSIX systems in the same way (util/coroutine-ucontext.c).

#include <csetjmp>
#include <cstddef>

namespace lockstep::harness::stand_in {

class Fibre {
 public:
  explicit Fibre(void (*body)());
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;
  ~Fibre();

  void resume();
  void pause();

 private:
  static void enter(unsigned high, unsigned low);
  void start();
  void go_on();

  // What AddressSanitizer has to know of a stack that is left and comes back.
  struct Side {
    void* kept = nullptr;
    const void* bottom = nullptr;
    std::size_t bytes = 0;
  };
  static void leave(Side& from, const Side& to);
  static void arrive(const Side& at, Side* from);

  void (*body_)();
  void* stack_ = nullptr;
  Side inner_;
  Side outer_;
  bool has_started_ = false;
  std::jmp_buf inside_ = {};
  std::jmp_buf outside_ = {};
};

}  // namespace lockstep::harness::stand_in
