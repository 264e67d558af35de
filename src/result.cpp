#include "spdc/result.h"

#include <algorithm>

namespace spdc {

const Certificate &Result::worst() const {
    static const Certificate none; // a result that was not run vouches for nothing
    if (certificates.empty()) return none;
    return *std::max_element(certificates.begin(), certificates.end(), [](const Certificate &a, const Certificate &b) {
        return a.relative_gap < b.relative_gap;
    });
}

} // namespace spdc
