// Time of one SPDC pass at a fixed number of non-zeros as the number of features grows: updates cost the non-zeros of their
// row (section 6 of the paper), so what growth remains is the cache's. A million non-zeros: milliseconds a pass are nanoseconds
// a non-zero. Run: ./run bench dimension
#include "random.h"
#include "solvers/methods.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>

namespace {

using namespace spdc;

constexpr std::int64_t rows_count = 20000, row_size = 50;

Dataset random_text(std::int64_t features) {
    Random random(7);
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> columns;
    std::vector<double> values, targets;
    for (std::int64_t i = 0; i < rows_count; ++i) {
        std::vector<std::int32_t> row;
        while (static_cast<std::int64_t>(row.size()) < row_size) {
            row.push_back(static_cast<std::int32_t>(random.below(features)));
            std::sort(row.begin(), row.end());
            row.erase(std::unique(row.begin(), row.end()), row.end());
        }
        columns.insert(columns.end(), row.begin(), row.end());
        for (std::int64_t p = 0; p < row_size; ++p) values.push_back(random.uniform() - 0.5);
        offsets.push_back(static_cast<std::int64_t>(columns.size()));
        targets.push_back(random.uniform() < 0.5 ? -1 : 1);
    }
    Dataset data;
    data.matrix = CsrMatrix<double>::own(features, offsets, columns, values);
    data.targets = targets;
    return data;
}

template <class G> void pass(benchmark::State &state, G regularizer) {
    const Problem problem(random_text(state.range(0)), SmoothedHinge{}, regularizer);
    const std::unique_ptr<Method> method = make_method(problem, Spdc{}, SolveContext{});
    method->advance(2); // every page of the state has been touched once
    for (auto _ : state) method->advance(1);
}

void l2(benchmark::State &state) { pass(state, L2{1e-4}); }
void elastic_net(benchmark::State &state) { pass(state, ElasticNet{1e-4, 1e-4}); }

} // namespace

BENCHMARK(l2)->RangeMultiplier(10)->Range(10000, 10000000)->Unit(benchmark::kMillisecond);
BENCHMARK(elastic_net)->RangeMultiplier(10)->Range(10000, 10000000)->Unit(benchmark::kMillisecond);

BENCHMARK_MAIN();
