// Vectors of a fixed number of lanes: what is written over them once is compiled twice, with two lanes for every x86-64 and with four for
// AVX2.
#pragma once

#include <cstdint>

#if defined(__x86_64__) && defined(__GNUC__)
#define SPDC_AVX2 __attribute__((target("avx2,fma")))
#endif
#define SPDC_INLINE __attribute__((always_inline)) inline

namespace spdc {

template <int lanes> struct Vector;
template <> struct Vector<2> {
    typedef double Real __attribute__((vector_size(16)));
    typedef double Memory __attribute__((vector_size(16), aligned(8), may_alias));
    typedef std::int64_t Integer __attribute__((vector_size(16)));
    typedef std::uint64_t Unsigned __attribute__((vector_size(16)));
};
template <> struct Vector<4> {
    typedef double Real __attribute__((vector_size(32)));
    typedef double Memory __attribute__((vector_size(32), aligned(8), may_alias));
    typedef std::int64_t Integer __attribute__((vector_size(32)));
    typedef std::uint64_t Unsigned __attribute__((vector_size(32)));
};

/// The vector that starts at p, which need not be aligned. (Not `auto &`: deduction forgets the alignment.)
template <int lanes> SPDC_INLINE typename Vector<lanes>::Memory &at(double *p) {
    return *reinterpret_cast<typename Vector<lanes>::Memory *>(p);
}
template <int lanes> SPDC_INLINE const typename Vector<lanes>::Memory &at(const double *p) {
    return *reinterpret_cast<const typename Vector<lanes>::Memory *>(p);
}

/// e^-a for 0 <= a <= 708: 2^k e^r with |r| <= ln(2)/2 and the series of e^r to r^13.
template <int lanes>
SPDC_INLINE void exp_of_minus(const typename Vector<lanes>::Real &a, typename Vector<lanes>::Real &result) {
    using Real = typename Vector<lanes>::Real;
    using Integer = typename Vector<lanes>::Integer;
    constexpr double rounder = 0x1.8p52; // adding it leaves an integer in the low bits
    const Real shifted = a * -1.4426950408889634 + rounder;
    const Real k = shifted - rounder;
    const Real r = (-a - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
    Real p = r * (1.0 / 6227020800) + 1.0 / 479001600;
    constexpr double series[] = {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                                 1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5,         1.0,        1.0};
    for (const double term : series) p = p * r + term;
    const Integer power = ((Integer)shifted + 1023) << 52;
    result = p * (Real)power;
}

/// log(1 + f) = 2 atanh(f/(2+f)) for f between -0.293 and 0.4143, that is 1 + f between the roots of 1/2 and 2.
template <int lanes>
SPDC_INLINE void log_of_ratio(const typename Vector<lanes>::Real &f, typename Vector<lanes>::Real &result) {
    using Real = typename Vector<lanes>::Real;
    const Real s = f / (2.0 + f), s2 = s * s;
    Real p = s2 * (1.0 / 21) + 1.0 / 19;
    constexpr double series[] = {1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3};
    for (const double term : series) p = p * s2 + term;
    result = 2.0 * s + 2.0 * s * s2 * p;
}

/// log(1 + e) for 0 <= e <= 1, of 1 + e or half of it.
template <int lanes>
SPDC_INLINE void log1p_of(const typename Vector<lanes>::Real &e, typename Vector<lanes>::Real &result) {
    using Real = typename Vector<lanes>::Real;
    const auto large = e > 0.41421356237309503;
    const Real f = large ? 0.5 * e - 0.5 : e, zero = {}, ln2 = zero + 0.6931471805599453;
    Real log;
    log_of_ratio<lanes>(f, log);
    result = log + (large ? ln2 : zero);
}

} // namespace spdc
