#include "sim/base/printable.h"
#include "sim/report/text/sections.h"

namespace lockstep {

std::string warnings_text(const std::vector<std::string>& warnings, const TextStyle& style) {
  if (warnings.empty())
    return "";
  std::string text = style.heading("Warnings");
  for (const std::string& warning : warnings)
    text += indented(style.coloured(printable_name(warning), "\x1b[33m"));
  return text;
}

}  // namespace lockstep
