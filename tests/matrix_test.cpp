#include "parallel.h"
#include "spdc/dataset.h"
#include "spdc/error.h"
#include "spdc/matrix.h"
#include "support/files.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace spdc {
namespace {

using test::error_of;
using testing::HasSubstr;

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

// [1 0 2; 0 0 0; 0 3 0]
CsrMatrix<double> small_csr() { return CsrMatrix<double>::own(3, {0, 2, 2, 3}, {0, 2, 1}, {1, 2, 3}); }

template <class Call> std::string invalid(Call &&call) { return error_of(ErrorKind::invalid_argument, call); }

TEST(CsrMatrix, ShowsRowsAsStored) {
    const CsrMatrix<double> matrix = small_csr();
    EXPECT_EQ(matrix.rows(), 3);
    EXPECT_EQ(matrix.cols(), 3);
    EXPECT_EQ(matrix.nonzeros(), 3);
    EXPECT_EQ(matrix.row(0).size(), 2);
    EXPECT_EQ(matrix.row(0).column(1), 2);
    EXPECT_EQ(matrix.row(0).value(1), 2);
    EXPECT_EQ(matrix.row(1).size(), 0);
}

TEST(CsrMatrix, DefaultIsEmpty) {
    const CsrMatrix<float> matrix;
    EXPECT_EQ(matrix.rows(), 0);
    EXPECT_EQ(matrix.nonzeros(), 0);
}

TEST(CsrMatrix, OwnedMemoryOutlivesItsCopies) {
    CsrMatrix<double> copy;
    {
        const CsrMatrix<double> matrix = small_csr();
        copy = matrix;
    }
    EXPECT_EQ(copy.row(2).value(0), 3);
}

TEST(CsrMatrix, ViewMayStartInsideALargerMatrix) {
    const std::vector<std::int64_t> offsets{2, 2, 3};
    const std::vector<std::int32_t> columns{0, 2, 1};
    const std::vector<double> values{1, 2, 3};
    const CsrMatrix<double> matrix(3, offsets, columns, values, nullptr);
    EXPECT_EQ(matrix.nonzeros(), 1);
    EXPECT_EQ(matrix.row(1).value(0), 3);
}

TEST(CsrMatrix, LowerBoundFindsTheFirstColumnNotBelow) {
    const CsrMatrix<double> matrix = CsrMatrix<double>::own(9, {0, 3}, {1, 4, 7}, {1, 1, 1});
    const std::vector<std::int64_t> expected{0, 0, 1, 1, 1, 2, 2, 2, 3, 3};
    for (std::int64_t column = 0; column < 10; ++column) {
        EXPECT_EQ(matrix.row(0).lower_bound(column), expected[static_cast<std::size_t>(column)]) << column;
    }
}

TEST(CsrMatrix, RejectsBrokenInvariants) {
    using M = CsrMatrix<double>;
    EXPECT_THAT(invalid([] { M::own(3, {0, 1}, {0, 1}, {1}); }), HasSubstr("as many"));
    EXPECT_THAT(invalid([] { M::own(3, {}, {}, {}); }), HasSubstr("no offsets"));
    EXPECT_THAT(invalid([] { M::own(3, {-1, 1}, {0}, {1}); }), HasSubstr("first offset -1"));
    EXPECT_THAT(invalid([] { M::own(3, {0, 2, 1}, {0, 1}, {1, 1}); }), HasSubstr("no descent"));
    EXPECT_THAT(invalid([] { M::own(3, {0, 5}, {0}, {1}); }), HasSubstr("last offset 5"));
    EXPECT_THAT(invalid([] { M::own(3, {0, 2}, {1, 1}, {1, 1}); }), HasSubstr("column 1 after column 1"));
    EXPECT_THAT(invalid([] { M::own(3, {0, 2}, {2, 1}, {1, 1}); }), HasSubstr("row 0: column 1 after column 2"));
    EXPECT_THAT(invalid([] { M::own(3, {0, 1}, {3}, {1}); }), HasSubstr("column 3"));
    EXPECT_THAT(invalid([] { M::own(3, {0, 1}, {-1}, {1}); }), HasSubstr("column -1"));
    EXPECT_THAT(invalid([] { M::own(3, {0, 1}, {0}, {nan_value}); }), HasSubstr("finite"));
    EXPECT_THAT(invalid([] { M::own(3, {0, 1}, {0}, {infinity}); }), HasSubstr("finite"));
    EXPECT_THAT(invalid([] { M::own(-1, {0}, {}, {}); }), HasSubstr("-1 columns"));
}

/// The invariants of entries, one at a time.
template <class Value>
bool is_well_formed(std::int64_t cols, std::span<const std::int64_t> offsets, std::span<const std::int32_t> columns,
                    std::span<const Value> values) {
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        for (auto p = static_cast<std::size_t>(offsets[i]); p < static_cast<std::size_t>(offsets[i + 1]); ++p) {
            const bool is_first = p == static_cast<std::size_t>(offsets[i]);
            if (columns[p] < 0 || columns[p] >= cols || (!is_first && columns[p] <= columns[p - 1])) return false;
            if (!std::isfinite(values[p])) return false;
        }
    }
    return true;
}

template <class Call> bool accepts(Call &&call) {
    try {
        call();
    } catch (const Error &) {
        return false;
    }
    return true;
}

// Broken entries in random places of random matrices, in rows and outside of them, are found when and only when they are there.
template <class Value, class Index> void check_that_breaks_are_found() {
    const std::int32_t lowest = std::numeric_limits<std::int32_t>::min(), highest = ~lowest;
    const std::int32_t odd_columns[] = {lowest, lowest + 1, -1, 0, 1, 5, 11, 12, highest};
    const Value odd_values[] = {std::numeric_limits<Value>::quiet_NaN(), -std::numeric_limits<Value>::quiet_NaN(),
                                std::numeric_limits<Value>::infinity(),  -std::numeric_limits<Value>::infinity(),
                                std::numeric_limits<Value>::max(),       std::numeric_limits<Value>::denorm_min()};
    std::mt19937 random(1);
    const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
    int broken = 0;
    for (int round = 0; round < 4000; ++round) {
        std::vector<std::int64_t> offsets{static_cast<std::int64_t>(below(3))};
        std::vector<std::int32_t> columns(static_cast<std::size_t>(offsets[0]),
                                          -7); // before the first row: not looked at
        const std::size_t rows = 1 + below(round % 8 == 0 ? 200 : 6);
        for (std::size_t i = 0; i < rows; ++i) {
            for (std::int32_t j = 0; j < 12; ++j) {
                if (below(3) == 0) columns.push_back(j);
            }
            offsets.push_back(static_cast<std::int64_t>(columns.size()));
        }
        std::vector<Value> values(columns.size(), 1);
        if (columns.empty()) continue;
        const std::size_t place = below(columns.size());
        if (round % 3 == 0) columns[place] = odd_columns[below(std::size(odd_columns))];
        if (round % 3 == 1) values[place] = odd_values[below(std::size(odd_values))];
        if (round % 3 == 2) std::swap(columns[place], columns[below(columns.size())]);
        const bool good = is_well_formed<Value>(12, offsets, columns, values);
        broken += good ? 0 : 1;
        const std::vector<Index> own_columns(columns.begin(), columns.end());
        using Matrix = CsrMatrix<Value, Index>;
        EXPECT_EQ(accepts([&] { Matrix(12, offsets, own_columns, values, nullptr); }), good) << "round " << round;
        EXPECT_EQ(accepts([&] { Matrix::with_unseen_values(12, offsets, own_columns, values, nullptr).check(); }), good)
            << "round " << round;
    }
    EXPECT_GT(broken, 1000);
    EXPECT_LT(broken, 3000);
}

TEST(CsrMatrix, FindsEveryBrokenEntryAndNoOther) {
    check_that_breaks_are_found<float, std::int32_t>();
    check_that_breaks_are_found<double, std::int32_t>();
    check_that_breaks_are_found<float, std::int64_t>();
    check_that_breaks_are_found<double, std::int64_t>();
}

TEST(CsrMatrix, DoesNotWrapWideColumnsAround) {
    using M = CsrMatrix<double, std::int64_t>;
    const std::int64_t wraps = (std::int64_t{1} << 32) + 1;
    EXPECT_THAT(invalid([&] { M::own(3, {0, 1}, {wraps}, {1}); }), HasSubstr("column 4294967297"));
    EXPECT_THAT(invalid([&] {
                    M::own(3, {0, 2}, {0, -wraps}, {1, 1});
                }),
                HasSubstr("column -4294967297 after column 0"));
    EXPECT_EQ(M::own(3, {0, 2}, {0, 2}, {1, 1}).row(0).column(1), 2);
}

TEST(DenseMatrix, HonoursTheStride) {
    const std::vector<float> values{1, 2, 9, 3, 4, 9};
    const DenseMatrix<float> matrix(2, 2, values.data(), 3, nullptr);
    EXPECT_EQ(matrix.row(1).value(0), 3);
    EXPECT_EQ(matrix.row(1).value(1), 4);
    EXPECT_EQ(matrix.nonzeros(), 4);
    EXPECT_EQ(matrix.row(0).lower_bound(1), 1);
    EXPECT_EQ(matrix.row(0).lower_bound(7), 2);
}

TEST(DenseMatrix, RejectsBrokenInvariants) {
    using M = DenseMatrix<double>;
    const double one = 1;
    EXPECT_THAT(invalid([] { M::own(2, 2, {1, 2, 3}); }), HasSubstr("3 values for 2 rows of 2 columns"));
    EXPECT_THAT(invalid([] { M::own(-1, 2, {}); }), HasSubstr("-1 rows"));
    EXPECT_THAT(invalid([] { M::own(1, 2, {1, nan_value}); }), HasSubstr("row 0, column 1"));
    EXPECT_THAT(invalid([&] { M(1, 2, &one, 1, nullptr); }), HasSubstr("stride"));
    EXPECT_THAT(invalid([] { M(1, 1, nullptr, 1, nullptr); }), HasSubstr("no data"));
    EXPECT_THAT(invalid([&] { M(std::int64_t{1} << 62, 4, &one, 4, nullptr); }), HasSubstr("too large"));
}

TEST(AnyMatrix, SelectsRowsInTheOrderAskedAndMoreThanOnce) {
    const std::vector<std::int64_t> keep{2, 0, 2};
    const AnyMatrix sparse = select_rows(small_csr(), keep);
    EXPECT_EQ(rows(sparse), 3);
    EXPECT_EQ(cols(sparse), 3);
    EXPECT_EQ(nonzeros(sparse), 4);
    EXPECT_EQ(std::get<CsrMatrix<double>>(sparse).row(1).value(1), 2);
    const AnyMatrix dense = select_rows(DenseMatrix<float>::own(3, 2, {1, 2, 3, 4, 5, 6}), keep);
    EXPECT_EQ(std::get<DenseMatrix<float>>(dense).row(0).value(1), 6);
    EXPECT_EQ(std::get<DenseMatrix<float>>(dense).row(1).value(0), 1);
}

TEST(AnyMatrix, RefusesToSelectRowsItDoesNotHave) {
    const std::vector<std::int64_t> beyond{3};
    const std::vector<std::int64_t> below{-1};
    EXPECT_THAT(invalid([&] { select_rows(small_csr(), beyond); }), HasSubstr("row 3"));
    EXPECT_THAT(invalid([&] { select_rows(small_csr(), below); }), HasSubstr("row -1"));
}

TEST(AnyMatrix, AddsEmptyColumnsOnTheRight) {
    const AnyMatrix sparse = with_columns(small_csr(), 7);
    EXPECT_EQ(cols(sparse), 7);
    EXPECT_EQ(nonzeros(sparse), 3);
    const AnyMatrix dense = with_columns(DenseMatrix<float>::own(2, 2, {1, 2, 3, 4}), 3);
    const auto &wide = std::get<DenseMatrix<float>>(dense);
    EXPECT_EQ(wide.row(1).value(1), 4);
    EXPECT_EQ(wide.row(1).value(2), 0);
    EXPECT_EQ(wide.row(0).size(), 3);
}

TEST(AnyMatrix, RefusesToDropColumns) {
    EXPECT_THAT(invalid([] { with_columns(small_csr(), 2); }), HasSubstr("at least the 3 present"));
    EXPECT_THAT(invalid([] { with_columns(small_csr(), (std::int64_t{1} << 31) + 1); }), HasSubstr("columns"));
}

Dataset small_dataset() {
    Dataset data;
    data.matrix = small_csr();
    data.targets = {1, -1, 1};
    return data;
}

TEST(DatasetCheck, AcceptsAWellFormedDataset) {
    Dataset data = small_dataset();
    data.weights = {0, 1, 2.5};
    data.feature_names = {"a", "b", "c"};
    EXPECT_NO_THROW(check(data, "data"));
    data.label_names = {"no", "yes"};
    data.targets = {1, 0, 1};
    EXPECT_NO_THROW(check(data, "data"));
}

TEST(DatasetCheck, RejectsWrongSizesAndValues) {
    const auto message = [](auto change) {
        Dataset data = small_dataset();
        change(data);
        return invalid([&] { check(data, "data"); });
    };
    EXPECT_THAT(message([](Dataset &d) { d.targets.pop_back(); }), HasSubstr("data: 2 targets"));
    EXPECT_THAT(message([](Dataset &d) { d.targets[1] = nan_value; }), HasSubstr("of row 1, expected a finite"));
    EXPECT_THAT(message([](Dataset &d) { d.weights = {1}; }), HasSubstr("1 weights"));
    EXPECT_THAT(message([](Dataset &d) { d.weights = {1, -1, 1}; }), HasSubstr("weight -1 of row 1"));
    EXPECT_THAT(message([](Dataset &d) { d.weights = {1, infinity, 1}; }), HasSubstr("weight inf"));
    EXPECT_THAT(message([](Dataset &d) { d.weights = {0, 0, 0}; }), HasSubstr("all row weights are 0"));
    EXPECT_THAT(message([](Dataset &d) { d.feature_names = {"a"}; }), HasSubstr("1 feature names"));
    EXPECT_THAT(message([](Dataset &d) { d.label_names = {"a"}; }), HasSubstr("expected a whole number from 0 to 0"));
    EXPECT_THAT(message([](Dataset &d) { d.index_base = 2; }), HasSubstr("index_base 2"));
    EXPECT_THAT(message([](Dataset &d) { d = Dataset{}; }), HasSubstr("no rows"));
}

TEST(DatasetCheck, RowOrdersHoldEachRowOnceForAnyThreads) {
    Dataset data;
    constexpr std::int64_t rows = 300000; // enough for the threads to share
    data.matrix = DenseMatrix<float>::own(rows, 1, std::vector<float>(rows, 1));
    data.targets.assign(rows, 0.5);
    data.row_order.resize(rows);
    std::iota(data.row_order.rbegin(), data.row_order.rend(), 0);
    for (const int threads : {1, 3}) {
        Team team(threads);
        EXPECT_NO_THROW(check_sides(data, "data", team));
        for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{5}, rows, std::int64_t{1} << 40}) {
            Dataset bad = data;
            bad.row_order[200000] = wrong;
            EXPECT_THAT(invalid([&] { check_sides(bad, "data", team); }),
                        HasSubstr(std::to_string(wrong) + " in the row order, expected each of 0 to 299999 once"));
        }
    }
}

TEST(FailUnknown, SuggestsTheNearMiss) {
    const std::vector<std::string> known{"hinge", "logistic", "squared"};
    EXPECT_EQ(invalid([&] { fail_unknown("loss", "lgistic", known); }),
              "unknown loss 'lgistic'; did you mean 'logistic'? known: hinge, logistic, squared");
    EXPECT_THAT(invalid([&] { fail_unknown("loss", "hnige", known); }), HasSubstr("did you mean 'hinge'?"));
}

TEST(FailUnknown, SuggestsNothingWhenNothingIsNear) {
    const std::vector<std::string> known{"hinge", "logistic"};
    EXPECT_EQ(invalid([&] { fail_unknown("loss", "zebra", known); }), "unknown loss 'zebra'; known: hinge, logistic");
    EXPECT_EQ(invalid([&] { fail_unknown("loss", "", known); }), "unknown loss ''; known: hinge, logistic");
    const std::string long_name(100000, 'x');
    EXPECT_THAT(invalid([&] { fail_unknown("loss", long_name, known); }), HasSubstr("; known: hinge"));
}

TEST(FailUnknown, CutsALongList) {
    const std::vector<std::string> known(100, "name");
    EXPECT_THAT(invalid([&] { fail_unknown("column", "other", known); }), testing::EndsWith("name and 60 more"));
}

} // namespace
} // namespace spdc
