// spdc_fast on several threads: against the equations, against itself on one thread, and its split rows against dense ones.
#include "support/oracles.h"
#include "support/problems.h"
#include "support/solver_matrix.h"

#include "free_coordinates.h"
#include "parallel.h"
#include "random.h"
#include "solvers/methods.h"
#include "solvers/owner_rows.h"
#include "solvers/owner_threads.h"
#include "solvers/spdc_owners.h"
#include "spdc/solvers.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace spdc::tests {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Leaves one entry in some columns: features that have no owner. Several rows have one, row 5 two.
void make_lone(TinyData &data) {
    for (const auto &[column, row] : {std::pair{3, 5}, {17, 5}, {20, 64}, {33, 149}}) {
        for (auto &a : data.rows) a[at(column)] = 0;
        data.rows[at(row)][at(column)] = column % 2 == 0 ? 1 : -1;
    }
}

/// Entries -1, 0 and 1: their Gram matrix is whole numbers, which 8 bits hold exactly.
TinyData sign_data(Task task, bool weighted, std::int64_t rows = 150) {
    TinyData data =
        tiny_data({.task = task, .rows = rows, .columns = 40, .density = 0.3, .labels = 2, .weighted = weighted});
    for (auto &row : data.rows) {
        for (double &value : row) value = value > 0 ? 1.0 : (value < 0 ? -1.0 : 0.0);
    }
    make_lone(data);
    return data;
}

/// Features of very unequal popularity, as text has them.
TinyData text_data(Task task, bool weighted) {
    TinyData data = tiny_data(
        {.task = task, .rows = 700, .columns = 200, .density = 1, .labels = 2, .weighted = weighted, .seed = 3});
    spdc::Random random(9);
    for (std::size_t i = 0; i < data.rows.size(); ++i) {
        auto &row = data.rows[i];
        // labels are told by one feature for most rows, which shrinking then leaves out
        if (task == Task::classification) row[0] = (i % 10 == 0 ? -1 : 4) * data.targets[i];
        for (std::size_t j = 1; j < row.size(); ++j) {
            const bool is_empty = j % 50 == 49; // in all rows
            if (is_empty || random.uniform() > 8.0 / (8.0 + static_cast<double>((j * 7) % row.size()))) row[j] = 0;
        }
    }
    make_lone(data);
    return data;
}

/// The order in which the rows are visited: a shuffle to store them, 64 permutations of a batch, and for every sweep a shuffle of
/// the batches and a permutation for each.
class VisitingOrder {
  public:
    VisitingOrder(std::int64_t n, std::uint64_t seed) : random_(seed), stored_(at(n)) {
        std::iota(stored_.begin(), stored_.end(), 0);
        random_.shuffle(stored_);
        for (auto &permutation : permutations_) {
            permutation.resize(batch_rows);
            std::iota(permutation.begin(), permutation.end(), 0);
            random_.shuffle(permutation);
        }
    }
    std::vector<std::int64_t> next_sweep() {
        const auto n = static_cast<std::int64_t>(stored_.size());
        std::vector<std::int64_t> batches(at((n + batch_rows - 1) / batch_rows)), picks, rows;
        std::iota(batches.begin(), batches.end(), 0);
        random_.shuffle(batches);
        for (std::size_t k = 0; k < batches.size(); ++k) picks.push_back(random_.below(64));
        for (std::size_t k = 0; k < batches.size(); ++k) {
            for (const std::int64_t r : permutations_[at(picks[k])]) {
                const std::int64_t place = batches[k] * batch_rows + r;
                if (place < n) rows.push_back(stored_[at(place)]);
            }
        }
        return rows;
    }

  private:
    spdc::Random random_;
    std::vector<std::int64_t> stored_;
    std::array<std::vector<std::int64_t>, 64> permutations_;
};

TEST(SpdcOwnersThreads, EqualTheEagerTwinOneRowAfterAnother) {
    const std::vector<AnyLoss> losses{SmoothedHinge{}, Squared{}, SquaredHinge{}};
    for (const AnyLoss &loss : losses) {
        for (const double lambda : {1e-1, 1e-4}) {
            for (const double omega : {1.0, 3.0}) {
                for (const Intercept intercept : {Intercept::none, Intercept::penalized, Intercept::free}) {
                    const Dataset data = as_dataset(sign_data(loss.task(), intercept != Intercept::none));
                    const double factor = omega == 1 ? 1 : 50; // of the features, not of the intercept
                    ProblemOptions problem_options;
                    problem_options.intercept = intercept;
                    problem_options.penalty_factors.assign(at(data.features()), factor);
                    const Problem problem(data, loss, L2{lambda / factor}, problem_options);
                    SolveContext context;
                    context.seed = 5;
                    context.threads = 2;
                    const auto method =
                        make_method(problem, SpdcFast{.omega = omega, .shrinking = false, .owners = 4}, context);
                    const double n = static_cast<double>(problem.rows());
                    const double tau = omega * std::sqrt(loss.gamma() / (lambda * n)) / median_norm(problem);
                    EagerFast twin = eager_fast(problem, lambda, tau, false);
                    VisitingOrder order(problem.rows(), context.seed);
                    for (int sweep = 0; sweep < 12; ++sweep) {
                        for (const std::int64_t i : order.next_sweep()) twin.visit(at(i));
                        method->advance(1);
                    }
                    std::vector<double> x, y;
                    method->point(x, y);
                    const std::vector<double> expected = weights(twin, problem);
                    double size = 0;
                    for (const double v : expected) size = std::max(size, std::fabs(v));
                    for (std::size_t j = 0; j < x.size(); ++j) {
                        EXPECT_NEAR(x[j], expected[j], 2e-6 * size)
                            << loss.name() << " lambda " << lambda << " omega " << omega << " " << to_string(intercept);
                    }
                    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], twin.y[i], 2e-6) << loss.name();
                }
            }
        }
    }
}

TEST(SpdcOwnersThreads, GiveTheSameBitsForAnyNumberOfThreads) {
    std::vector<AnyLoss> losses{SmoothedHinge{}, Logistic{}, Hinge{}, Squared{}};
    if (only_for_races) losses.erase(losses.begin() + 2, losses.end()); // these two share all that any does
    for (const AnyLoss &loss : losses) {
        for (const Intercept intercept : {Intercept::none, Intercept::free}) {
            ProblemOptions problem_options;
            problem_options.intercept = intercept;
            const Problem problem(as_dataset(text_data(loss.task(), intercept == Intercept::free), Storage::csr_float),
                                  loss, L2{1e-4}, problem_options);
            std::vector<double> x, y, first_x, first_y;
            for (const int threads : {1, 2, 4, 8, 16}) {
                SolveContext context;
                context.threads = threads;
                const auto method =
                    make_method(problem, SpdcFast{.omega = {}, .shrinking = true, .owners = 14}, context);
                EXPECT_EQ(method->threads(), std::min(threads, 15)); // a leader and one for each owner
                for (int call = 0; call < 12; ++call) method->advance(0.7);
                method->point(x, y);
                if (threads == 1) {
                    first_x = x;
                    first_y = y;
                }
                EXPECT_EQ(x, first_x) << loss.name() << " threads " << threads;
                EXPECT_EQ(y, first_y) << loss.name() << " threads " << threads;
            }
        }
    }
}

/// What a thread leaves another takes up where it was.
TEST(SpdcOwnersThreads, GiveTheSameBitsWhereTheirNumberChangesOnTheWay) {
    const Problem problem(as_dataset(text_data(Task::classification, false), Storage::csr_float), SmoothedHinge{},
                          L2{1e-4});
    std::vector<double> x, y, first_x, first_y;
    for (const int threads : {1, 2, 3, 8, 16}) {
        SolveContext context;
        context.threads = threads;
        const OwnersOptions options{
            .owners = 14, .omega = {}, .shrinking = true, .is_sdca = false, .changes_threads = threads > 1};
        const auto method = make_owners(problem, options, context);
        for (int call = 0; call < (only_for_races ? 20 : 100); ++call) method->advance(0.13);
        method->point(x, y);
        if (threads == 1) {
            first_x = x;
            first_y = y;
        }
        EXPECT_EQ(x, first_x) << threads;
        EXPECT_EQ(y, first_y) << threads;
    }
}

// A large penalty makes the scale of the pairs fall below 1e-9 every few passes.
TEST(SpdcOwnersThreads, GiveTheSameBitsWhereTheyRebase) {
    const Problem problem(as_dataset(text_data(Task::classification, false), Storage::csr_float), SmoothedHinge{},
                          L2{1});
    std::vector<double> x, y, first_x;
    for (const int threads : {1, 4, 16}) {
        SolveContext context;
        context.threads = threads;
        const auto method = make_method(problem, SpdcFast{.omega = 1, .shrinking = false, .owners = 16}, context);
        for (int call = 0; call < 40; ++call) method->advance(1);
        method->point(x, y);
        if (threads == 1) first_x = x;
        EXPECT_EQ(x, first_x) << threads << " threads";
    }
}

TEST(SpdcOwnersThreads, ShareOwnersThatTheyDoNotDivide) {
    const Problem problem(as_dataset(text_data(Task::classification, false)), SmoothedHinge{}, L2{1e-3});
    Stopping stopping;
    stopping.tolerance = 1e-7;
    std::vector<Result> results;
    for (const int threads : {1, 2, 3, 4, 5, 9}) {
        SolveContext context;
        context.threads = threads;
        results.push_back(solve(problem, SpdcFast{.omega = {}, .shrinking = true, .owners = 5}, stopping, context));
        EXPECT_TRUE(results.back().converged());
        EXPECT_EQ(results.back().weights, results.front().weights) << threads;
        EXPECT_EQ(results.back().dual, results.front().dual) << threads;
        EXPECT_EQ(results.back().passes, results.front().passes) << threads;
    }
    EXPECT_EQ(results[3].threads, 4);
    EXPECT_EQ(results[4].threads, 4); // of four that follow one would have two owners and the others one
    EXPECT_EQ(results[5].threads, 6);
}

TEST(OwnerShares, AreWholeAndNoThreadButTheLeaderIsWithout) {
    for (int owners = 1; owners <= 64; ++owners) {
        for (int threads = 1; threads <= 40; ++threads) {
            const OwnerShares shares(owners, threads);
            EXPECT_LE(shares.threads(), threads);
            EXPECT_EQ(shares.end(0), owners);
            int next = 0, sent = 0;
            for (int thread = 1; thread < shares.threads(); ++thread) {
                EXPECT_EQ(shares.first(thread), next);
                EXPECT_GT(shares.end(thread), next) << owners << " owners, " << threads;
                next = shares.end(thread);
                for (const auto &sender : shares.senders(thread)) sent += sender.owners;
            }
            EXPECT_EQ(shares.first(0), next);
            for (const auto &sender : shares.senders(0)) sent += sender.owners;
            EXPECT_EQ(sent, owners);
        }
    }
    EXPECT_EQ(OwnerShares(14, 8).first(0), 14); // the leader of eight has none
    EXPECT_EQ(OwnerShares(14, 4).first(0), 12);
}

/// Whoever has them, the parts of a pair are added up first.
TEST(OwnerShares, PairsAreSentTogetherOrOneAfterAnother) {
    for (int owners = 1; owners <= 32; ++owners) {
        for (int threads = 1; threads <= 20; ++threads) {
            const OwnerShares shares(owners, threads);
            const auto senders = shares.senders();
            int owner = 0;
            for (std::size_t k = 0; k < senders.size(); ++k) {
                EXPECT_EQ(senders[k].owner, owner);
                owner += senders[k].owners;
                EXPECT_TRUE(senders[k].owners == 1 || senders[k].owner % 2 == 0);
                const bool is_first = senders[k].owner % 2 == 0 && owner < owners;
                EXPECT_EQ(senders[k].is_half, senders[k].owners == 1 && is_first) << owners << " owners, " << threads;
                EXPECT_TRUE(!senders[k].is_half || senders[k + 1].owners == 1);
            }
            EXPECT_EQ(owner, owners);
        }
    }
}

/// What so many pieces of work choose at the end, where choice k takes seconds[k] a row and is disturbed or not.
int choice_after(ThreadTrials &trials, int count, const std::vector<double> &seconds,
                 const std::vector<bool> &disturbed) {
    for (int k = 0; k < count; ++k) {
        const auto now = static_cast<std::size_t>(trials.choice());
        trials.tell(seconds[now], disturbed[now]);
    }
    return trials.choice();
}

TEST(ThreadTrials, KeepAllThreadsWhileNoneIsMissed) {
    ThreadTrials trials(4);
    for (int k = 0; k < 1000; ++k) EXPECT_EQ(choice_after(trials, 1, {1, 0.1, 0.1, 0.1}, {false, true, true, true}), 0);
}

TEST(ThreadTrials, TakeFewerWhereTheyAreFasterAndAllAgain) {
    ThreadTrials trials(3);
    EXPECT_EQ(choice_after(trials, 40, {6, 2, 4}, {true, false, false}), 1);
    int with_half = 0;
    for (int k = 0; k < 1000; ++k) with_half += choice_after(trials, 1, {6, 2, 4}, {true, false, false}) == 1 ? 1 : 0;
    EXPECT_GT(with_half, 980); // trials of all become rare
    EXPECT_EQ(choice_after(trials, 600, {1, 2, 4}, {false, false, false}), 0);
    EXPECT_EQ(choice_after(trials, 600, {6, 2, 4}, {true, true, true}), 1);
    int with_all = 0; // although somebody is always missing
    for (int k = 0; k < 2000; ++k) with_all += choice_after(trials, 1, {1, 2, 4}, {true, true, true}) == 0 ? 1 : 0;
    EXPECT_GT(with_all, 1000);
    EXPECT_EQ(choice_after(trials, 1200, {9, 8, 2}, {true, true, false}), 2); // and down to a quarter
}

TEST(ThreadTrials, KeepAllThreadsWhereFewerAreNoFaster) {
    ThreadTrials trials(2);
    int with_half = 0;
    for (int k = 0; k < 1000; ++k) with_half += choice_after(trials, 1, {1.5, 2}, {true, false}) == 1 ? 1 : 0;
    EXPECT_LT(with_half, 30);
    EXPECT_EQ(choice_after(trials, 3, {1.5, 2}, {true, false}), 0);
}

TEST(SpdcOwnersThreads, TakeFewRows) {
    for (const std::int64_t rows : {1, 2, 62, 63, 64}) {
        TinyData data = tiny_data({.task = Task::regression, .rows = rows, .columns = 9, .density = 0.7});
        const Problem problem(as_dataset(data), Squared{}, L2{1e-3});
        Stopping stopping;
        stopping.tolerance = 1e-9;
        std::vector<double> first;
        for (const int threads : {1, 3, 7}) {
            SolveContext context;
            context.threads = threads;
            const Result result = solve(problem, SpdcFast{.omega = {}, .owners = 4}, stopping, context);
            EXPECT_TRUE(result.converged()) << rows << " rows, " << threads << " threads";
            if (threads == 1) first = result.weights;
            EXPECT_EQ(result.weights, first) << rows << " rows, " << threads << " threads";
        }
    }
}

/// With shrinking most rows leave, and the others are put into batches of their own.
TEST(SpdcOwners, ReachTheOptimumOfTheSerialKernelWithShrinking) {
    for (const AnyLoss &loss : {AnyLoss(Hinge{}), AnyLoss(SmoothedHinge{}), AnyLoss(SquaredHinge{})}) {
        const Problem problem(as_dataset(text_data(Task::classification, false)), loss, L2{1e-3});
        Stopping stopping;
        stopping.tolerance = 1e-7;
        const Result serial = solve(problem, SpdcFast{.omega = {}, .shrinking = true, .owners = 1}, stopping);
        const Result owners = solve(problem, SpdcFast{.omega = {}, .shrinking = true, .owners = 4}, stopping);
        EXPECT_TRUE(owners.converged()) << loss.name();
        EXPECT_NEAR(owners.worst().primal, serial.worst().primal, 2e-7 * serial.worst().primal) << loss.name();
        EXPECT_LT(owners.passes, 2 * serial.passes + 10) << loss.name();
    }
}

TEST(SpdcOwners, CertifyEveryLossStorageWeightingAndIntercept) {
    const NamedSolver solver{"spdc_fast owners 3", SpdcFast{.omega = {}, .shrinking = true, .owners = 3}, 2};
    const Penalty l2{"l2", L2{0.05}};
    for (const std::string &name : loss_names()) {
        for (const Intercept intercept : all_intercepts) {
            for (const bool weighted : {false, true}) {
                const Storage storage = weighted ? Storage::dense_float : Storage::csr_double;
                EXPECT_EQ(verdict({solver, make_loss(name), l2, intercept, storage, weighted}), "");
            }
        }
    }
}

/// Dense rows of signs drawn at random, and a first column of its own.
Dataset long_rows(std::int64_t rows, std::int64_t columns, float first_column = 0) {
    spdc::Random random(5);
    std::vector<float> entries(at(rows * columns));
    for (float &entry : entries) entry = random.uniform() < 0.5 ? -1 : 1;
    Dataset data;
    for (std::int64_t i = 0; i < rows; ++i) {
        data.targets.push_back(entries[at(i * columns + 1)] + entries[at(i * columns + 2)] > 0 ? 1 : -1);
        if (first_column != 0) entries[at(i * columns)] = first_column + static_cast<float>(i % 2);
    }
    data.matrix = DenseMatrix<float>::own(rows, columns, std::move(entries));
    return data;
}

TEST(SpdcOwners, AreChosenByTheProblemAndTheCores) {
    struct Case {
        std::int64_t rows = 5000, columns = 200;
        int cores = 4;
        double l2 = 1e-3;
        float first_column = 0;
    };
    const auto are_chosen = [](const Case &c) {
        SolveContext context;
        context.threads = 2;
        context.cores = c.cores;
        const Problem problem(long_rows(c.rows, c.columns, c.first_column), SmoothedHinge{}, L2{c.l2});
        return make_method(problem, SpdcFast{}, context)->threads() == 2; // the serial kernel has one
    };
    EXPECT_TRUE(are_chosen({}));
    EXPECT_FALSE(are_chosen({.cores = 3}));
    EXPECT_FALSE(are_chosen({.rows = 4000}));
    EXPECT_FALSE(are_chosen({.rows = 7000, .columns = 150}));
    EXPECT_FALSE(are_chosen({.l2 = 1}));               // a few passes
    EXPECT_FALSE(are_chosen({.first_column = 10.0F})); // rows much alike
}

/// Where many cores have a say: owners, for one output and for several, and newton for a loss with kinks.
TEST(SpdcOwners, AndOtherChoicesGoByTheCoresAlone) {
    const Dataset wide = long_rows(5000, 200), tall = long_rows(10000, 100);
    Dataset three = wide;
    for (std::size_t i = 0; i < three.targets.size(); ++i) three.targets[i] = static_cast<double>(i % 3);
    struct Case {
        Problem problem;
        AnySolver solver;
        int too_few_cores, enough;
    };
    for (const auto &[problem, solver, too_few_cores, enough] :
         {Case{Problem(wide, SmoothedHinge{}, L2{1e-3}), SpdcFast{}, 3, 4},
          Case{Problem(three, SmoothedHinge{}, L2{1e-3}), SpdcFast{}, 11, 12},
          Case{Problem(tall, Hinge{}, L2{8e-4}), Auto{}, 3, 4}}) {
        const auto weights = [&](int cores, int threads) {
            Stopping stopping;
            stopping.tolerance = 0.1;
            SolveContext context;
            context.cores = cores;
            context.threads = threads;
            return solve(problem, solver, stopping, context).weights;
        };
        const std::vector<double> serial = weights(1, 1), shared = weights(enough, 1);
        EXPECT_EQ(weights(too_few_cores, 2), serial);
        EXPECT_NE(shared, serial);
        for (const int threads : {2, 4}) EXPECT_EQ(weights(enough, threads), shared) << threads;
    }
}

TEST(OwnerRows, AreTheRowsInPieces) {
    for (const Storage storage : all_storages) {
        for (const auto &[owners, one_value] : {std::pair{2, false}, {3, false}, {16, false}, {2, true}, {16, true}}) {
            TinyData any = tiny_data({.rows = 200, .columns = 70, .density = 0.4});
            make_lone(any);
            const TinyData data = one_value ? with_one_value_a_row(any) : any;
            const Problem problem(as_dataset(data, storage), Logistic{}, L2{1});
            std::vector<std::int32_t> order(data.rows.size());
            for (std::size_t p = 0; p < order.size(); ++p)
                order[p] = static_cast<std::int32_t>((p * 37) % order.size());
            Team team(2);
            OwnerRows rows(problem.matrix(), problem.row_values(), order, owners, team);
            const std::vector<double> norms = rows.take_squared_norms(), lone_norms = rows.take_lone_norms();
            std::vector<std::vector<ZU>> zu(at(owners), std::vector<ZU>(at(rows.width())));
            std::vector<double> z(70), u(70);
            spdc::Random random(4);
            for (std::int64_t j = 0; j < 70; ++j) {
                z[at(j)] = random.uniform();
                u[at(j)] = random.uniform();
                if (rows.has_owner(j)) {
                    zu[at(rows.owner_of(j))][at(rows.slot_of(j))] = ZU{z[at(j)], u[at(j)]};
                } else {
                    z[at(j)] = u[at(j)] = 0;
                }
            }
            // the places of rows 111, 168, 59, 163, 5, 64 and 149
            const std::vector<std::int32_t> places{3, 64, 7, 199, 65, 72, 177};
            std::vector<OwnerRows::Row> some;
            for (const std::int32_t place : places) some.push_back(rows.locate(place));
            std::vector<double> sum_z(places.size()), sum_u(places.size());
            std::vector<ZU> part(places.size()), moves(places.size());
            for (int owner = 0; owner < owners; ++owner) {
                rows.dots(owner, some, {}, zu[at(owner)].data(), part.data());
                for (std::size_t k = 0; k < places.size(); ++k) sum_z[k] += part[k][0], sum_u[k] += part[k][1];
            }
            for (std::size_t k = 0; k < places.size(); ++k) {
                const auto &a = data.rows[at(order[at(places[k])])];
                EXPECT_NEAR(sum_z[k], static_cast<double>(dot(a, z)), 1e-12);
                EXPECT_NEAR(sum_u[k], static_cast<double>(dot(a, u)), 1e-12);
                EXPECT_NEAR(norms[at(places[k])], static_cast<double>(dot(a, a)), 1e-12);
            }
            for (std::size_t k = 0; k < places.size(); ++k) {
                const auto &a = data.rows[at(order[at(places[k])])];
                moves[k] = ZU{random.uniform(), random.uniform()};
                for (std::size_t j = 0; j < 70; ++j) z[j] += moves[k][0] * a[j], u[j] += moves[k][1] * a[j];
            }
            for (int owner = 0; owner < owners; ++owner) rows.add(owner, some, moves.data(), zu[at(owner)].data());
            for (std::int64_t j = 0; j < 70; ++j) {
                if (!rows.has_owner(j)) continue;
                const ZU pair = zu[at(rows.owner_of(j))][at(rows.slot_of(j))];
                EXPECT_NEAR(pair[0], z[at(j)], 1e-12);
                EXPECT_NEAR(pair[1], u[at(j)], 1e-12);
            }
        }
    }
}

TEST(OwnerRows, KeepFeaturesOfOneRowWithTheRow) {
    for (const bool one_value : {false, true}) {
        TinyData any = tiny_data({.rows = 200, .columns = 70, .density = 0.4});
        make_lone(any);
        const TinyData data = one_value ? with_one_value_a_row(any) : any;
        const Problem problem(as_dataset(data, Storage::csr_float), Logistic{}, L2{1});
        std::vector<std::int32_t> order(data.rows.size());
        for (std::size_t p = 0; p < order.size(); ++p) order[p] = static_cast<std::int32_t>(order.size() - 1 - p);
        Team team(2);
        OwnerRows rows(problem.matrix(), problem.row_values(), order, 3, team); // 66 features have an owner
        const std::vector<double> norms = rows.take_lone_norms();
        std::vector<double> factors(order.size()), x(70, -7.0), expected(70, -7.0), squares(order.size());
        for (std::size_t p = 0; p < order.size(); ++p) factors[p] = 1 + static_cast<double>(p);
        for (const auto &[column, row] : {std::pair{3, 5}, {17, 5}, {20, 64}, {33, 149}}) {
            EXPECT_FALSE(rows.has_owner(column));
            const double value = data.rows[at(row)][at(column)];
            expected[at(column)] = value * factors[at(199 - row)];
            squares[at(199 - row)] += value * value;
        }
        for (std::int64_t batch = 0; batch < 4; ++batch) {
            rows.spread(batch, factors.data() + batch * batch_rows, x.data());
        }
        for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(x[j], expected[j], 1e-4) << j; // floats
        for (std::size_t p = 0; p < norms.size(); ++p) EXPECT_NEAR(norms[p], squares[p], 1e-6) << p;
    }
}

void expect_gram_matrix(const TinyData &data) {
    std::vector<std::int32_t> order(data.rows.size());
    std::iota(order.begin(), order.end(), 0);
    Team team(2);
    const Problem problem(as_dataset(data, Storage::csr_float), Logistic{}, L2{1});
    const OwnerRows rows(problem.matrix(), problem.row_values(), order, 3, team);
    OwnerRows::Scratch scratch;
    rows.reserve(scratch);
    rows.clear(scratch);
    std::vector<HalfFloat> gram(batch_rows * gram_row, 1);
    for (const std::vector<std::int32_t> &places :
         {std::vector<std::int32_t>{150, 3, 70, 71, 4},
          std::vector<std::int32_t>{8, 9}}) { // twice: the scratch is left clean
        rows.gram(places, scratch, gram.data());
        for (std::size_t r = 0; r < batch_rows; ++r) {
            for (std::size_t c = 0; c < gram_row; ++c) {
                const bool inside = r < places.size() && c < places.size() && r != c;
                const double exact =
                    inside ? static_cast<double>(dot(data.rows[at(places[r])], data.rows[at(places[c])])) : 0.0;
                EXPECT_NEAR(static_cast<double>(from_half(gram[r * gram_row + c])), exact, std::fabs(exact) / 256);
            }
        }
    }
}

TEST(OwnerRows, HaveTheGramMatrixOfABatch) {
    const TinyData data = tiny_data({.rows = 200, .columns = 70, .density = 0.4});
    expect_gram_matrix(data);
    expect_gram_matrix(with_one_value_a_row(data));
}

TEST(OwnerRows, HaveTheSameNumberOfEntriesToWithinOneARow) {
    const TinyData data = text_data(Task::classification, false);
    std::vector<std::int32_t> order(data.rows.size());
    std::iota(order.begin(), order.end(), 0);
    Team team(1);
    const OwnerRows rows(as_matrix(data.rows, Storage::csr_float), {}, order, 8, team);
    std::vector<std::int64_t> entries(8);
    for (const auto &row : data.rows) {
        for (std::int64_t j = 0; j < std::ssize(row); ++j) {
            if (rows.has_owner(j)) entries[at(rows.owner_of(j))] += row[at(j)] != 0;
        }
    }
    const auto [least, most] = std::minmax_element(entries.begin(), entries.end());
    EXPECT_LE(*most - *least, static_cast<std::int64_t>(data.rows.size()));
}

TEST(OwnerRows, AddProductsOfARow) {
    std::vector<HalfFloat> gram(gram_row);
    std::vector<float> c(gram_row, 1.0F), e(gram_row, -2.0F);
    for (std::size_t k = 0; k < gram.size(); ++k) gram[k] = to_half(static_cast<float>(k) - 9);
    add_products(gram.data(), 0.5F, -3.0F, c.data(), e.data());
    for (std::size_t k = 0; k < gram.size(); ++k) {
        EXPECT_EQ(c[k], 1 + 0.5F * (static_cast<float>(k) - 9));
        EXPECT_EQ(e[k], -2 - 3 * (static_cast<float>(k) - 9));
    }
}

/// One asks, all others answer, over and over: an answer out of date would show. With little patience threads sleep, too.
TEST(LetterThreads, ComeInTheirTurn) {
    for (const int patience : {0, 1000}) {
        constexpr int others = 3;
        Team team(others + 1);
        Letter question;
        std::vector<Letter> answers(others);
        int wrong = 0;
        team.run([&](int thread) {
            for (int round = 1; round <= 300; ++round) {
                const auto date = static_cast<unsigned>(round - 150); // runs over on its way
                double numbers[Letter::size];
                if (thread > 0) {
                    await(patience, [&] { return question.date() == date; });
                    const double *const asked = question.numbers();
                    for (int k = 0; k < Letter::size; ++k) numbers[k] = asked[k] * thread;
                    answers[at(thread - 1)].send(numbers, date);
                    continue;
                }
                for (int k = 0; k < Letter::size; ++k) numbers[k] = round + k;
                question.send(numbers, date);
                await(patience, [&] {
                    return std::ranges::all_of(answers, [&](const Letter &answer) { return answer.date() == date; });
                });
                for (int other = 0; other < others; ++other) {
                    const double *const answer = answers[at(other)].numbers();
                    for (int k = 0; k < Letter::size; ++k) wrong += answer[k] != (round + k) * (other + 1) ? 1 : 0;
                }
            }
        });
        EXPECT_EQ(wrong, 0);
    }
}

TEST(FlagBarrierThreads, MeetRoundAfterRound) {
    for (const int count : {1, 2, 5}) {
        Team team(count);
        FlagBarrier barrier(count);
        std::vector<int> arrived(at(count)), seen(at(count));
        for (int round = 1; round <= 50; ++round) {
            team.run([&](int thread) {
                ++arrived[at(thread)];
                barrier.wait(thread);
                seen[at(thread)] = std::accumulate(arrived.begin(), arrived.end(), 0);
                barrier.wait(thread);
            });
            EXPECT_EQ(seen, std::vector<int>(at(count), round * count));
        }
    }
}

} // namespace
} // namespace spdc::tests
