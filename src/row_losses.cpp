#include "row_losses.h"

#include "vectors.h"

#include <algorithm>
#include <array>
#include <limits>

namespace spdc {

namespace {

template <int lanes> using Real = typename Vector<lanes>::Real;

/// log t for 1e-300 <= t <= 1/2: the exponent, and 2 atanh of what is left, between the roots of 1/2 and 2.
template <int lanes> SPDC_INLINE void log_of(const Real<lanes> &t, Real<lanes> &result) {
    using Unsigned = typename Vector<lanes>::Unsigned;
    constexpr std::uint64_t root = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000, mantissa = 0x000fffffffffffff;
    constexpr std::uint64_t two52 = 0x4330000000000000; // below it a double holds a small integer
    const Unsigned shifted = (Unsigned)t + (one - root);
    const Real<lanes> exponent = (Real<lanes>)((shifted >> 52) + two52) - (0x1p52 + 1023);
    const Real<lanes> f = (Real<lanes>)((shifted & mantissa) + root) - 1.0;
    Real<lanes> log;
    log_of_ratio<lanes>(f, log);
    result = exponent * 0x1.62e42fee00000p-1 + (log + exponent * 0x1.a39ef35793c76p-33);
}

/// log(1 - m) for 0 <= m <= 1/2
template <int lanes> SPDC_INLINE void log_of_rest(const Real<lanes> &m, Real<lanes> &result) {
    const auto large = m > 0.29289321881345254;
    const Real<lanes> f = large ? 1.0 - 2.0 * m : -m, zero = {}, ln2 = zero + 0.6931471805599453;
    Real<lanes> log;
    log_of_ratio<lanes>(f, log);
    result = log - (large ? ln2 : zero);
}

/// Both of a number and what it is without its sign. (A NaN stays one.)
template <int lanes> SPDC_INLINE void margin_of(const double *z, const double *b, Real<lanes> &margin, Real<lanes> &e) {
    const Real<lanes> zero = {};
    margin = at<lanes>(b) * at<lanes>(z);
    Real<lanes> size = margin < zero ? -margin : margin;
    size = size < 708.0 ? size : zero + 708.0;
    exp_of_minus<lanes>(size, e);
}

template <int lanes> SPDC_INLINE void values(const double *z, const double *b, double *to) {
    Real<lanes> margin, e, log;
    margin_of<lanes>(z, b, margin, e);
    log1p_of<lanes>(e, log);
    const Real<lanes> zero = {};
    at<lanes>(to) = log + (margin > zero ? zero : -margin);
}

template <int lanes> SPDC_INLINE void slopes(const double *z, const double *b, double *to) {
    Real<lanes> margin, e;
    margin_of<lanes>(z, b, margin, e);
    const Real<lanes> p = 1.0 / (1.0 + e), zero = {};
    at<lanes>(to) = -at<lanes>(b) * (margin < zero ? p : (margin >= zero ? e * p : margin));
}

/// p log p + (1-p) log(1-p) with p = -b y
template <int lanes> SPDC_INLINE void conjugates(const double *y, const double *b, double *to) {
    const Real<lanes> zero = {}, p = -at<lanes>(b) * at<lanes>(y), q = 1.0 - p;
    const Real<lanes> m = p < q ? p : q, least = zero + 1e-300; // 0 log 0 = 0
    Real<lanes> log, rest;
    log_of<lanes>(m > least ? m : least, log);
    log_of_rest<lanes>(m, rest);
    const Real<lanes> none = zero + std::numeric_limits<double>::infinity();
    at<lanes>(to) = m >= zero ? m * log + (1.0 - m) * rest : none;
}

using Kernel = LogisticKernels::Kernel;

#define SPDC_LOGISTIC_KERNEL(name, suffix, lanes, attribute)                                                           \
    attribute void name##_##suffix(const double *argument, const double *b, std::size_t count, double *to) {           \
        for (std::size_t i = 0; i < count; i += lanes) name<lanes>(argument + i, b + i, to + i);                       \
    }
#define SPDC_LOGISTIC_KERNELS(suffix, lanes, attribute)                                                                \
    SPDC_LOGISTIC_KERNEL(values, suffix, lanes, attribute)                                                             \
    SPDC_LOGISTIC_KERNEL(slopes, suffix, lanes, attribute)                                                             \
    SPDC_LOGISTIC_KERNEL(conjugates, suffix, lanes, attribute)                                                         \
    constexpr LogisticKernels kernels_##suffix{values_##suffix, slopes_##suffix, conjugates_##suffix};

SPDC_LOGISTIC_KERNELS(portable, 2, )
#ifdef SPDC_AVX2
SPDC_LOGISTIC_KERNELS(avx2, 4, SPDC_AVX2)
#endif

/// The last few rows as a vector that is filled up.
void run(Kernel kernel, const double *argument, const double *b, std::size_t count, double *to) {
    constexpr std::size_t most = 4;
    const std::size_t whole = count - count % most, rest = count - whole;
    kernel(argument, b, whole, to);
    if (rest == 0) return;
    std::array<double, most> last{}, targets{}, result{};
    std::copy_n(argument + whole, rest, last.begin());
    std::copy_n(b + whole, rest, targets.begin());
    kernel(last.data(), targets.data(), most, result.data());
    std::copy_n(result.begin(), rest, to + whole);
}

template <class Each>
void each_row(const AnyLoss &loss, Kernel LogisticKernels::*kernel, const double *argument, const double *b,
              std::size_t count, double *to, Each &&each) {
    std::visit(
        [&](const auto &own) {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(own)>, Logistic>) {
                run(logistic_kernels().*kernel, argument, b, count, to);
            } else {
                for (std::size_t i = 0; i < count; ++i) to[i] = each(own, argument[i], b[i]);
            }
        },
        loss.variant());
}

} // namespace

const LogisticKernels &portable_logistic_kernels() { return kernels_portable; }

const LogisticKernels &logistic_kernels() {
#ifdef SPDC_AVX2
    static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_avx2) return kernels_avx2;
#endif
    return kernels_portable;
}

void loss_values(const AnyLoss &loss, const double *z, const double *b, std::size_t count, double *values) {
    each_row(loss, &LogisticKernels::values, z, b, count, values,
             [](const auto &own, double v, double target) { return own.value(v, target); });
}

void loss_slopes(const AnyLoss &loss, const double *z, const double *b, std::size_t count, double *slopes) {
    each_row(loss, &LogisticKernels::slopes, z, b, count, slopes,
             [](const auto &own, double v, double target) { return own.derivative(v, target); });
}

void loss_conjugates(const AnyLoss &loss, const double *y, const double *b, std::size_t count, double *conjugates) {
    each_row(loss, &LogisticKernels::conjugates, y, b, count, conjugates,
             [](const auto &own, double v, double target) { return own.conjugate(v, target); });
}

} // namespace spdc
