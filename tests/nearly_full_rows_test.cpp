// Rows that have nearly all features: their products, against loops, and spdc_fast on them. (Its steps: spdc_fast_test.cpp.)
#include "solvers/dense_row_kernels.h"
#include "solvers/methods.h"
#include "solvers/random_rows.h"
#include "spdc/solvers.h"
#include "support/problems.h"

#include <gtest/gtest.h>

#include <memory>
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

TinyData nearly_full(Task task = Task::classification, double density = 0.9) {
    return tiny_data({.task = task, .rows = 30, .columns = 83, .density = density});
}

std::vector<double> weights_after(Method &method, double passes) {
    method.advance(passes);
    std::vector<double> x, y;
    method.point(x, y);
    return x;
}

// Nearly full rows are read with their zeros, whatever they are stored as, by vectors instead of one entry after the other.
TEST(NearlyFullRows, AreTheSameInEveryStorage) {
    for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(Hinge{}), AnyLoss(Squared{})}) {
        TinyData data = nearly_full(loss.task());
        data.weights.resize(data.rows.size());
        for (std::size_t i = 0; i < data.rows.size(); ++i) data.weights[i] = 0.5 + static_cast<double>(i % 3);
        for (const AnySolver &solver : {AnySolver(SpdcFast{}), AnySolver(Sdca{})}) {
            std::vector<double> x;
            for (const Storage storage : all_storages) {
                for (const bool copy : {true, false}) {
                    SolveContext context;
                    context.copy = copy;
                    const Problem problem(as_dataset(data, storage), loss, L2{1e-3});
                    const auto method = std::visit(
                        [&](const auto &own) -> std::unique_ptr<Method> {
                            if constexpr (requires { own.shrinking; }) return make_method(problem, own, context);
                            return nullptr;
                        },
                        solver);
                    const std::vector<double> found = weights_after(*method, 7);
                    if (x.empty()) x = found;
                    const double rounding =
                        storage == Storage::csr_float || storage == Storage::dense_float ? 1e-5 : 1e-12;
                    for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(found[j], x[j], rounding) << loss.name();
                }
            }
        }
    }
}

// The first or last entries of rows need not be the first or last columns, which rows with their zeros have.
TEST(NearlyFullRows, MayHaveAConstantColumnBesideAnEmptyOne) {
    const TinyData data = nearly_full();
    for (const bool is_first : {true, false}) {
        TinyData with = data;
        for (auto &row : with.rows) row.insert(is_first ? row.begin() : row.end(), 1.0);
        TinyData beside = with;
        for (auto &row : beside.rows) row.insert(is_first ? row.begin() : row.end(), 0.0);
        const auto weights_of = [](const TinyData &rows) {
            const Problem problem(as_dataset(rows, Storage::csr_double), SquaredHinge{}, L2{1e-3});
            return weights_after(*make_method(problem, SpdcFast{}, SolveContext{}), 12);
        };
        std::vector<double> expected = weights_of(with);
        expected.insert(is_first ? expected.begin() : expected.end(), 0.0);
        const std::vector<double> found = weights_of(beside);
        for (std::size_t j = 0; j < expected.size(); ++j) EXPECT_NEAR(found[j], expected[j], 1e-12) << j;
    }
}

TEST(NearlyFullRows, AreReadWithTheirZerosUnlessThatTakesACopyTooMany) {
    const auto has_all_columns = [](double density, Storage storage, bool copy, bool may_fill) {
        const Problem problem(as_dataset(nearly_full(Task::classification, density), storage), SquaredHinge{},
                              L2{1e-3});
        SolveContext context;
        context.copy = copy;
        spdc::Random random(1);
        return RandomRows<const double *, std::int32_t>(problem, context, random, may_fill).has_all_columns();
    };
    EXPECT_TRUE(has_all_columns(0.9, Storage::csr_double, true, true));
    EXPECT_FALSE(has_all_columns(0.9, Storage::csr_double, true, false));
    EXPECT_FALSE(has_all_columns(0.9, Storage::csr_double, false, true));
    EXPECT_FALSE(has_all_columns(0.5, Storage::csr_double, true, true));
    EXPECT_TRUE(has_all_columns(0.9, Storage::dense_double, true, false));
    EXPECT_TRUE(has_all_columns(0.9, Storage::dense_double, false, false));
    EXPECT_FALSE(has_all_columns(0.5, Storage::dense_double, true, true));
}

} // namespace
} // namespace spdc::tests
