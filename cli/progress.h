// Progress on standard error: a live line on a terminal, else a line every few seconds.
#pragma once

#include "spdc/trace.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spdc::cli {

/// Seconds until the relative gap meets the tolerance if log(gap) goes on falling as it did over the last half of the run;
/// negative when it does not fall or too little is known.
double seconds_left(const std::vector<TracePoint> &points, double tolerance);

class Progress {
  public:
    /// `task` begins every line: what is running, where that is not clear.
    Progress(double tolerance, std::int64_t outputs, std::string task = {});
    /// Takes the live line away.
    ~Progress();
    Progress(const Progress &) = delete;
    Progress &operator=(const Progress &) = delete;

    void show(const TracePoint &point);

  private:
    double tolerance_;
    std::int64_t outputs_;
    std::string task_;
    bool is_terminal_;
    bool has_line_ = false;
    double next_ = 0;
    std::vector<TracePoint> points_; // of the present output
};

} // namespace spdc::cli
