#include "sim/cli/page_file.h"

namespace lockstep {

void add_report_option(CLI::App& command, std::string& path) {
  command.add_option("--report", path, "write the answer as a page that needs no network")
      ->type_name("FILE.html");
}

}  // namespace lockstep
