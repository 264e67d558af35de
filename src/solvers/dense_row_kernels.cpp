// Each kernel is written once over vectors of a fixed number of lanes and compiled twice, as in newton_kernels.cpp.
#include "dense_row_kernels.h"

#include "vectors.h"

#include <type_traits>

namespace spdc {

namespace {

template <int lanes> using Real = typename Vector<lanes>::Real;

template <int lanes> SPDC_INLINE void load(const double *from, Real<lanes> &to) { to = at<lanes>(from); }
template <int lanes> SPDC_INLINE void load(const float *from, Real<lanes> &to) {
    typedef float Floats __attribute__((vector_size(4 * lanes), aligned(4), may_alias));
    to = __builtin_convertvector(*reinterpret_cast<const Floats *>(from), Real<lanes>);
}

/// Every number twice in a row, as {z, u} of a feature want it: those of the first half of the lanes, and of the second.
SPDC_INLINE void twice(const Real<2> &v, Real<2> &first, Real<2> &second) {
    first = __builtin_shufflevector(v, v, 0, 0);
    second = __builtin_shufflevector(v, v, 1, 1);
}
SPDC_INLINE void twice(const Real<4> &v, Real<4> &first, Real<4> &second) {
    first = __builtin_shufflevector(v, v, 0, 0, 1, 1);
    second = __builtin_shufflevector(v, v, 2, 2, 3, 3);
}

SPDC_INLINE ZU fold(const Real<2> &v) { return ZU{v[0], v[1]}; }
SPDC_INLINE ZU fold(const Real<4> &v) { return ZU{v[0] + v[2], v[1] + v[3]}; }
SPDC_INLINE double sum_of(const Real<2> &v) { return v[0] + v[1]; }
SPDC_INLINE double sum_of(const Real<4> &v) { return (v[0] + v[1]) + (v[2] + v[3]); }

template <int lanes, class Value> SPDC_INLINE ZU dot(const Value *values, std::int64_t count, const ZU *zu) {
    const auto *const numbers = reinterpret_cast<const double *>(zu);
    Real<lanes> sums[4] = {}, v, first, second;
    std::int64_t q = 0;
    for (; q + 2 * lanes <= count; q += 2 * lanes) {
        for (int half = 0; half < 2; ++half) {
            const double *const from = numbers + 2 * (q + half * lanes);
            load<lanes>(values + q + half * lanes, v);
            twice(v, first, second);
            sums[2 * half] += first * at<lanes>(from);
            sums[2 * half + 1] += second * at<lanes>(from + lanes);
        }
    }
    ZU sum = fold((sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (; q < count; ++q) sum += static_cast<double>(values[q]) * zu[q];
    return sum;
}

template <int lanes, class Value>
SPDC_INLINE void add(const ZU &move, const Value *values, std::int64_t count, ZU *zu) {
    auto *const numbers = reinterpret_cast<double *>(zu);
    Real<lanes> moves, v, first, second;
    for (int lane = 0; lane < lanes; ++lane) moves[lane] = move[lane % 2];
    std::int64_t q = 0;
    for (; q + lanes <= count; q += lanes) {
        load<lanes>(values + q, v);
        twice(v, first, second);
        at<lanes>(numbers + 2 * q) += first * moves;
        at<lanes>(numbers + 2 * q + lanes) += second * moves;
    }
    for (; q < count; ++q) zu[q] += static_cast<double>(values[q]) * move;
}

template <int lanes, class Value> SPDC_INLINE double dot_x(const Value *values, std::int64_t count, const double *x) {
    Real<lanes> sums[4] = {}, v;
    std::int64_t q = 0;
    for (; q + 4 * lanes <= count; q += 4 * lanes) {
        for (int part = 0; part < 4; ++part) {
            load<lanes>(values + q + part * lanes, v);
            sums[part] += v * at<lanes>(x + q + part * lanes);
        }
    }
    double sum = sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (; q < count; ++q) sum += static_cast<double>(values[q]) * x[q];
    return sum;
}

template <int lanes, class Value>
SPDC_INLINE void add_x(double move, const Value *values, std::int64_t count, double *x) {
    Real<lanes> v;
    std::int64_t q = 0;
    for (; q + lanes <= count; q += lanes) {
        load<lanes>(values + q, v);
        at<lanes>(x + q) += v * move;
    }
    for (; q < count; ++q) x[q] += static_cast<double>(values[q]) * move;
}

#define SPDC_DENSE_ROW_KERNELS(suffix, lanes, attribute)                                                               \
    template <class Value> attribute ZU dot_##suffix(const Value *values, std::int64_t count, const ZU *zu) {          \
        return dot<lanes>(values, count, zu);                                                                          \
    }                                                                                                                  \
    template <class Value> attribute void add_##suffix(ZU move, const Value *values, std::int64_t count, ZU *zu) {     \
        add<lanes>(move, values, count, zu);                                                                           \
    }                                                                                                                  \
    template <class Value> attribute double dot_x_##suffix(const Value *values, std::int64_t count, const double *x) { \
        return dot_x<lanes>(values, count, x);                                                                         \
    }                                                                                                                  \
    template <class Value>                                                                                             \
    attribute void add_x_##suffix(double move, const Value *values, std::int64_t count, double *x) {                   \
        add_x<lanes>(move, values, count, x);                                                                          \
    }                                                                                                                  \
    template <class Value>                                                                                             \
    constexpr DenseRowKernels<Value> kernels_##suffix{dot_##suffix<Value>, add_##suffix<Value>, dot_x_##suffix<Value>, \
                                                      add_x_##suffix<Value>};

SPDC_DENSE_ROW_KERNELS(portable, 2, )
#ifdef SPDC_AVX2
SPDC_DENSE_ROW_KERNELS(avx2, 4, SPDC_AVX2)
#endif

} // namespace

template <class Value> const DenseRowKernels<Value> &portable_dense_row_kernels() { return kernels_portable<Value>; }

template <class Value> const DenseRowKernels<Value> &dense_row_kernels() {
#ifdef SPDC_AVX2
    static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_avx2) return kernels_avx2<Value>;
#endif
    return kernels_portable<Value>;
}

template const DenseRowKernels<float> &dense_row_kernels();
template const DenseRowKernels<double> &dense_row_kernels();
template const DenseRowKernels<float> &portable_dense_row_kernels();
template const DenseRowKernels<double> &portable_dense_row_kernels();

} // namespace spdc
