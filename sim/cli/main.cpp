// The program: reads the command line, runs one verb, and turns what went wrong into an exit code.
//
// 0 done; 2 the user's input is wrong; 3 a check did not hold; 4 the environment failed; 130 interrupted;
// 1 a bug in Lockstep. Nothing but this file knows these numbers for errors, and nothing else exits.

#include <unistd.h>

#include <csignal>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "sim/base/atomic_file.h"
#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/cli/command_line.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"

namespace lockstep {
namespace {

constexpr int exit_done = 0;
constexpr int exit_bug = 1;
constexpr int exit_wrong_input = 2;
constexpr int exit_environment = 4;
constexpr int exit_interrupted = 130;

// Async-signal-safe: unlinks what is unfinished and leaves without running destructors.
extern "C" void on_interrupt(int) {
  remove_temporary_files();
  ::_exit(exit_interrupted);
}

void handle_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

void add_commands(CLI::App& app, CommandContext& context) {
  add_predict_command(app, context);
  add_explain_command(app, context);
  add_check_command(app, context);
  add_collective_command(app, context);
  add_sweep_command(app, context);
  add_validate_command(app, context);
  add_calibrate_command(app, context);
  add_list_command(app, context);
  add_show_command(app, context);
}

void describe_program(CLI::App& app, CommandContext& context) {
  app.name("lockstep");
  app.set_version_flag("--version", "lockstep " LOCKSTEP_VERSION);
  app.set_help_flag("-h,--help", "print this help");
  app.add_option("--data", context.data_directory, "search this directory for profiles first")
      ->type_name("DIR");
  app.add_flag("--quiet", context.is_quiet, "no progress bar");
  app.require_subcommand(1);
  app.fallthrough();
}

// Last, because subcommands inherit what stands when they are added.
void add_hints(CLI::App& app) {
  app.footer(
      "Start with:  lockstep list\n"
      "             lockstep predict scenarios/resnet50_ddp_2x8_a100.json\n"
      "             lockstep COMMAND --help");
}

// The words in reverse, as CLI11 takes a vector.
void parse(CLI::App& app, const std::vector<std::string>& words) {
  check_verb(app, words);
  app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
}

int run_command_line(const std::vector<std::string>& words) {
  CLI::App app(
      "Lockstep predicts data-parallel training: how long an iteration takes on a cluster, and why.");
  CommandContext context;
  describe_program(app, context);
  add_commands(app, context);
  add_hints(app);
  try {
    parse(app, words.empty() ? std::vector<std::string>{"--help"} : words);
  } catch (const CLI::Success& request) {  // --help or --version
    app.exit(request);
    return exit_done;
  } catch (const CLI::ParseError& error) {
    throw_config_error(app, words, error);
  }
  LOCKSTEP_CHECK(context.run != nullptr, "the callback of every verb sets what to run");
  return context.run();
}

int fail(int exit_code, const std::string& message) {
  print_diagnostic("lockstep: " + message + "\n");
  return exit_code;
}

int fail_with_problems(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) {
    fail(exit_wrong_input, problem);
  }
  return exit_wrong_input;
}

int guarded_main(const std::vector<std::string>& words) {
  try {
    return run_command_line(words);
  } catch (const ConfigError& error) {
    return fail_with_problems(error.problems);
  } catch (const EnvironmentError& error) {
    return fail(exit_environment, error.what());
  } catch (const std::system_error& error) {
    return fail(exit_environment, error.what());
  } catch (const std::bad_alloc&) {
    return fail(exit_environment, "out of memory");
  } catch (const std::exception& error) {
    return fail(exit_bug, std::string("this is a bug in Lockstep: ") + error.what());
  }
}

}  // namespace
}  // namespace lockstep

int main(int argument_count, char** arguments) {
  lockstep::handle_interrupts();
  return lockstep::guarded_main({arguments + (argument_count > 0 ? 1 : 0), arguments + argument_count});
}
