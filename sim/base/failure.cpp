#include "sim/base/failure.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <new>
#include <system_error>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/base/units.h"

namespace lockstep {
namespace {

// For the signal handler, which may neither allocate nor wait. The length is set last.
std::array<char, 1024> last_words{};
std::atomic<std::size_t> last_words_length = 0;
static_assert(std::atomic<std::size_t>::is_always_lock_free);

// Async-signal-safe: unlinks what is unfinished and leaves without running destructors.
extern "C" void on_interrupt(int) {
  remove_temporary_files();
  if (const std::size_t length = last_words_length; length > 0)
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, last_words.data(), length);
  ::_exit(exit_interrupted);
}

}  // namespace

Failure describe_failure() {
  try {
    throw;
  } catch (const ConfigError& error) {
    return {exit_wrong_input, error.problems};
  } catch (const EnvironmentError& error) {
    return {exit_environment, {error.what()}};
  } catch (const std::system_error& error) {
    return {exit_environment, {error.what()}};
  } catch (const std::bad_alloc&) {
    return {exit_environment, {"out of memory"}};
  } catch (const OverflowError& error) {
    return {exit_wrong_input,
            {std::string("sizes, times or counts are too large together: ") + error.what() +
             "; expected smaller numbers, or faster links and GPUs"}};
  } catch (const std::exception& error) {
    return {exit_bug, {std::string("this is a bug in Lockstep: ") + error.what()}};
  }
}

void say_when_interrupted(std::string_view line) {
  last_words_length = 0;
  if (line.empty())
    return;
  const std::size_t length = std::min(line.size(), last_words.size() - 2);
  last_words.front() = '\n';  // a terminal shows ^C, or a progress bar, on the line at hand
  std::copy_n(line.begin(), length, last_words.begin() + 1);
  last_words[length + 1] = '\n';
  last_words_length = length + 2;
}

void end_cleanly_when_interrupted() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace lockstep
