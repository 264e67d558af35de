// The inner loops of Newton's method on a block of rows stored column by column, in the widest form the processor has.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spdc {

/// `count` columns, each of `rows` values, `stride` apart. `rows` is a multiple of 4; unused rows hold zeros.
struct ColumnBlock {
    const double *values;
    std::size_t count, stride, rows;
    const double *column(std::size_t c) const noexcept { return values + c * stride; }
};

/// The rows of a block that are not in its columns: entries (column, value), columns ascending inside a row.
struct TailBlock {
    const std::int32_t *offsets; // of the block's rows, one more than there are rows
    const std::uint16_t *columns;
    const double *values;
};

/// Where the parts of the Hessian of a block are added up: columns x columns (upper half), tail x columns, tail x tail (upper
/// half), each row after row.
struct HessianParts {
    double *columns;
    double *mixed;
    double *tail;
    std::size_t column_count, mixed_stride, tail_count;
};

struct NewtonKernels {
    /// z += C x
    void (*predict)(const ColumnBlock &c, const double *x, double *z);
    /// g += C'w
    void (*combine)(const ColumnBlock &c, const double *w, double *g);
    /// H += W'C without what is below the diagonal, where C's first column is that many after W's.
    void (*gram)(const ColumnBlock &w, const ColumnBlock &c, std::size_t after, double *h, std::size_t stride);
    /// Row r of the tail with the scaled row `scaled + k * mixed_stride` of the columns, for the k-th listed row r = rows[k] with
    /// curvature h[k].
    void (*tail)(const TailBlock &tail, const std::int32_t *rows, std::size_t count, const double *h,
                 const double *scaled, const HessianParts &to);
    /// w <- omega phi'(z), h <- omega phi''(z) for the logistic loss; returns the sum of omega phi. `count` is a multiple of 4.
    double (*logistic)(const double *z, const double *b, const double *omega, std::size_t count, double *w, double *h);
    /// y += factor x
    void (*add_multiple)(double factor, const double *x, std::size_t count, double *y);
};

/// The kernels for this processor.
const NewtonKernels &newton_kernels();

/// Those that every x86-64 (or other) processor runs: the twin that tests compare with.
const NewtonKernels &portable_newton_kernels();

} // namespace spdc
