#pragma once

// --report of any verb: its answer as a page.
//
// Invariant: a file that cannot be written is found before anything runs, and one that is read or written by another
//            option is refused; the page appears whole, before the answer is printed.

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/atomic_file.h"

namespace lockstep {

void add_report_option(CLI::App& command, std::string& path);

class PageFile {
 public:
  // `path`: empty where no page is asked for.
  explicit PageFile(const std::string& path)
      : file_(path.empty() ? nullptr : std::make_unique<AtomicFile>(path)) {}

  bool is_wanted() const { return file_ != nullptr; }
  void write(std::string_view page) {
    file_->write(page);
    file_->commit();
  }

 private:
  std::unique_ptr<AtomicFile> file_;
};

}  // namespace lockstep
