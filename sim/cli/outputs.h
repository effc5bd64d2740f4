#pragma once

// What a command is about to write, looked at before anything runs.
//
// Problem:   `--report scenario.json` would replace the very scenario, and two options may name one file.
// Idea:      two paths are one file where the system says so (device and inode, through links and ..), or,
//            for files that do not exist yet, where their folder and name are. The document of --json is one more
//            output, to wherever stdout leads.
// Invariant: after `require_files_of_their_own` no output is an input or another output. What is no regular
//            file (a terminal, /dev/null, a pipe) holds nothing that could be lost, and may be named twice; but
//            what reads stdout finds one document there.
// Errors:    ConfigError with every collision.

#include <string>
#include <vector>

namespace lockstep {

struct OutputFile {
  std::string option;  // "--report"
  std::string path;    // empty: it was not asked for
};

// What --json writes, if it is wanted.
OutputFile json_output(bool is_wanted);

void require_files_of_their_own(const std::vector<OutputFile>& outputs,
                                const std::vector<std::string>& inputs);

}  // namespace lockstep
