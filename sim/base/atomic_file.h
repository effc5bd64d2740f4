#pragma once

// Output files that are either complete or absent.
//
// Problem: a full disk or a Ctrl-C must never leave half a report under the name that was asked for.
// Idea: write to a file in the same folder that has no name yet (Linux's O_TMPFILE; a temporary name where the file
// system knows none), name it when it is whole, then rename; POSIX makes the rename atomic.
// Invariant: without commit() the target is untouched and nothing is left behind, not by a kill either; a temporary
// name is removed, also by a signal handler that calls remove_temporary_files(). What cannot be replaced (a pipe, /dev/stdout) is written in place.
// Errors: ConfigError, naming the path, when the target cannot be written there; EnvironmentError when
// writing fails.

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::string_view text);
  // Flushes to the disk and renames; called once, last.
  void commit();

 private:
  void open_in_place();
  bool open_nameless();
  void open_temporary();
  void give_name();
  void flush();
  [[noreturn]] void fail_to_open(int error_number) const;
  [[noreturn]] void fail_to_write(int error_number) const;
  void abandon() noexcept;

  std::string path_;       // as the user wrote it, for messages
  std::string target_;     // with symbolic links resolved: a link stays a link
  std::string temporary_;  // empty when written in place, or while it has no name
  std::string buffer_;
  std::size_t slot_ = 0;  // of the table that the signal handler reads
  int descriptor_ = -1;
  bool is_nameless_ = false;
};

// Opens, writes and commits.
void write_file_atomically(const std::string& path, std::string_view text);

// Unlinks every temporary that is not committed. Async-signal-safe: atomics and unlink only.
void remove_temporary_files() noexcept;

}  // namespace lockstep
