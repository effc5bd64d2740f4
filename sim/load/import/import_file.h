#pragma once

// Files of other tools, found, opened and imported: what the verb and reading in place have in common.
//
// Problem:   an importer turns a stream into a document; somebody has to find the importer, open the file, and see that
//            nothing in it was refused and nothing is missing.
// Idea:      a file is recognised by its first bytes, so that a name in a scenario needs no word for its kind.
// Invariant: what `require_complete` lets through has no refused key and no open question; every complaint is made at
//            once, with the --set that answers it.
// Errors:    ConfigError with the file's name.

#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/load/import/importer.h"

namespace lockstep {

using NamedImporter = Registry<Importer>::Entries::value_type;

// "a model", "a machine", ...
std::string_view noun_of(ImportedThing thing);

// Throws ConfigError with the nearest kind.
const NamedImporter& importer_named(const std::string& kind);

// Whose file begins like this; null: nobody's, so that it may be ours.
const NamedImporter* importer_of(std::string_view beginning);

// Of a regular file; of anything else (a pipe could not be read again) null.
const NamedImporter* importer_of_file(const std::string& path);

// Throws ConfigError when there is no such file, or it is a folder.
std::ifstream open_import_file(const std::string& path);

// All that the stream holds. Throws ConfigError when it is empty, above 64 MiB, or cannot be read.
std::string read_whole(const ImportRequest& request);

// Throws ConfigError, with what the file is taken for where somebody else recognises it.
[[noreturn]] void refuse_file(std::string_view text, const ImportRequest& request, std::string_view expected);

// Throws ConfigError with every key that is refused and every question. `place`: where in a scenario the answers stand,
// if what is made is a part of one ("cluster.machine.").
void require_complete(const Imported& imported, const ImportRequest& request, std::string_view place = "");

// `error`, closed by what the file was read as and, where it can be read again, whose it looks like: somebody who named
// the wrong kind of file is told a grammar's complaint otherwise. As it stands where the file looks like that kind.
ConfigError as_read(const ConfigError& error, const NamedImporter& importer, const std::string& path);

// Says of what is made where it comes from, unless it does so itself.
void add_source(Imported& imported, const NamedImporter& importer, const std::string& file_name);

}  // namespace lockstep
