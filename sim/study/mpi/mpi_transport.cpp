// The module that join.cpp loads: messages of a team by MPI.
//
// Idea:      what has been sent is kept until MPI has done with it; what has come is asked for, never waited for,
//            since MPI waits by taking a core.
// Invariant: one thread at a time calls MPI. What fails to reach somebody who is gone fails without a word: the
//            team finds out by silence.
// Limits:    Open MPI's MPI_Finalize waits for the dead as well (4.1), so that it is called only where all are here.
// Reference: MPI 3.1, sections 3.7 (nonblocking), 3.8 (probe), 12.4 (threads).

#include <mpi.h>

#include <list>
#include <memory>
#include <utility>

#include "sim/study/team/transport.h"

namespace lockstep {
namespace {

constexpr int tag = 0;

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    int granted = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &granted);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::chrono::milliseconds now() const override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now().time_since_epoch());
  }

  void send(int to, std::string bytes) override {
    Sending& sending = under_way_.emplace_back(Sending{.bytes = std::move(bytes)});
    MPI_Isend(sending.bytes.data(), static_cast<int>(sending.bytes.size()), MPI_BYTE, to, tag, MPI_COMM_WORLD,
              &sending.request);
  }

  std::optional<Letter> receive() override {
    under_way_.remove_if([](Sending& sending) { return is_done(sending.request); });
    int has_come = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status{};
    MPI_Improbe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &has_come, &message, &status);
    if (has_come == 0)
      return std::nullopt;
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    Letter letter{.from = status.MPI_SOURCE, .bytes = std::string(static_cast<std::size_t>(size), '\0')};
    MPI_Mrecv(letter.bytes.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    return letter;
  }

  void close(bool all_are_here) override {
    if (!all_are_here)
      return;
    for (Sending& sending : under_way_) MPI_Wait(&sending.request, MPI_STATUS_IGNORE);
    MPI_Finalize();
  }

 private:
  struct Sending {
    std::string bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  static bool is_done(MPI_Request& request) {
    int is_done = 0;
    return MPI_Test(&request, &is_done, MPI_STATUS_IGNORE) != MPI_SUCCESS || is_done != 0;
  }

  int rank_ = 0;
  int size_ = 1;
  std::list<Sending> under_way_;  // MPI knows their addresses
};

}  // namespace
}  // namespace lockstep

extern "C" void lockstep_open_transport(std::unique_ptr<lockstep::Transport>& transport) {
  transport = std::make_unique<lockstep::MpiTransport>();
}
