#include "sim/base/failure.h"

#include <unistd.h>

#include <csignal>
#include <new>
#include <system_error>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"

namespace lockstep {
namespace {

// Async-signal-safe: unlinks what is unfinished and leaves without running destructors.
extern "C" void on_interrupt(int) {
  remove_temporary_files();
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
  } catch (const std::exception& error) {
    return {exit_bug, {std::string("this is a bug in Lockstep: ") + error.what()}};
  }
}

void end_cleanly_when_interrupted() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace lockstep
