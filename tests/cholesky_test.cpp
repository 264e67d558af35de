// Cholesky's factor in pieces against Eigen's, at and around the sizes of its blocks.
#include "solvers/cholesky.h"
#include "solvers/newton_step.h"
#include "spdc/solvers.h"

#include <Eigen/Cholesky>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace spdc::tests {
namespace {

/// A'A + ridge: positive definite, and of low rank without the ridge.
Eigen::MatrixXd symmetric(Eigen::Index size, Eigen::Index rank, double ridge) {
    std::mt19937 random(static_cast<unsigned>(size));
    std::normal_distribution<double> normal;
    const Eigen::MatrixXd a = Eigen::MatrixXd::NullaryExpr(rank, size, [&] { return normal(random); });
    return a.transpose() * a + ridge * Eigen::MatrixXd::Identity(size, size);
}

Eigen::MatrixXd lower_half(const Eigen::MatrixXd &matrix) {
    Eigen::MatrixXd lower = matrix;
    lower.triangularView<Eigen::StrictlyUpper>().setConstant(std::nan("")); // not to be read
    return lower;
}

constexpr Eigen::Index block = Cholesky::block;

TEST(Cholesky, SolvesAsEigensFactorDoes) {
    for (const Eigen::Index size : {0, 1, 5, 50, 127, 128, 129, 131, 200, 255, 256, 257, 383, 385, 511, 643, 900}) {
        const Eigen::MatrixXd matrix = symmetric(size, size / 2 + 1, 10);
        const Eigen::VectorXd right = Eigen::VectorXd::LinSpaced(size, -1, 2);
        Team team(1);
        Cholesky factor;
        ASSERT_TRUE(factor.compute(lower_half(matrix), team)) << size;
        const Eigen::LLT<Eigen::MatrixXd> eigens(matrix);
        const Eigen::VectorXd expected = eigens.solve(right);
        EXPECT_LE((factor.solve(right) - expected).norm(), 1e-12 * expected.norm()) << size;
        if (size == 0) continue;
        const Eigen::MatrixXd triangle = eigens.matrixL();
        EXPECT_NEAR(factor.smallest_pivot(), triangle.diagonal().minCoeff(), 1e-12 * std::sqrt(matrix.norm())) << size;
    }
}

TEST(Cholesky, HasNoFactorWhereAPivotIsNotPositive) {
    for (const Eigen::Index size : {1, 64, 128, 129, 300, 700}) {
        const Eigen::MatrixXd sound = symmetric(size, size / 2 + 1, 10);
        for (const Eigen::Index place : {Eigen::Index{0}, size / 2, size - 1}) {
            for (const double spoilt : {-1.0, 0.0, std::nan(""), -std::numeric_limits<double>::infinity()}) {
                Eigen::MatrixXd matrix = sound;
                matrix(place, place) = spoilt;
                Cholesky factor;
                EXPECT_FALSE(factor.compute(lower_half(matrix))) << size << ", " << place << ", " << spoilt;
            }
        }
        // a pivot that only the products make negative: its square is what they leave of the diagonal
        Eigen::MatrixXd matrix = sound;
        const double pivot = sound.llt().matrixLLT()(size - 1, size - 1);
        matrix(size - 1, size - 1) -= 1.01 * pivot * pivot;
        Cholesky factor;
        EXPECT_FALSE(factor.compute(lower_half(matrix))) << size;
    }
}

TEST(Cholesky, HasTheSameBitsOnAnyTeam) {
    const Eigen::MatrixXd matrix = lower_half(symmetric(1100, 300, 5));
    const Eigen::VectorXd right = Eigen::VectorXd::LinSpaced(matrix.rows(), -1, 2);
    Team alone(1), three(3);
    Cholesky one, other;
    ASSERT_TRUE(one.compute(matrix, alone));
    ASSERT_TRUE(other.compute(matrix, three));
    EXPECT_TRUE((one.solve(right).array() == other.solve(right).array()).all());
}

TEST(Cholesky, CanBeInterruptedBetweenAllItsPieces) {
    const Eigen::MatrixXd matrix = symmetric(5 * block, 300, 5);
    for (int moment = 1, ended = 0; !ended; moment += 1 + moment / 4) {
        int asked = 0;
        SolveContext context;
        context.stop = [&] { return ++asked >= moment; };
        const Listening listening(context);
        Cholesky factor;
        try {
            ended = factor.compute(matrix);
            EXPECT_GE(asked, 15);
        } catch (const Interrupted &) {
            EXPECT_EQ(asked, moment);
        }
    }
}

/// Columns in units 1e12 apart, and one that is the sum of two others.
TEST(ScaledCholesky, SolvesASingularSystemInAnyUnits) {
    for (const Eigen::Index size : {20, 300}) {
        Eigen::MatrixXd matrix = symmetric(size, 2 * size, 0);
        const Eigen::VectorXd units =
            Eigen::VectorXd::LinSpaced(size, -6, 6).unaryExpr([](double v) { return std::pow(10.0, v); });
        matrix.row(size - 1) = matrix.row(0) + matrix.row(1);
        matrix.col(size - 1) = matrix.col(0) + matrix.col(1);
        matrix = units.asDiagonal() * matrix * units.asDiagonal();
        const Eigen::MatrixXd lower = lower_half(matrix);
        const Eigen::VectorXd right = matrix * units.cwiseInverse(); // in its range
        Team team(1);
        ScaledCholesky factor;
        ASSERT_TRUE(factor.factor(lower, team));
        const Eigen::VectorXd rest = (matrix * factor.solve(right) - right).cwiseQuotient(units);
        EXPECT_LE(rest.norm(), 1e-8 * right.cwiseQuotient(units).norm());
    }
}

} // namespace
} // namespace spdc::tests
