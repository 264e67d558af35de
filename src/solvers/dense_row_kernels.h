// Products of a row that has nearly all features with {z, u} or x: no columns to look up, as many features at a time as the processor's
// vectors hold.
#pragma once

#include "spdc_fast.h"

#include <cstdint>

namespace spdc {

template <class Value> struct DenseRowKernels {
    ZU (*dot)(const Value *values, std::int64_t count, const ZU *zu);
    void (*add)(ZU move, const Value *values, std::int64_t count, ZU *zu);
    double (*dot_x)(const Value *values, std::int64_t count, const double *x);
    void (*add_x)(double move, const Value *values, std::int64_t count, double *x);
};

/// The kernels for this processor. Value: float or double.
template <class Value> const DenseRowKernels<Value> &dense_row_kernels();

/// Those that every x86-64 (or other) processor runs: the twin that tests compare with.
template <class Value> const DenseRowKernels<Value> &portable_dense_row_kernels();

} // namespace spdc
