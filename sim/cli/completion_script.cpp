#include "sim/cli/completion_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace lockstep {
namespace {

using Options = std::vector<CommandOption>;

std::string joined(const std::vector<std::string>& words, const char* between) {
  return fmt::format("{}", fmt::join(words, between));
}

// The program's options may stand behind a verb, too; a verb's --help is its own.
Options options_of(const CommandVerb& verb, const CommandTree& tree) {
  Options options = verb.options;
  for (const CommandOption& option : tree.program.options)
    if (option.value != ValueKind::nothing || option.names.back() == "--quiet" ||
        option.names.back() == "--yes")
      options.push_back(option);
  return options;
}

std::vector<std::string> names_of(const Options& options, bool of_valued_alone) {
  std::vector<std::string> names;
  for (const CommandOption& option : options)
    if (!of_valued_alone || option.value != ValueKind::nothing)
      names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t place = text.find(what); place != text.npos; place = text.find(what, place + with.size()))
    text.replace(place, what.size(), with);
  return text;
}

// Within single quotes of a shell.
std::string quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

constexpr const char* bash_opening = R"shell(# bash completion for lockstep
_lockstep_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current"); }
_lockstep_shipped() { _lockstep_words "$("$program" list "$1" 2>/dev/null | cut -d ' ' -f 1)"; }
_lockstep_paths() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$current")
}
_lockstep_shipped_or_file() {
  _lockstep_shipped "$1"
  [[ ${#COMPREPLY[@]} -gt 0 ]] || _lockstep_paths -f
}
)shell";

constexpr const char* bash_walk = R"shell(_lockstep() {
  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local verb= kind= place=0 index word valued options
  COMPREPLY=()
  _lockstep_know ''
  for ((index = 1; index < COMP_CWORD; index++)); do
    word=${COMP_WORDS[index]}
    if [[ $word == = || " $valued " == *" $word "* ]]; then ((index++))
    elif [[ $word == -* ]]; then :
    elif [[ -z $verb ]]; then verb=$word; _lockstep_know "$verb"
    else kind=$word; ((place++))
    fi
  done
  if [[ $current == -* ]]; then _lockstep_words "$options"
  elif [[ " $valued " == *" $previous "* ]]; then _lockstep_value "$verb" "$previous"
  else _lockstep_value "$verb" "$place"
  fi
}
complete -F _lockstep lockstep
)shell";

std::string bash_offer(const CommandOption& option) {
  switch (option.value) {
    case ValueKind::choice:
      return "_lockstep_words " + quoted(joined(option.choices, " "));
    case ValueKind::shipped:
      return option.shipped == "*" ? "_lockstep_shipped \"$kind\""
                                   : "_lockstep_shipped_or_file " + option.shipped;
    case ValueKind::file:
      return "_lockstep_paths -f";
    case ValueKind::folder:
      return "_lockstep_paths -d";
    default:
      return ":";
  }
}

std::string bash_row(const std::string& verb, const std::vector<std::string>& names,
                     const CommandOption& option) {
  std::vector<std::string> patterns;
  for (const std::string& name : names) patterns.push_back(fmt::format("'{} {}'", verb, name));
  return fmt::format("    {}) {} ;;\n", joined(patterns, "|"), bash_offer(option));
}

// What may stand at the place of a positional; the last of them may take all that follow.
std::string bash_places(const CommandVerb& verb) {
  std::string text;
  for (std::size_t place = 0; place < verb.positionals.size(); ++place) {
    const CommandOption& positional = verb.positionals[place];
    text += positional.may_repeat ? fmt::format("    '{} '[0-9]*) {} ;;\n", verb.name, bash_offer(positional))
                                  : bash_row(verb.name, {std::to_string(place)}, positional);
  }
  return text;
}

std::string bash_script(const CommandTree& tree) {
  std::vector<std::string> verbs;
  std::string known, values;
  for (const CommandVerb& verb : tree.verbs) {
    verbs.push_back(verb.name);
    const Options options = options_of(verb, tree);
    known += fmt::format("    {})\n      options='{}'\n      valued='{}' ;;\n", verb.name,
                         joined(names_of(options, false), " "), joined(names_of(options, true), " "));
    for (const CommandOption& option : options)
      if (option.value != ValueKind::nothing)
        values += bash_row(verb.name, option.names, option);
    values += bash_places(verb);
  }
  const Options& options = tree.program.options;
  known += fmt::format("    *)\n      options='{}'\n      valued='{}' ;;\n",
                       joined(names_of(options, false), " "), joined(names_of(options, true), " "));
  for (const CommandOption& option : options)
    if (option.value != ValueKind::nothing)
      values += bash_row("", option.names, option);
  values += fmt::format("    ' 0') _lockstep_words '{}' ;;\n", joined(verbs, " "));
  return bash_opening + fmt::format("_lockstep_know() {{\n  case $1 in\n{}  esac\n}}\n", known) +
         fmt::format("_lockstep_value() {{\n  case \"$1 $2\" in\n{}  esac\n}}\n", values) + bash_walk;
}

constexpr const char* zsh_opening = R"shell(#compdef lockstep
_lockstep_shipped() { compadd -- ${(f)"$($program list $1 2>/dev/null | cut -d ' ' -f 1)"}; }
_lockstep_shipped_or_file() { _alternative "names:name:_lockstep_shipped $1" 'files:file:_files'; }
)shell";

std::string zsh_text(const std::string& text) {
  std::string escaped = text;
  for (const char* letter : {"\\", "[", "]", ":"})
    escaped = replaced(escaped, letter, std::string("\\") + letter);
  return replaced(escaped, "'", "'\\''");
}

std::string zsh_offer(const CommandOption& option) {
  const std::string what = ":" + zsh_text(option.placeholder) + ":";
  switch (option.value) {
    case ValueKind::nothing:
      return "";
    case ValueKind::choice:
      return what + "(" + joined(option.choices, " ") + ")";
    case ValueKind::shipped:
      return what + (option.shipped == "*" ? "_lockstep_shipped $words[2]"
                                           : "_lockstep_shipped_or_file " + option.shipped);
    case ValueKind::file:
      return what + "_files";
    case ValueKind::folder:
      return what + "_files -/";
    default:
      return what;
  }
}

std::string zsh_options(const Options& options) {
  std::string text;
  for (const CommandOption& option : options)
    for (const std::string& name : option.names)
      text += fmt::format(" \\\n    '{}{}[{}]{}'", option.may_repeat ? "*" : "", name,
                          zsh_text(option.description), zsh_offer(option));
  return text;
}

std::string zsh_positionals(const CommandVerb& verb) {
  std::string text;
  for (std::size_t place = 0; place < verb.positionals.size(); ++place) {
    const CommandOption& positional = verb.positionals[place];
    const std::string where = positional.may_repeat    ? "*"
                              : positional.is_required ? std::to_string(place + 1)
                                                       : std::to_string(place + 1) + ":";
    text += fmt::format(" \\\n    '{}{}'", where, zsh_offer(positional));
  }
  return text;
}

std::string zsh_script(const CommandTree& tree) {
  std::string verbs, cases;
  for (const CommandVerb& verb : tree.verbs) {
    verbs += fmt::format(" \\\n    '{}:{}'", verb.name, zsh_text(verb.description));
    cases += fmt::format("  {}) _arguments{}{} ;;\n", verb.name, zsh_options(options_of(verb, tree)),
                         zsh_positionals(verb));
  }
  return zsh_opening +
         fmt::format("_lockstep_verbs() {{\n  local -a verbs=({})\n  _describe command verbs\n}}\n", verbs) +
         "_lockstep() {\n  local program=$words[1] state line\n  _arguments -C" +
         zsh_options(tree.program.options) +
         " \\\n    '1: :_lockstep_verbs' '*:: :->verb'\n  [[ $state == verb ]] || return\n  case $words[1] "
         "in\n" +
         cases +
         "  esac\n}\nif [[ $funcstack[1] == _lockstep ]]; then _lockstep \"$@\"; else compdef _lockstep "
         "lockstep; fi\n";
}

constexpr const char* fish_opening = R"shell(# fish completion for lockstep
function __lockstep_shipped
  lockstep list $argv[1] 2>/dev/null | string split -f 1 ' '
end
function __lockstep_shipped_before
  __lockstep_shipped (commandline -opc)[-1]
end
complete -c lockstep -f
)shell";

std::string fish_offer(const CommandOption& option) {
  switch (option.value) {
    case ValueKind::nothing:
      return "";
    case ValueKind::choice:
      return " -x -a " + quoted(joined(option.choices, " "));
    case ValueKind::shipped:
      return option.shipped == "*" ? " -x -a '(__lockstep_shipped_before)'"
                                   : fmt::format(" -r -F -a '(__lockstep_shipped {})'", option.shipped);
    case ValueKind::file:
      return " -r -F";
    case ValueKind::folder:
      return " -x -a '(__fish_complete_directories)'";
    default:
      return " -x";
  }
}

std::string fish_options(const std::string& condition, const Options& options) {
  std::string text;
  for (const CommandOption& option : options) {
    text += "complete -c lockstep" + condition;
    for (const std::string& name : option.names)
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    text += fish_offer(option) + " -d " + quoted(option.description) + "\n";
  }
  return text;
}

// fish counts no positionals: each may be offered anywhere behind its verb.
std::string fish_positionals(const std::string& condition, const CommandVerb& verb) {
  std::string text;
  for (const CommandOption& positional : verb.positionals)
    if (positional.value != ValueKind::anything)
      text += "complete -c lockstep" + condition +
              replaced(replaced(fish_offer(positional), " -r", ""), " -x", "") + " -d " +
              quoted(positional.placeholder) + "\n";
  return text;
}

std::string fish_script(const CommandTree& tree) {
  std::string text = fish_opening + fish_options("", tree.program.options);
  for (const CommandVerb& verb : tree.verbs) {
    text += fmt::format("complete -c lockstep -n __fish_use_subcommand -a {} -d {}\n", verb.name,
                        quoted(verb.description));
    const std::string condition = fmt::format(" -n '__fish_seen_subcommand_from {}'", verb.name);
    text += fish_options(condition, verb.options) + fish_positionals(condition, verb);
  }
  return text;
}

}  // namespace

const std::vector<std::string>& shells() {
  static const std::vector<std::string> names{"bash", "fish", "zsh"};
  return names;
}

std::string completion_script(const std::string& shell, const CommandTree& tree) {
  if (shell == "bash")
    return bash_script(tree);
  return shell == "zsh" ? zsh_script(tree) : fish_script(tree);
}

}  // namespace lockstep
