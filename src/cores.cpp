#include "spdc/solvers.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

namespace spdc {

namespace {

int cores_of_mask() {
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
    return static_cast<int>(std::thread::hardware_concurrency()); // more cores than a mask of the usual size holds
}

// "max 100000" is no limit; "150000 100000" is one and a half cores.
double cores_of_quota(const std::string &file) {
    std::ifstream in(file);
    double quota = 0, period = 0;
    return in >> quota >> period && quota > 0 && period > 0 ? quota / period : HUGE_VAL;
}

// The smallest quota from this process's group up to the root.
double cores_of_groups() {
    std::ifstream groups("/proc/self/cgroup");
    double least = HUGE_VAL;
    for (std::string line; std::getline(groups, line);) {
        if (!line.starts_with("0::")) continue; // version 2 only
        for (std::string path = line.substr(3);; path.erase(path.rfind('/'))) {
            least = std::min(least, cores_of_quota("/sys/fs/cgroup" + path + "/cpu.max"));
            if (path.empty() || path.find('/') == path.npos) break;
        }
    }
    return least;
}

} // namespace

int available_cores() {
    const double quota = cores_of_groups();
    const int cores = cores_of_mask();
    return std::max(1, quota < cores ? static_cast<int>(std::ceil(quota)) : cores);
}

} // namespace spdc
