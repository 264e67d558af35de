// Which solver auto picks, and what it says of it.
#include "solvers/methods.h"
#include "spdc/solvers.h"
#include "support/oracles.h"
#include "support/problems.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace spdc::tests {
namespace {

/// Enough to see who runs.
Stopping one_pass() {
    Stopping stopping;
    stopping.tolerance = 1e-14;
    stopping.max_passes = 1;
    return stopping;
}

// With rows of norm 1 text would need 6 (1 + sqrt(10/(lambda n))/2) passes. Kinks are harder for spdc_fast where targets are numbers.
TEST(Auto, LeavesKinksToNewtonWhereManyPassesAreLikely) {
    const std::vector<std::vector<double>> rows{{1, 0}, {0, 1}, {-1, 0}, {0.6, 0.8}};
    const auto chosen = [&](const AnyLoss &loss, double passes) {
        const double root = 2 * (passes / 6 - 1), n = static_cast<double>(rows.size());
        return solve(make_problem(rows, {1, -1, -1, 1}, loss, L2{10 / (root * root * n)}), Auto{}).solver;
    };
    EXPECT_EQ(chosen(Hinge{}, 55), "spdc_fast");
    EXPECT_EQ(chosen(Hinge{}, 65), "newton");
    EXPECT_EQ(chosen(Absolute{}, 15), "spdc_fast");
    EXPECT_EQ(chosen(Absolute{}, 25), "newton");
}

// Of a dense matrix of zeros, ten ones a row, newton would be the sooner one if the zeros counted.
TEST(Auto, DoesNotCountTheZerosOfDenseData) {
    Random random(1);
    Rows rows(2000, std::vector<double>(200, 0.0));
    std::vector<double> targets;
    for (auto &row : rows) {
        for (int k = 0; k < 10; ++k) row[static_cast<std::size_t>(random.index(200))] = 1;
        targets.push_back(random.normal() > 0 ? 1 : -1);
    }
    for (const Storage storage : all_storages) {
        const Problem problem(as_dataset({rows, targets, {}}, storage), SquaredHinge{}, L2{10 / (9 * 2000 * 0.5)});
        EXPECT_EQ(solve(problem, Auto{}).solver, "spdc_fast");
    }
}

/// What auto picks for normal numbers in 400 columns, of which all but one row have the target 1, where text would take `passes`.
std::string chosen_for(std::size_t rows, const AnyLoss &loss, double passes) {
    Random random(1);
    TinyData data{Rows(rows, std::vector<double>(400)), std::vector<double>(rows, 1), {}};
    data.targets.back() = -1;
    for (auto &row : data.rows) {
        for (double &value : row) value = random.normal();
    }
    const double root = 2 * (passes / 6 - 1);
    const L2 penalty{400 / (root * root * loss.gamma() * static_cast<double>(rows))};
    return solve(Problem(as_dataset(std::move(data), Storage::dense_double), loss, penalty), Auto{}, one_pass()).solver;
}

// Labels can be fitted from a quarter as many features as rows on, and spdc_fast finds that soon.
TEST(Auto, ExpectsFewPassesWhereLabelsCanBeFitted) {
    EXPECT_EQ(chosen_for(1500, SquaredHinge{}, 40), "spdc_fast");
    EXPECT_EQ(chosen_for(2500, SquaredHinge{}, 40), "newton");
}

TEST(Auto, KnowsThatSquaresTakeNewtonOneStep) {
    EXPECT_EQ(chosen_for(2500, Squared{}, 12), "newton");
    EXPECT_EQ(chosen_for(2500, Logistic{}, 12), "spdc_fast");
}

// Conjugate gradients from 0 take thousands of passes where labels can be fitted and the curvature jumps; hybrid has them when the gap is small.
TEST(Auto, HasHybridNextWhereLabelsCanBeFitted) {
    const TinyData data = tiny_data({.rows = 600, .columns = 3000, .density = 0.01});
    const auto choices_of = [&](const AnyLoss &loss) { return choose({as_dataset(data), loss, L2{1e-9}}, {}); };
    const std::vector<Choice> jumps = choices_of(SquaredHinge{});
    ASSERT_GE(jumps.size(), 3U);
    EXPECT_TRUE(std::holds_alternative<SpdcFast>(jumps[0].solver));
    EXPECT_EQ(jumps[0].patience.passes, 2000);
    EXPECT_TRUE(std::holds_alternative<Hybrid>(jumps[1].solver));
    EXPECT_TRUE(std::holds_alternative<NewtonCg>(jumps[2].solver));
    EXPECT_EQ(choices_of(Logistic{})[0].patience.passes, 500);
    EXPECT_EQ(choices_of(Hinge{})[0].patience.passes, 2000);
    for (const Choice &choice : choices_of(Hinge{})) EXPECT_FALSE(std::holds_alternative<Hybrid>(choice.solver));
}

// With few features spdc_fast takes a few times the passes of text, but where that needs next to none.
TEST(Auto, LeavesTheFewPassesOfAStrongPenaltyToSpdcFast) {
    const auto first = [](double l2, bool weighted) {
        const TinyData data = tiny_data({.rows = 6000, .columns = 150, .density = 0.05, .weighted = weighted});
        return choose({as_dataset(data), Logistic{}, L2{l2}}, {}).front();
    };
    EXPECT_TRUE(std::holds_alternative<SpdcFast>(first(1e-2, false).solver));
    EXPECT_TRUE(std::holds_alternative<Newton>(first(1e-5, false).solver));
    EXPECT_TRUE(std::holds_alternative<Newton>(first(1e-2, true).solver))
        << "equal rows that were merged take it hundreds";
}

// A column that outweighs the others in every row makes rows alike.
TEST(Auto, LeavesRowsThatAreAlikeToConjugateGradients) {
    for (const double offset : {0.0, 60.0}) {
        TinyData data = tiny_data({.task = Task::regression, .rows = 2100, .columns = 2200, .density = 0.01});
        for (auto &row : data.rows) row[0] += offset;
        const Problem problem(as_dataset(std::move(data)), Squared{}, L2{1e-6});
        EXPECT_EQ(solve(problem, Auto{}, one_pass()).solver, offset > 0 ? "newton_cg" : "spdc_fast");
    }
}

// Labels take a quarter as many features as rows to be fitted, numbers as many.
TEST(Auto, LeavesTargetsThatCannotBeFittedToConjugateGradients) {
    const auto chosen = [](Task task, int rows, const AnyLoss &loss, double l2) {
        TinyData data = tiny_data({.task = task, .rows = rows, .columns = 600, .density = 0.01});
        return solve(Problem(as_dataset(std::move(data)), loss, L2{l2}), Auto{}, one_pass()).solver;
    };
    EXPECT_EQ(chosen(Task::classification, 2500, SquaredHinge{}, 1e-6), "newton_cg");
    EXPECT_EQ(chosen(Task::classification, 2500, SquaredHinge{}, 3e-5), "hybrid"); // either may be there first
    EXPECT_EQ(chosen(Task::classification, 13000, SquaredHinge{}, 1e-5), "newton_cg");
    EXPECT_EQ(chosen(Task::classification, 2300, SquaredHinge{}, 3e-5), "spdc_fast");
    EXPECT_EQ(chosen(Task::classification, 2500, SquaredHinge{}, 3e-3), "spdc_fast"); // a few passes
    EXPECT_EQ(chosen(Task::classification, 2500, Hinge{}, 3e-3), "spdc_fast");
    EXPECT_EQ(chosen(Task::regression, 650, Squared{}, 3e-5), "newton_cg");
    EXPECT_EQ(chosen(Task::regression, 550, Squared{}, 3e-5), "spdc_fast");
}

// The more rows there are for a feature, the more passes do rows one by one take, and the sooner are conjugate gradients worth theirs.
TEST(Auto, TakesConjugateGradientsTheSoonerTheTallerTheDataAre) {
    const auto chosen = [](std::int64_t rows, double l2) {
        const TinyData data = tiny_data({.rows = rows, .columns = 600, .density = 0.002});
        const Problem problem(as_dataset(data), Logistic{}, L2{l2});
        EXPECT_GT(passes_on_text(problem), 8);
        EXPECT_LT(passes_on_text(problem), 20);
        return choose(problem, {}).front();
    };
    EXPECT_TRUE(std::holds_alternative<SpdcFast>(chosen(5000, 1e-5).solver));
    const Choice tall = chosen(60000, 1e-6);
    EXPECT_TRUE(std::holds_alternative<NewtonCg>(tall.solver));
    EXPECT_LT(tall.patience.passes, 100) << "categories that others imply take them hundreds";
}

/// What others are tried before may take them hundreds of passes; newton's ten iterations are a hundred.
TEST(Auto, HasNewtonWaitWhereItIsSure) {
    double text = 0; // of which 2 are allowed where nobody is sure
    const auto choices_of = [&](std::int64_t rows) {
        const TinyData data = tiny_data({.rows = rows, .columns = 1000, .density = 1});
        const Problem problem(as_dataset(data), Logistic{}, L2{1e-5});
        text = passes_on_text(problem);
        return choose(problem, {});
    };
    const std::vector<Choice> sure = choices_of(4000);
    ASSERT_GE(sure.size(), 2U);
    EXPECT_FALSE(std::holds_alternative<Newton>(sure[0].solver));
    EXPECT_TRUE(std::holds_alternative<Newton>(sure[1].solver));
    EXPECT_LT(sure[0].patience.passes, std::min(1.9 * text, 450.0));
    const std::vector<Choice> square = choices_of(1000);
    EXPECT_FALSE(std::holds_alternative<Newton>(square[1].solver));
    EXPECT_EQ(square[0].patience.passes, std::min(2 * text, 500.0));
}

// Rows that have a large mean in common take spdc_fast hundreds of passes though their labels can be fitted, and conjugate gradients thousands.
TEST(Auto, LeavesDenseRowsThatAreAlikeToNewton) {
    for (const auto &[rows, columns] : {std::pair{1000, 1000}, std::pair{400, 1000}}) {
        for (const AnyLoss &loss : {AnyLoss(Logistic{}), AnyLoss(SquaredHinge{}), AnyLoss(Hinge{})}) {
            TinyData data = tiny_data({.rows = rows, .columns = columns, .density = 1});
            for (auto &row : data.rows) {
                for (double &v : row) v += 30;
            }
            const Choice first = choose({as_dataset(data), loss, L2{1e-6}}, {}).front();
            EXPECT_TRUE(std::holds_alternative<Newton>(first.solver)) << rows << ' ' << loss.name();
        }
    }
}

/// Rows of `words` ones each in 3000 columns, and `counts` of them in the first column, where every row has some.
Choice chosen_for_counts(int words, const std::function<double(Random &)> &counts) {
    constexpr std::size_t columns = 3000;
    Random random(1);
    TinyData data{Rows(2500, std::vector<double>(columns)), {}, {}};
    for (auto &row : data.rows) {
        for (int k = 0; k < words; ++k) row[1 + static_cast<std::size_t>(random.index(columns - 1))] = 1;
        row[0] = counts(random);
        data.targets.push_back(random.normal() > 0 ? 1 : -1);
    }
    return choose({as_dataset(std::move(data)), SquaredHinge{}, L2{1e-6}}, {}).front();
}

// One column may hold most of all squares and yet not be most of every row: a few long texts have most of a frequent word. Conjugate gradients
// take that hundreds of passes more than spdc_fast.
TEST(Auto, KnowsCountsOfWordsFromRowsThatAreAlike) {
    const auto few = [](Random &random) { return random.index(50) == 0 ? 300.0 : 2.0; };
    EXPECT_TRUE(std::holds_alternative<SpdcFast>(chosen_for_counts(20, few).solver));
    const auto all = [](Random &random) { return 100.0 + random.normal(); };
    EXPECT_TRUE(std::holds_alternative<NewtonCg>(chosen_for_counts(20, all).solver));
}

// spdc_fast is soon near the optimum of a loss with kinks, and may need hundreds of passes for the last digits; newton then needs the rows near a
// kink only.
TEST(Auto, IsImpatientWhereFewRowsDecide) {
    const auto first = [](std::int64_t rows) {
        const TinyData data = tiny_data({.rows = rows, .columns = 40, .density = 1});
        return choose({as_dataset(data), Hinge{}, L2{1}}, {}).front();
    };
    EXPECT_TRUE(std::holds_alternative<SpdcFast>(first(6000).solver));
    EXPECT_LT(first(6000).patience.passes, 50);
    EXPECT_LT(first(6000).patience.times, 2);
    EXPECT_GE(first(4000).patience.passes, 100);
}

// The strength of the features decides, not that of an intercept that is penalised less.
TEST(Auto, TakesOneFactorForAllFeaturesAsTheirPenalty) {
    const TinyData data = tiny_data({.task = Task::classification, .rows = 2100, .columns = 2200, .density = 0.01});
    ProblemOptions options;
    options.intercept = Intercept::penalized;
    for (const double factor : {1.0, 1e4}) {
        options.penalty_factors.assign(2200, factor);
        const Problem problem(as_dataset(data), Logistic{}, L2{1e-3 / factor}, options);
        const Result result = solve(problem, Auto{});
        EXPECT_TRUE(result.converged());
        EXPECT_EQ(result.solver, "spdc_fast");
    }
    options.penalty_factors[7] = 1;
    const Problem problem(as_dataset(data), Logistic{}, L2{1e-7}, options);
    EXPECT_EQ(solve(problem, Auto{}, one_pass()).solver, "newton_cg");
}

TEST(Auto, NamesItsChoiceAndItsReason) {
    const Problem problem(tiny_dataset(), Logistic{}, L2{0.05});
    const Result chosen = solve(problem);
    EXPECT_NE(chosen.solver, "auto");
    EXPECT_NE(chosen.solver_reason.find("auto picked " + chosen.solver), std::string::npos) << chosen.solver_reason;
    const Result named = solve(problem, Spdc{});
    EXPECT_EQ(named.solver, "spdc");
    EXPECT_EQ(named.solver_reason, "asked for by name");
}

} // namespace
} // namespace spdc::tests
