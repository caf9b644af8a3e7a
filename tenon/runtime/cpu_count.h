// How many CPUs this process may use.
#pragma once

namespace tenon::runtime {

// CPUs of the affinity mask, at most the control group's quota (rounded up), at least 1.
int available_cpus();

}  // namespace tenon::runtime
