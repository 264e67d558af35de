#include "progress.h"

#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <utility>

namespace spdc::cli {

namespace {

constexpr double live_interval = 0.1; // seconds between lines
constexpr double plain_interval = 5;

std::string time_text(double seconds) {
    if (seconds < 100) return fmt::format("{:.1f} s", seconds);
    const auto whole = static_cast<std::int64_t>(std::min(seconds, 1e9));
    if (whole < 6000) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
    return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

// A longer line would wrap, and could not be taken back.
std::string fitted(const std::string &text) {
    struct winsize size {};
    const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return text.substr(0, known ? size.ws_col - 1U : 79U);
}

} // namespace

double seconds_left(const std::vector<TracePoint> &points, double tolerance) {
    if (points.size() < 3) return -1;
    const TracePoint &last = points.back();
    const double middle = 0.5 * (points.front().seconds + last.seconds);
    std::size_t k = 0;
    while (points[k].seconds < middle) ++k; // ends at the last point at the latest
    if (k > 0) --k;
    const double fallen = std::log(points[k].relative_gap) - std::log(last.relative_gap);
    const double time = last.seconds - points[k].seconds;
    const double missing = std::log(last.relative_gap) - std::log(tolerance);
    if (!(fallen > 0) || !std::isfinite(fallen) || !(time > 0)) return -1;
    return std::max(missing, 0.0) * time / fallen;
}

Progress::Progress(double tolerance, std::int64_t outputs, std::string task)
    : tolerance_(tolerance), outputs_(outputs), task_(std::move(task)), is_terminal_(::isatty(STDERR_FILENO) == 1),
      next_(is_terminal_ ? 0 : plain_interval) {}

Progress::~Progress() {
    if (has_line_) std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
}

void Progress::show(const TracePoint &point) {
    if (!points_.empty() && points_.back().output != point.output) points_.clear();
    points_.push_back(point);
    if (point.seconds < next_) return;
    next_ = point.seconds + (is_terminal_ ? live_interval : plain_interval);
    std::string text = task_;
    if (outputs_ > 1) text += fmt::format("output {}/{}  ", point.output + 1, outputs_);
    text += fmt::format("pass {:<7.4g} primal {:<12.8g} dual {:<12.8g} gap {:.1e} of {:.1e}  {}", point.passes,
                        point.primal, point.dual + 0.0, point.relative_gap, tolerance_, time_text(point.seconds));
    const double left = seconds_left(points_, tolerance_);
    if (left >= 0) text += fmt::format(", about {} left{}", time_text(left), outputs_ > 1 ? " of this output" : "");
    fmt::print(stderr, "{}{}{}", is_terminal_ ? "\r" : "", is_terminal_ ? fitted(text) : text,
               is_terminal_ ? "\033[K" : "\n");
    std::fflush(stderr);
    has_line_ = is_terminal_;
}

} // namespace spdc::cli
