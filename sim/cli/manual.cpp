// lockstep manual [COMMAND]: a manual page, from the same tree as the help.

#include <fmt/format.h>

#include <memory>

#include "sim/base/atomic_file.h"
#include "sim/base/error.h"
#include "sim/base/nearest_name.h"
#include "sim/cli/command_tree.h"
#include "sim/cli/commands.h"
#include "sim/cli/output.h"

namespace lockstep {
namespace {

// As man(7) takes it: a backslash is an escape, a line that begins with a dot or a quote a request.
std::string roff(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    const bool is_at_start = escaped.empty() || escaped.back() == '\n';
    if (is_at_start && (letter == '.' || letter == '\''))
      escaped += "\\&";
    escaped += letter == '\\' ? "\\e" : letter == '-' ? "\\-" : std::string(1, letter);
  }
  return escaped;
}

std::string option_text(const CommandOption& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
  const std::string value =
      option.placeholder.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(option.placeholder));
  return fmt::format(".TP\n{}{}\n{}\n", names, value, roff(option.description));
}

std::string section(const std::string& title, const std::vector<CommandOption>& options) {
  std::string text;
  for (const CommandOption& option : options) text += option_text(option);
  return text.empty() ? "" : ".SH " + title + "\n" + text;
}

std::string synopsis(const CommandVerb& verb) {
  std::string text = fmt::format(".SH SYNOPSIS\n\\fBlockstep {}\\fR", roff(verb.name));
  for (const CommandOption& option : verb.options)
    if (option.is_required)
      text += fmt::format(" {} \\fI{}\\fR", roff(option.names.back()), roff(option.placeholder));
  text += " [options]";
  for (const CommandOption& positional : verb.positionals)
    text +=
        fmt::format(" {}\\fI{}\\fR{}{}", positional.is_required ? "" : "[", roff(positional.names.front()),
                    positional.may_repeat ? "..." : "", positional.is_required ? "" : "]");
  return text + "\n";
}

std::string heading(const std::string& page, const std::string& description) {
  return fmt::format(".TH {} 1 \"\" \"lockstep {}\" \"Lockstep\"\n.SH NAME\n{} \\- {}\n", page,
                     LOCKSTEP_VERSION, roff(page), roff(description));
}

std::string footer_text(const std::string& footer) {
  return footer.empty() ? "" : ".SH EXAMPLES\n.nf\n" + roff(footer) + "\n.fi\n";
}

std::string verb_page(const CommandVerb& verb) {
  return heading("lockstep-" + verb.name, verb.description) + synopsis(verb) +
         section("ARGUMENTS", verb.positionals) + section("OPTIONS", verb.options) +
         footer_text(verb.footer) + ".SH SEE ALSO\n.BR lockstep (1)\n";
}

std::string program_page(const CommandTree& tree) {
  std::string text = heading("lockstep", tree.program.description) +
                     ".SH SYNOPSIS\n\\fBlockstep\\fR [options] \\fIcommand\\fR ...\n.SH COMMANDS\n";
  for (const CommandVerb& verb : tree.verbs)
    text += fmt::format(".TP\n\\fB{}\\fR\n{}; see \\fBlockstep\\-{}\\fR(1)\n", roff(verb.name),
                        roff(verb.description), roff(verb.name));
  return text + section("OPTIONS", tree.program.options) +
         ".SH EXIT STATUS\n0 done; 1 a bug in Lockstep; 2 the input is wrong; 3 a check that was asked for "
         "did not "
         "hold; 4 the environment failed; 130 interrupted.\n" +
         footer_text(tree.program.footer);
}

struct ManualArguments {
  std::string command;
  std::string folder;
};

void write_page(const std::string& folder, const std::string& name, const std::string& text) {
  AtomicFile file(folder + "/" + name + ".1");
  file.write(text);
  file.commit();
}

void write_pages(const std::string& folder, const CommandTree& tree) {
  write_page(folder, "lockstep", program_page(tree));
  for (const CommandVerb& verb : tree.verbs) write_page(folder, "lockstep-" + verb.name, verb_page(verb));
}

std::string page_of(const std::string& name, const CommandTree& tree) {
  std::vector<std::string> names;
  for (const CommandVerb& verb : tree.verbs) {
    names.push_back(verb.name);
    if (verb.name == name)
      return verb_page(verb);
  }
  throw ConfigError(fmt::format("{}: no such command; {}", name, describe_choices(name, names)));
}

int run_manual(const ManualArguments& arguments, const CLI::App& app) {
  const CommandTree tree = read_command_tree(app);
  if (!arguments.folder.empty())
    write_pages(arguments.folder, tree);
  else
    print(arguments.command.empty() ? program_page(tree) : page_of(arguments.command, tree));
  return 0;
}

}  // namespace

void add_manual_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand("manual", "a manual page, as man reads it");
  const auto arguments = std::make_shared<ManualArguments>();
  CLI::Option* of = command->add_option("command", arguments->command, "of which command (of the program)")
                        ->type_name("COMMAND");
  command->add_option("-o,--output", arguments->folder, "write all pages into this folder")
      ->type_name("DIR")
      ->excludes(of);
  command->callback([arguments, &app, &context] {
    context.run = [arguments, &app] { return run_manual(*arguments, app); };
  });
}

}  // namespace lockstep
