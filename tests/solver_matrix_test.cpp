// Every solver on every loss, regularizer, storage, row weighting and intercept: each certifies relative gap 1e-8 (1e-6 where the
// loss is not smooth or the regularizer not strongly convex) and its certificate agrees with a slow oracle in long double.
#include "support/solver_matrix.h"

#include <gtest/gtest.h>

namespace spdc::tests {
namespace {

class SolverMatrix : public testing::TestWithParam<std::string> {
  protected:
    AnyLoss loss_ = make_loss(GetParam());
};

TEST_P(SolverMatrix, EveryPenaltyAndInterceptIsCertified) {
    for (const NamedSolver &solver : all_solvers()) {
        for (const Penalty &penalty : all_penalties()) {
            for (const Intercept intercept : all_intercepts) {
                EXPECT_EQ(verdict({.solver = solver, .loss = loss_, .penalty = penalty, .intercept = intercept}), "");
            }
        }
    }
}

TEST_P(SolverMatrix, EveryStorageAndRowWeightingIsCertified) {
    const std::vector<Penalty> penalties = all_penalties();
    for (const NamedSolver &solver : all_solvers()) {
        std::size_t next = loss_.variant().index(); // each loss meets the penalties in another order
        for (const Storage storage : all_storages) {
            for (const bool weighted : {false, true}) {
                for (const Intercept intercept : all_intercepts) {
                    EXPECT_EQ(verdict({.solver = solver,
                                       .loss = loss_,
                                       .penalty = penalties[next++ % penalties.size()],
                                       .intercept = intercept,
                                       .storage = storage,
                                       .weighted = weighted,
                                       .seed = 2}),
                              "");
                }
            }
        }
    }
}

TEST_P(SolverMatrix, EverySamplingAndBatchSizeOfSpdcIsCertified) {
    const std::vector<Penalty> penalties = all_penalties();
    bool weighted = false;
    for (const NamedSolver &solver : spdc_variants()) {
        for (const std::size_t penalty : {0U, 1U, 4U, 8U, 9U}) {
            for (const Intercept intercept : {Intercept::none, Intercept::free}) {
                weighted = !weighted;
                EXPECT_EQ(verdict({.solver = solver,
                                   .loss = loss_,
                                   .penalty = penalties[penalty],
                                   .intercept = intercept,
                                   .storage = weighted ? Storage::dense_double : Storage::csr_float,
                                   .weighted = weighted,
                                   .seed = 3}),
                          "");
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Losses, SolverMatrix, testing::ValuesIn(loss_names()),
                         [](const auto &instance) { return instance.param; });

TEST(SolverMatrixOracle, NoticesAWrongCertificate) {
    // a method that stops short of the optimum: at the optimum itself small changes leave the objectives alone
    const Cell cell{.solver = {"spdc", Spdc{}}, .loss = Logistic{}, .penalty = all_penalties().front()};
    const Problem problem = problem_of(cell);
    const Result right = solve(problem, cell.solver.solver, {.tolerance = 1e-8});
    ASSERT_EQ(certificate_error(problem, right), "");
    Result wrong = right;
    wrong.weights[2] += 1e-6;
    EXPECT_NE(certificate_error(problem, wrong), "");
    wrong = right;
    wrong.dual[7] *= 1 - 1e-6;
    EXPECT_NE(certificate_error(problem, wrong), "");
    wrong = right;
    wrong.certificates.front().gap += 1e-11;
    EXPECT_NE(certificate_error(problem, wrong), "");
}

TEST(SolverMatrixOracle, ReportsHowFarAFailingCellGot) {
    Spdc hopeless;
    hopeless.tau = 1e-12; // x does not move
    const Cell cell{.solver = {"spdc tau 1e-12", hopeless}, .loss = Logistic{}, .penalty = all_penalties().front()};
    const std::string complaint = verdict(cell);
    EXPECT_NE(complaint.find("spdc tau 1e-12, logistic, l2, intercept none"), std::string::npos) << complaint;
    EXPECT_NE(complaint.find("at relative gap"), std::string::npos) << complaint;
}

} // namespace
} // namespace spdc::tests
