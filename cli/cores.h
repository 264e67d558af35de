// How many cores this process may use.
#pragma once

namespace spdc::cli {

/// Cores of the affinity mask, or fewer when a container's processor quota (cgroup cpu.max) allows less; at least 1.
int available_cores();

} // namespace spdc::cli
