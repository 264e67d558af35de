// Each kernel is written once over vectors of a fixed number of lanes and compiled twice: two lanes for every x86-64, four with
// AVX2 where the processor has it; there products are fused with the sums they go to (CMakeLists.txt), which takes half the time where a matrix
// is made.
#include "newton_kernels.h"

#include "vectors.h"

#include <algorithm>
#include <cstdint>

namespace spdc {

namespace {

template <int lanes> SPDC_INLINE void predict(const ColumnBlock &block, const double *x, double *z) {
    const std::size_t rows = block.rows;
    std::size_t c = 0;
    for (; c + 4 <= block.count; c += 4) {
        const double *c0 = block.column(c), *c1 = block.column(c + 1), *c2 = block.column(c + 2),
                     *c3 = block.column(c + 3);
        const double x0 = x[c], x1 = x[c + 1], x2 = x[c + 2], x3 = x[c + 3];
        for (std::size_t i = 0; i < rows; i += lanes) {
            at<lanes>(z + i) +=
                (at<lanes>(c0 + i) * x0 + at<lanes>(c1 + i) * x1) + (at<lanes>(c2 + i) * x2 + at<lanes>(c3 + i) * x3);
        }
    }
    for (; c < block.count; ++c) {
        const double *c0 = block.column(c);
        const double x0 = x[c];
        for (std::size_t i = 0; i < rows; i += lanes) {
            at<lanes>(z + i) += at<lanes>(c0 + i) * x0;
        }
    }
}

template <int lanes> SPDC_INLINE double sum_of(const typename Vector<lanes>::Real &v) {
    if constexpr (lanes == 2) {
        return v[0] + v[1];
    } else {
        return (v[0] + v[1]) + (v[2] + v[3]);
    }
}

template <int lanes> SPDC_INLINE void combine(const ColumnBlock &block, const double *w, double *g) {
    using Real = typename Vector<lanes>::Real;
    for (std::size_t c = 0; c < block.count; c += 4) {
        const double *column[4];
        for (std::size_t k = 0; k < 4; ++k) column[k] = block.column(std::min(c + k, block.count - 1));
        Real sum[4] = {};
        for (std::size_t i = 0; i < block.rows; i += lanes) {
            const Real weight = at<lanes>(w + i);
            for (std::size_t k = 0; k < 4; ++k) sum[k] += weight * at<lanes>(column[k] + i);
        }
        for (std::size_t k = 0; k < 4 && c + k < block.count; ++k) g[c + k] += sum_of<lanes>(sum[k]);
    }
}

// Tiles of 4 x 3 columns: twelve sums stay in registers while the rows go by. Tiles that reach over the edge compute a column
// twice and drop it.
template <int lanes>
SPDC_INLINE void gram(const ColumnBlock &weighted, const ColumnBlock &block, std::size_t after, double *h,
                      std::size_t stride) {
    using Real = typename Vector<lanes>::Real;
    const std::size_t count = block.count;
    for (std::size_t c = 0; c < weighted.count; c += 4) {
        const double *left[4];
        for (std::size_t k = 0; k < 4; ++k) left[k] = weighted.column(std::min(c + k, weighted.count - 1));
        for (std::size_t e = c - std::min(c, after); e < count; e += 3) {
            const double *right[3];
            for (std::size_t k = 0; k < 3; ++k) right[k] = block.column(std::min(e + k, count - 1));
            Real sum[4][3] = {};
            for (std::size_t i = 0; i < block.rows; i += lanes) {
                const Real r0 = at<lanes>(right[0] + i);
                const Real r1 = at<lanes>(right[1] + i);
                const Real r2 = at<lanes>(right[2] + i);
                for (std::size_t k = 0; k < 4; ++k) {
                    const Real l = at<lanes>(left[k] + i);
                    sum[k][0] += l * r0;
                    sum[k][1] += l * r1;
                    sum[k][2] += l * r2;
                }
            }
            for (std::size_t k = 0; k < 4 && c + k < weighted.count; ++k) {
                for (std::size_t m = 0; m < 3 && e + m < count; ++m) {
                    h[(c + k) * stride + e + m] += sum_of<lanes>(sum[k][m]);
                }
            }
        }
    }
}

template <int lanes>
SPDC_INLINE void tail(const TailBlock &tail, const std::int32_t *rows, std::size_t count, const double *h,
                      const double *scaled, const HessianParts &to) {
    const std::size_t width = to.mixed_stride;
    for (std::size_t k = 0; k < count; ++k) {
        const double *const row = scaled + k * width;
        const std::int32_t begin = tail.offsets[rows[k]], end = tail.offsets[rows[k] + 1];
        for (std::int32_t p = begin; p < end; ++p) {
            const std::size_t column = tail.columns[p];
            const double value = tail.values[p];
            double *const mixed = to.mixed + column * width;
            for (std::size_t c = 0; c < width; c += lanes) {
                at<lanes>(mixed + c) += value * at<lanes>(row + c);
            }
            double *const square = to.tail + column * to.tail_count;
            const double weight = h[k] * value;
            for (std::int32_t q = p; q < end; ++q) square[tail.columns[q]] += weight * tail.values[q];
        }
    }
}

template <int lanes>
SPDC_INLINE double logistic(const double *z, const double *b, const double *omega, std::size_t count, double *w,
                            double *h) {
    using Real = typename Vector<lanes>::Real;
    Real sum = {};
    const Real zero = {};
    for (std::size_t i = 0; i < count; i += lanes) {
        const Real sign = at<lanes>(b + i), weight = at<lanes>(omega + i);
        const Real margin = sign * at<lanes>(z + i);
        Real size = margin < zero ? -margin : margin;
        size = size < 708.0 ? size : zero + 708.0;
        Real e, log;
        exp_of_minus<lanes>(size, e);
        log1p_of<lanes>(e, log);
        const Real p = 1.0 / (1.0 + e), q = e * p;
        sum += weight * (log + (margin < zero ? -margin : zero));
        at<lanes>(w + i) = -weight * sign * (margin < zero ? p : q);
        at<lanes>(h + i) = weight * p * q;
    }
    return sum_of<lanes>(sum);
}

template <int lanes> SPDC_INLINE void add_multiple(double factor, const double *x, std::size_t count, double *y) {
    std::size_t k = 0;
    for (; k + lanes <= count; k += lanes) at<lanes>(y + k) += factor * at<lanes>(x + k);
    for (; k < count; ++k) y[k] += factor * x[k];
}

// One set of plain functions per instruction set.
#define SPDC_NEWTON_KERNELS(suffix, lanes, attribute)                                                                  \
    attribute void predict_##suffix(const ColumnBlock &c, const double *x, double *z) { predict<lanes>(c, x, z); }     \
    attribute void combine_##suffix(const ColumnBlock &c, const double *w, double *g) { combine<lanes>(c, w, g); }     \
    attribute void gram_##suffix(const ColumnBlock &w, const ColumnBlock &c, std::size_t after, double *h,             \
                                 std::size_t stride) {                                                                 \
        gram<lanes>(w, c, after, h, stride);                                                                           \
    }                                                                                                                  \
    attribute void tail_##suffix(const TailBlock &t, const std::int32_t *rows, std::size_t count, const double *h,     \
                                 const double *scaled, const HessianParts &to) {                                       \
        tail<lanes>(t, rows, count, h, scaled, to);                                                                    \
    }                                                                                                                  \
    attribute double logistic_##suffix(const double *z, const double *b, const double *omega, std::size_t count,       \
                                       double *w, double *h) {                                                         \
        return logistic<lanes>(z, b, omega, count, w, h);                                                              \
    }                                                                                                                  \
    attribute void add_multiple_##suffix(double factor, const double *x, std::size_t count, double *y) {               \
        add_multiple<lanes>(factor, x, count, y);                                                                      \
    }                                                                                                                  \
    constexpr NewtonKernels kernels_##suffix{predict_##suffix, combine_##suffix,  gram_##suffix,                       \
                                             tail_##suffix,    logistic_##suffix, add_multiple_##suffix};

SPDC_NEWTON_KERNELS(portable, 2, )
#ifdef SPDC_AVX2
SPDC_NEWTON_KERNELS(avx2, 4, SPDC_AVX2)
#endif

} // namespace

const NewtonKernels &portable_newton_kernels() { return kernels_portable; }

const NewtonKernels &newton_kernels() {
#ifdef SPDC_AVX2
    static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_avx2) return kernels_avx2;
#endif
    return kernels_portable;
}

} // namespace spdc
