#include "sim/cli/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include "sim/cli/output.h"

namespace lockstep {
namespace {

constexpr std::size_t width = 30;
constexpr std::chrono::milliseconds shortest_pause{50};
constexpr const char* erase_line = "\r\x1b[K";

std::string blocks(std::size_t finished, std::size_t all) {
  const std::size_t full = all == 0 ? width : finished * width / all;
  std::string bar;
  for (std::size_t place = 0; place < width; ++place) {
    bar += place < full ? "█" : "░";
  }
  return bar;
}

}  // namespace

ProgressBar::ProgressBar(std::string noun, bool is_quiet)
    : noun_(std::move(noun)), is_shown_(!is_quiet && ::isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (is_shown_) {
    draw_diagnostic(erase_line);
  }
}

void ProgressBar::show(std::size_t finished, std::size_t all) {
  const Clock::time_point now = Clock::now();
  if (!is_shown_ || (finished < all && now - last_drawn_ < shortest_pause)) {
    return;
  }
  last_drawn_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left = elapsed * static_cast<double>(all - finished) / static_cast<double>(finished);
  draw_diagnostic(fmt::format("{}{} {}/{} {}, {:.0f} s left", erase_line, blocks(finished, all), finished,
                              all, noun_, left));
}

}  // namespace lockstep
