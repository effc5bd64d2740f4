#pragma once

// Messages between the processes of one command, however they travel.
//
// Idea:      what a team needs of MPI is to send without waiting and to ask whether something has come. Behind an
//            interface of so little a test's processes are objects, and MPI a module that is loaded where mpirun
//            starts the program.
// Invariant: messages from one process to another arrive in the order in which they were sent, or not at all.

#include <chrono>
#include <optional>
#include <string>

namespace lockstep {

struct Letter {
  int from = 0;
  std::string bytes;
};

// One caller at a time.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Of whichever clock the transport goes by.
  virtual std::chrono::milliseconds now() const = 0;

  virtual void send(int to, std::string bytes) = 0;
  virtual std::optional<Letter> receive() = 0;  // nothing: none has come
  // Called once, last. `all_are_here`: every process closes; otherwise some are gone, and nobody may be waited for.
  virtual void close(bool all_are_here) = 0;
};

}  // namespace lockstep
