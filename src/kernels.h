// Products of one row with a vector; nothing else.
#pragma once

#include <cstdint>

namespace spdc {

/// <a, x>. Two chains of sums, because one add per four cycles would be the limit otherwise.
template <class Row> double dot(const Row &a, const double *x) noexcept {
    double even = 0, odd = 0;
    std::int64_t p = 0;
    const std::int64_t size = a.size();
    for (; p + 1 < size; p += 2) {
        even += a.value(p) * x[a.column(p)];
        odd += a.value(p + 1) * x[a.column(p + 1)];
    }
    if (p < size) even += a.value(p) * x[a.column(p)];
    return even + odd;
}

/// x += alpha a
template <class Row> void axpy(double alpha, const Row &a, double *x) noexcept {
    const std::int64_t size = a.size();
    for (std::int64_t p = 0; p < size; ++p) x[a.column(p)] += alpha * a.value(p);
}

/// <a, a>
template <class Row> double squared_norm(const Row &a) noexcept {
    double even = 0, odd = 0;
    std::int64_t p = 0;
    const std::int64_t size = a.size();
    for (; p + 1 < size; p += 2) {
        even += a.value(p) * a.value(p);
        odd += a.value(p + 1) * a.value(p + 1);
    }
    if (p < size) even += a.value(p) * a.value(p);
    return even + odd;
}

} // namespace spdc
