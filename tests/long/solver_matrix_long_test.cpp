// The whole product of which solver_matrix_test.cpp takes samples.
#include "support/solver_matrix.h"

#include <gtest/gtest.h>

namespace spdc::tests {
namespace {

class WholeSolverMatrix : public testing::TestWithParam<std::string> {
  protected:
    AnyLoss loss_ = make_loss(GetParam());
};

TEST_P(WholeSolverMatrix, EveryCellIsCertified) {
    for (const NamedSolver &solver : all_solvers()) {
        for (const Penalty &penalty : all_penalties()) {
            for (const Intercept intercept : all_intercepts) {
                for (const Storage storage : all_storages) {
                    for (const bool weighted : {false, true}) {
                        EXPECT_EQ(verdict({solver, loss_, penalty, intercept, storage, weighted, 4}), "");
                    }
                }
            }
        }
    }
}

TEST_P(WholeSolverMatrix, EverySamplingAndBatchSizeOfSpdcIsCertified) {
    for (const NamedSolver &solver : spdc_variants()) {
        for (const Penalty &penalty : all_penalties()) {
            for (const Intercept intercept : all_intercepts) {
                for (const bool weighted : {false, true}) {
                    const Storage storage = weighted ? Storage::csr_double : Storage::dense_float;
                    EXPECT_EQ(verdict({solver, loss_, penalty, intercept, storage, weighted, 5}), "");
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Losses, WholeSolverMatrix, testing::ValuesIn(loss_names()),
                         [](const auto &instance) { return instance.param; });

} // namespace
} // namespace spdc::tests
