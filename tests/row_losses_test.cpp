// Losses of many rows at once, against the losses' own functions.
#include "row_losses.h"
#include "support/problems.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace spdc::tests {
namespace {

/// Margins of every size and sign, 0 and the ends included, and an odd number of them.
struct SomeRows {
    std::vector<double> z{0, -0.0, 40, -40, 709, -709, 1e5, -1e5, 1e-300, infinity, -infinity, 0.3}, b;

    SomeRows() {
        Random random(5);
        for (int k = 0; k < 4003; ++k) z.push_back(random.normal() * std::pow(10, random.uniform(-12, 3)));
        while (b.size() < z.size()) b.push_back(random.sign());
    }
};

TEST(RowLosses, LogisticValuesAndSlopesAreTheLosses) {
    const AnyLoss loss = Logistic{};
    const SomeRows rows;
    std::vector<double> values(rows.z.size()), slopes(rows.z.size());
    loss_values(loss, rows.z.data(), rows.b.data(), rows.z.size(), values.data());
    loss_slopes(loss, rows.z.data(), rows.b.data(), rows.z.size(), slopes.data());
    for (std::size_t i = 0; i < rows.z.size(); ++i) {
        const double value = loss.value(rows.z[i], rows.b[i]), slope = loss.derivative(rows.z[i], rows.b[i]);
        const bool is_tiny = std::fabs(rows.z[i]) > 700; // e^-708 in place of less
        if (value == infinity) {
            EXPECT_EQ(values[i], infinity);
        } else {
            EXPECT_NEAR(values[i], value, 1e-15 * value + (is_tiny ? 1e-300 : 0)) << rows.z[i];
        }
        EXPECT_NEAR(slopes[i], slope, 1e-15 * std::fabs(slope) + (is_tiny ? 1e-300 : 0)) << rows.z[i];
    }
}

TEST(RowLosses, LogisticConjugatesAreTheLosses) {
    const AnyLoss loss = Logistic{};
    std::vector<double> y{0, -0.0, 1, -1, 0.5, -0.5, 1e-310, 5e-324, 1 - 1e-16, 0.2928, 0.2930, 2, -1e-18},
        b(y.size(), 1);
    Random random(6);
    for (int k = 0; k < 4002; ++k) {
        const double p = k % 3 == 0 ? random.uniform() : random.log_uniform(1e-200, 1);
        b.push_back(random.sign());
        y.push_back(-b.back() * (k % 2 == 0 ? p : 1 - p));
    }
    std::vector<double> conjugates(y.size());
    loss_conjugates(loss, y.data(), b.data(), y.size(), conjugates.data());
    for (std::size_t i = 0; i < y.size(); ++i) {
        const double expected = loss.conjugate(y[i], b[i]);
        if (expected == infinity) {
            EXPECT_EQ(conjugates[i], infinity) << y[i];
        } else {
            EXPECT_NEAR(conjugates[i], expected, 1e-15 * std::fabs(expected) + 1e-300) << y[i];
        }
    }
}

/// Where y = phi'(z) the three cancel, to the last bits of the largest.
TEST(RowLosses, AreBalancedAtTheDerivative) {
    const AnyLoss loss = Logistic{};
    SomeRows rows;
    std::erase_if(rows.z, [](double v) { return !(std::fabs(v) < 700); });
    rows.b.resize(rows.z.size());
    const std::size_t n = rows.z.size();
    std::vector<double> values(n), slopes(n), conjugates(n);
    loss_values(loss, rows.z.data(), rows.b.data(), n, values.data());
    loss_slopes(loss, rows.z.data(), rows.b.data(), n, slopes.data());
    loss_conjugates(loss, slopes.data(), rows.b.data(), n, conjugates.data());
    for (std::size_t i = 0; i < n; ++i) {
        const double size = std::fabs(slopes[i]) * (1 + std::fabs(rows.z[i]));
        EXPECT_NEAR(values[i] + conjugates[i], slopes[i] * rows.z[i], 1e-15 * size) << rows.z[i];
    }
}

TEST(RowLosses, HaveTheSameBitsOnEveryProcessor) {
    SomeRows rows;
    const std::size_t n = rows.z.size() / 4 * 4;
    const auto bits = [&](const LogisticKernels &kernels) {
        std::vector<double> values(n), slopes = rows.z, conjugates(n);
        kernels.values(rows.z.data(), rows.b.data(), n, values.data());
        kernels.slopes(slopes.data(), rows.b.data(), n, slopes.data()); // in place
        kernels.conjugates(slopes.data(), rows.b.data(), n, conjugates.data());
        slopes.resize(n);
        return std::vector{values, slopes, conjugates};
    };
    EXPECT_EQ(bits(logistic_kernels()), bits(portable_logistic_kernels()));
}

TEST(RowLosses, WhatIsNotANumberStaysSo) {
    const double z = std::numeric_limits<double>::quiet_NaN(), b = 1;
    double value = 0, slope = 0, conjugate = 0;
    loss_values(Logistic{}, &z, &b, 1, &value);
    loss_slopes(Logistic{}, &z, &b, 1, &slope);
    loss_conjugates(Logistic{}, &z, &b, 1, &conjugate);
    EXPECT_TRUE(std::isnan(value));
    EXPECT_TRUE(std::isnan(slope));
    EXPECT_EQ(conjugate, infinity);
}

TEST(RowLosses, OthersAreTheLossesToTheBit) {
    const SomeRows rows;
    const std::size_t n = rows.z.size();
    std::vector<double> values(n), slopes(n), conjugates(n);
    for (const AnyLoss &loss :
         {AnyLoss(Hinge{}), AnyLoss(SquaredHinge{}), AnyLoss(Squared{}), AnyLoss(Quantile{0.3})}) {
        loss_values(loss, rows.z.data(), rows.b.data(), n, values.data());
        loss_slopes(loss, rows.z.data(), rows.b.data(), n, slopes.data());
        loss_conjugates(loss, slopes.data(), rows.b.data(), n, conjugates.data());
        for (std::size_t i = 0; i < n; ++i) {
            EXPECT_EQ(values[i], loss.value(rows.z[i], rows.b[i]));
            EXPECT_EQ(slopes[i], loss.derivative(rows.z[i], rows.b[i]));
            EXPECT_EQ(conjugates[i], loss.conjugate(slopes[i], rows.b[i]));
        }
    }
}

} // namespace
} // namespace spdc::tests
