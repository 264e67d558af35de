// Matrices whose values are looked at by who reads them first: nothing comes of one that is not finite but the error.
#include "support/files.h"
#include "support/solving.h"

#include "spdc/model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace spdc::tests {
namespace {

using test::error_of;
using testing::HasSubstr;

/// The data with `value` for the last entry of row 2, in a matrix that has not looked at it.
template <class Value, class Index> Dataset unseen(const Dataset &checked, double value) {
    const auto &matrix = std::get<CsrMatrix<double>>(checked.matrix);
    struct Owner {
        CsrMatrix<double> offsets;
        std::vector<Index> columns;
        std::vector<Value> values;
    };
    const auto owner = std::make_shared<Owner>(Owner{matrix, {}, {}});
    owner->columns.assign(matrix.columns().begin(), matrix.columns().end());
    for (const double v : matrix.values()) owner->values.push_back(static_cast<Value>(v));
    owner->values[static_cast<std::size_t>(matrix.offsets()[3]) - 1] = static_cast<Value>(value);
    Dataset data = checked;
    data.matrix = CsrMatrix<Value, Index>::with_unseen_values(matrix.cols(), matrix.offsets(), owner->columns,
                                                              owner->values, owner);
    return data;
}

/// Sparse rows of any values, or of one value each, which some kernels know of; row 2 then has one entry.
Dataset rows_of(bool one_value) {
    TinyData data = tiny_data({});
    if (one_value) data = with_one_value_a_row(std::move(data));
    if (one_value) data.rows[2] = {0, 3, 0, 0, 0};
    return as_dataset(std::move(data));
}

AnyRegularizer penalty_for(const std::string &solver) {
    return solver == WorkingSet::name ? AnyRegularizer(ElasticNet{0.01, 0.05}) : AnyRegularizer(L2{0.05});
}

template <class Value, class Index> void expect_that_every_solver_finds(const Dataset &data, double value) {
    const auto matrix = std::get<CsrMatrix<double>>(data.matrix);
    const auto row = matrix.row(2);
    const std::string sentence = fmt::format("matrix: row 2, column {}: value {}, expected a finite number",
                                             row.column(row.size() - 1), static_cast<Value>(value));
    for (const std::string &solver : solver_names()) {
        for (const Presolve presolve : {Presolve::automatic, Presolve::on}) {
            SCOPED_TRACE(solver + " " + std::string(to_string(presolve)));
            const Problem problem(unseen<Value, Index>(data, value), Logistic{}, penalty_for(solver));
            SolveContext context;
            context.presolve = presolve;
            for (int again = 0; again < 2; ++again) { // a solve that failed leaves it as it was
                EXPECT_EQ(error_of(ErrorKind::invalid_argument,
                                   [&] { solve(problem, make_solver(solver), tolerance_of(1e-4), context); }),
                          sentence);
            }
        }
    }
}

TEST(UnseenValues, AreSeenByEverySolver) {
    for (const bool one_value : {false, true}) {
        const Dataset data = rows_of(one_value);
        for (const double value : {std::nan(""), infinity, -infinity}) {
            expect_that_every_solver_finds<float, std::int32_t>(data, value);
            expect_that_every_solver_finds<double, std::int32_t>(data, value);
            expect_that_every_solver_finds<float, std::int64_t>(data, value);
            expect_that_every_solver_finds<double, std::int64_t>(data, value);
        }
    }
}

TEST(UnseenValues, AreSeenByWhateverReadsThem) {
    const Dataset data = unseen<double, std::int32_t>(rows_of(false), std::nan(""));
    const Problem problem(data, Logistic{}, L2{0.05});
    const std::vector<double> x(static_cast<std::size_t>(problem.dimension()), 1.0);
    std::vector<double> y(static_cast<std::size_t>(problem.rows()), 0.5), u(x.size());
    const auto expect_error = [](auto &&call) {
        EXPECT_THAT(error_of(ErrorKind::invalid_argument, call), HasSubstr("row 2, column"));
    };
    expect_error([&] { problem.primal(x); });
    expect_error([&] { problem.primal(std::vector<double>(x.size())); }); // which reads no entry
    expect_error([&] { problem.dual(y); });
    expect_error([&] { problem.predict(x, y); });
    expect_error([&] { problem.combine(y, u); });
    expect_error([&] { problem.row_values(); });
    expect_error([&] { problem.squared_row_norms(); });
    expect_error([&] { problem.check_values(true); });
    expect_error([&] { problem.check_values(false); });
    expect_error([&] { l1_max(problem); });
    expect_error([&] { Certifier(problem).offer(x, y, 1e-4); });
    expect_error([&] { check(data.matrix); });
    expect_error([&] { scores(Model{}, data.matrix); });
    expect_error([&] { select_rows(data.matrix, std::vector<std::int64_t>{0}); });
    ProblemOptions some_rows;
    some_rows.class_weights = {{"1", 0.0}};
    Dataset three = data;
    three.targets[0] = 3;
    expect_error([&] { Problem(three, Logistic{}, L2{0.05}, some_rows); }); // copies the others
}

TEST(UnseenValues, GiveTheSameBitsAsSeenOnes) {
    for (const bool one_value : {false, true}) {
        const Dataset data = rows_of(one_value);
        for (const std::string &solver : solver_names()) {
            SCOPED_TRACE(solver);
            const Problem unseen_yet(unseen<double, std::int32_t>(data, 3), Logistic{}, penalty_for(solver));
            Dataset same = unseen<double, std::int32_t>(data, 3);
            check(same.matrix);
            const Problem seen(same, Logistic{}, penalty_for(solver));
            for (int again = 0; again < 2; ++again) { // the second time without kept norms
                const Result one = solve(seen, make_solver(solver), pass_limit_of(20));
                const Result two = solve(unseen_yet, make_solver(solver), pass_limit_of(20));
                EXPECT_EQ(one.weights, two.weights);
                EXPECT_EQ(one.dual, two.dual);
                EXPECT_EQ(one.solver_reason, two.solver_reason);
            }
        }
    }
}

TEST(UnseenValues, MayBeHuge) {
    for (const bool one_value : {false, true}) {
        const Dataset data = rows_of(one_value);
        const Problem problem(unseen<double, std::int32_t>(data, 1e200), Logistic{},
                              L2{0.05}); // its square is infinite
        problem.check_values(true);
        EXPECT_EQ(problem.squared_row_norms()[2], infinity);
        const Problem floats(unseen<float, std::int32_t>(data, std::numeric_limits<float>::max()), Logistic{},
                             L2{0.05});
        floats.check_values(true);
        EXPECT_LT(floats.squared_row_norms()[2], infinity);
    }
}

TEST(UnseenValues, GiveTheirNormsToWhoAsksFirst) {
    const Dataset data = rows_of(false);
    const Problem problem(unseen<double, std::int32_t>(data, 3), Logistic{}, L2{0.05});
    problem.check_values(true);
    const std::vector<double> kept = problem.squared_row_norms();
    EXPECT_EQ(problem.squared_row_norms(), kept);
    EXPECT_EQ(problem.with(L2{1}).squared_row_norms(), kept);
}

TEST(UnseenValuesThreads, SolveTheSameProblemSideBySide) {
    const Dataset data = rows_of(false);
    const Problem problem(unseen<double, std::int32_t>(data, 3), Logistic{}, L2{0.05});
    std::vector<Result> results(4);
    std::vector<std::thread> threads;
    for (Result &result : results) {
        threads.emplace_back([&] { result = solve(problem, SpdcFast{}, pass_limit_of(20)); });
    }
    for (std::thread &thread : threads) thread.join();
    for (const Result &result : results) EXPECT_EQ(result.weights, results.front().weights);
}

/// Columns and offsets are never left unseen: kernels write where they point.
TEST(UnseenValues, StandInPlacesThatAreSeen) {
    const std::vector<std::int64_t> offsets{0, 2}, beyond{0, 3};
    const std::vector<std::int32_t> columns{0, 1}, twice{1, 1}, outside{0, 5};
    const std::vector<double> values{1, std::nan("")};
    const auto made = [&](const auto &starts, const auto &places) {
        return error_of(ErrorKind::invalid_argument,
                        [&] { CsrMatrix<double>::with_unseen_values(5, starts, places, values, nullptr); });
    };
    EXPECT_THAT(made(beyond, columns), HasSubstr("last offset 3"));
    EXPECT_THAT(made(offsets, twice), HasSubstr("column 1 after column 1"));
    EXPECT_THAT(made(offsets, outside), HasSubstr("column 5"));
    CsrMatrix<double>::with_unseen_values(5, offsets, columns, values, nullptr);
}

} // namespace
} // namespace spdc::tests
