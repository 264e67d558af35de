// Products with rows that have nearly all features, against loops.
#include "solvers/dense_row_kernels.h"
#include "support/problems.h"

#include <gtest/gtest.h>

#include <vector>

namespace spdc::tests {
namespace {

template <class Value> void expect_loops(const DenseRowKernels<Value> &kernels, std::size_t count) {
    Random random(count);
    std::vector<Value> values(count + 1);
    std::vector<ZU> zu(count + 1);
    std::vector<double> x(count + 1);
    for (Value &v : values) v = static_cast<Value>(random.normal());
    const Value *const row = values.data() + count % 2; // not aligned, too
    for (ZU &v : zu) v = ZU{random.normal(), random.normal()};
    for (double &v : x) v = random.normal();
    ZU product{};
    double x_product = 0;
    const ZU move{0.3, -1.7};
    std::vector<ZU> moved = zu;
    std::vector<double> moved_x = x;
    for (std::size_t j = 0; j < count; ++j) {
        product += static_cast<double>(row[j]) * zu[j];
        x_product += static_cast<double>(row[j]) * x[j];
        moved[j] += static_cast<double>(row[j]) * move;
        moved_x[j] += static_cast<double>(row[j]) * move[0];
    }
    const auto size = static_cast<std::int64_t>(count);
    const ZU found = kernels.dot(row, size, zu.data());
    EXPECT_NEAR(found[0], product[0], 1e-12);
    EXPECT_NEAR(found[1], product[1], 1e-12);
    EXPECT_NEAR(kernels.dot_x(row, size, x.data()), x_product, 1e-12);
    kernels.add(move, row, size, zu.data());
    kernels.add_x(move[0], row, size, x.data());
    for (std::size_t j = 0; j <= count; ++j) { // and nothing behind the row
        EXPECT_NEAR(zu[j][0], moved[j][0], 1e-15) << j;
        EXPECT_NEAR(zu[j][1], moved[j][1], 1e-15) << j;
        EXPECT_NEAR(x[j], moved_x[j], 1e-15) << j;
    }
}

TEST(DenseRowKernels, AreLoops) {
    for (std::size_t count = 0; count < 70; ++count) {
        expect_loops(dense_row_kernels<double>(), count);
        expect_loops(dense_row_kernels<float>(), count);
        expect_loops(portable_dense_row_kernels<double>(), count);
        expect_loops(portable_dense_row_kernels<float>(), count);
    }
}

} // namespace
} // namespace spdc::tests
