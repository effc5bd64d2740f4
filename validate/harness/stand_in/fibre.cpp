// A fortified longjmp takes a jump to another stack for an attack.
#undef _FORTIFY_SOURCE

#include "validate/harness/stand_in/fibre.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>

#include "sim/base/error.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace lockstep::harness::stand_in {
namespace {

constexpr std::size_t stack_bytes = 128 << 10;

std::size_t page_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// The page below the stack, towards which it grows, is left unreachable.
void* made_stack() {
  const std::size_t bytes = stack_bytes + page_bytes();
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, page_bytes(), PROT_NONE) != 0)
    throw EnvironmentError("no memory for the stack of a fibre");
#ifdef __SANITIZE_ADDRESS__
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);  // of a fibre before it at the same place
#endif
  return memory;
}

}  // namespace

Fibre::Fibre(void (*body)()) : body_(body), stack_(made_stack()) {
  inner_.bottom = static_cast<char*>(stack_) + page_bytes();
  inner_.bytes = stack_bytes;
}

Fibre::~Fibre() {
  munmap(stack_, stack_bytes + page_bytes());
}

// makecontext passes numbers of an int's size: an address comes in two.
void Fibre::enter(unsigned high, unsigned low) {
  const auto address = static_cast<std::uintptr_t>(static_cast<std::uint64_t>(high) << 32U | low);
  auto* const fibre = reinterpret_cast<Fibre*>(address);
  arrive(fibre->inner_, &fibre->outer_);
  fibre->body_();
}

#ifdef __SANITIZE_ADDRESS__
void Fibre::leave(Side& from, const Side& to) {
  __sanitizer_start_switch_fiber(&from.kept, to.bottom, to.bytes);
}

void Fibre::arrive(const Side& at, Side* from) {
  __sanitizer_finish_switch_fiber(at.kept, from != nullptr ? &from->bottom : nullptr,
                                  from != nullptr ? &from->bytes : nullptr);
}
#else
void Fibre::leave(Side& from, const Side& to) {
  (void)from, (void)to;
}

void Fibre::arrive(const Side& at, Side* from) {
  (void)at, (void)from;
}
#endif

void Fibre::start() {
  has_started_ = true;
  ucontext_t context{};
  ucontext_t unused{};
  getcontext(&context);
  context.uc_stack.ss_sp = const_cast<void*>(inner_.bottom);
  context.uc_stack.ss_size = stack_bytes;
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(this));
  makecontext(&context, reinterpret_cast<void (*)()>(&Fibre::enter), 2, static_cast<unsigned>(address >> 32U),
              static_cast<unsigned>(address));
  if (_setjmp(outside_) == 0) {
    leave(outer_, inner_);
    swapcontext(&unused, &context);
  }
  arrive(outer_, nullptr);
}

void Fibre::go_on() {
  if (_setjmp(outside_) == 0) {
    leave(outer_, inner_);
    _longjmp(inside_, 1);
  }
  arrive(outer_, nullptr);
}

void Fibre::resume() {
  has_started_ ? go_on() : start();
}

void Fibre::pause() {
  if (_setjmp(inside_) == 0) {
    leave(inner_, outer_);
    _longjmp(outside_, 1);
  }
  arrive(inner_, &outer_);
}

}  // namespace lockstep::harness::stand_in
