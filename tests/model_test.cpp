#include "spdc/model.h"

#include "spdc/solvers.h"
#include "support/files.h"
#include "support/problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace spdc {
namespace {

using test::error_of;
using test::read_file;
using test::TempDir;
using testing::HasSubstr;

Model two_labels() {
    Model model;
    SmoothedHinge loss;
    loss.smoothing = 0.25;
    model.loss = loss;
    model.labels = {"no way", "50% = half"};
    model.features = 7;
    model.index_base = 0;
    model.intercept = Intercept::free;
    model.intercepts = {0.1 + 0.2};
    model.l1 = 1e-300;
    model.l2 = 1.0 / 3;
    model.bounds = {-infinity, 2.5};
    model.class_weights = {{"no way", 0.5}, {"50% = half", 3}};
    model.row_weights = true;
    model.certificates = {{1.5, 1.25, 0.25, 0.25 / 1.5, 10}};
    model.solver = "spdc";
    model.stop_reason = "pass_limit";
    model.tolerance = 1e-4;
    model.index = {0, 3, 6};
    model.values = {1.0 / 7, -5e-324, 1e308};
    return model;
}

Model three_labels() {
    Model model;
    model.labels = {"1", "2", "3"};
    model.features = 4;
    model.outputs = 3;
    model.penalty_factors = true;
    model.certificates.resize(3); // infinite: never certified
    model.solver = "spdc";
    model.stop_reason = "interrupted";
    model.index = {1, 2};
    model.values = {1, 0, -1, 0.5, 2, 0};
    return model;
}

Model counts() {
    Model model;
    model.loss = Poisson{};
    model.certificates.resize(1);
    model.solver = "spdc";
    model.stop_reason = "gap_reached";
    return model;
}

void expect_equal(const Model &a, const Model &b) {
    EXPECT_EQ(a.loss.name(), b.loss.name());
    EXPECT_EQ(a.loss.gamma(), b.loss.gamma());
    EXPECT_EQ(a.labels, b.labels);
    EXPECT_EQ(a.features, b.features);
    EXPECT_EQ(a.index_base, b.index_base);
    EXPECT_EQ(a.outputs, b.outputs);
    EXPECT_EQ(a.intercept, b.intercept);
    EXPECT_EQ(a.intercepts, b.intercepts);
    EXPECT_EQ(a.l1, b.l1);
    EXPECT_EQ(a.l2, b.l2);
    EXPECT_EQ(a.bounds.lower, b.bounds.lower);
    EXPECT_EQ(a.bounds.upper, b.bounds.upper);
    EXPECT_EQ(a.class_weights, b.class_weights);
    EXPECT_EQ(a.row_weights, b.row_weights);
    EXPECT_EQ(a.penalty_factors, b.penalty_factors);
    EXPECT_EQ(a.solver, b.solver);
    EXPECT_EQ(a.stop_reason, b.stop_reason);
    EXPECT_EQ(a.tolerance, b.tolerance);
    EXPECT_EQ(a.index, b.index);
    EXPECT_EQ(a.values, b.values);
    ASSERT_EQ(a.certificates.size(), b.certificates.size());
    for (std::size_t k = 0; k < a.certificates.size(); ++k) {
        EXPECT_EQ(a.certificates[k].primal, b.certificates[k].primal);
        EXPECT_EQ(a.certificates[k].dual, b.certificates[k].dual);
        EXPECT_EQ(a.certificates[k].gap, b.certificates[k].gap);
        EXPECT_EQ(a.certificates[k].relative_gap, b.certificates[k].relative_gap);
        EXPECT_EQ(a.certificates[k].radius, b.certificates[k].radius);
    }
}

TEST(ModelFile, ReadsBackWhatWasWritten) {
    const TempDir folder;
    for (const Model &model : {two_labels(), three_labels(), counts()}) {
        save_model(model, folder.file("model"));
        EXPECT_TRUE(is_model_file(folder.file("model")));
        expect_equal(load_model(folder.file("model")), model);
    }
}

TEST(ModelFile, IsTheSameForAnyNumberOfThreads) {
    const TempDir folder;
    Model model = three_labels();
    model.features = 50000;
    model.index.resize(50000);
    std::iota(model.index.begin(), model.index.end(), 0);
    model.values.clear();
    for (std::size_t k = 0; k < 3 * model.index.size(); ++k) { // 24 characters each, the most there are
        model.values.push_back(-2.2250738585072014e-308 * (1 + 1e-3 * static_cast<double>(k % 500)));
    }
    save_model(model, folder.file("one"));
    save_model(model, folder.file("many"), 7);
    EXPECT_EQ(read_file(folder.file("one")), read_file(folder.file("many")));
    expect_equal(load_model(folder.file("many")), model);
    EXPECT_THAT(error_of(ErrorKind::invalid_argument, [&] { save_model(model, folder.file("none"), 0); }),
                HasSubstr("threads = 0, need at least 1"));
}

TEST(ModelFile, KeepsTheParametersOfEveryLoss) {
    const TempDir folder;
    for (const std::string &name : loss_names()) {
        Model model = counts();
        model.loss = make_loss(name);
        if (model.is_classifier()) model.labels = {"a", "b"};
        std::visit([](auto &loss) { loss.fields(loss, [](const Field &, double &value) { value = 0.4375; }); },
                   model.loss.variant());
        save_model(model, folder.file("model"));
        const Model loaded = load_model(folder.file("model"));
        EXPECT_EQ(loaded.loss.name(), name);
        std::visit(
            [](const auto &loss) { loss.fields(loss, [](const Field &, double value) { EXPECT_EQ(value, 0.4375); }); },
            loaded.loss.variant());
    }
}

TEST(ModelFile, BeginsWithItsVersion) {
    const TempDir folder;
    save_model(counts(), folder.file("model"));
    const std::string text = read_file(folder.file("model"));
    EXPECT_TRUE(text.starts_with("spdc-model 1\n"));
    const std::string newer = folder.write("newer", "spdc-model 7" + text.substr(12));
    EXPECT_THAT(error_of(ErrorKind::bad_file, [&] { load_model(newer); }),
                HasSubstr("newer:1:12: a model of version '7', but this program reads version 1 only"));
}

// Truncated anywhere, or with any byte changed: an Error or a model, never anything else.
TEST(ModelFile, SurvivesAnyBytes) {
    const TempDir folder;
    tests::Random random(1);
    for (const Model &model : {two_labels(), three_labels()}) {
        save_model(model, folder.file("model"));
        const std::string whole = read_file(folder.file("model"));
        std::vector<std::string> damaged;
        for (std::size_t length = 0; length < whole.size(); length += 3) damaged.push_back(whole.substr(0, length));
        for (int k = 0; k < 600; ++k) {
            damaged.push_back(whole);
            const auto place = static_cast<std::size_t>(random.index(static_cast<std::int64_t>(whole.size())));
            damaged.back()[place] = static_cast<char>(random.index(256));
        }
        int refused = 0;
        for (const std::string &bytes : damaged) {
            const std::string path = folder.write("damaged", bytes);
            try {
                load_model(path);
            } catch (const Error &error) {
                EXPECT_EQ(error.kind(), ErrorKind::bad_file) << error.what();
                EXPECT_THAT(error.what(), HasSubstr("damaged:"));
                ++refused;
            }
        }
        EXPECT_GT(refused, static_cast<int>(damaged.size()) / 2);
    }
}

TEST(ModelFile, BelievesNoCount) {
    const TempDir folder;
    save_model(three_labels(), folder.file("model"));
    const std::string text = read_file(folder.file("model"));
    const auto changed = [&](const std::string &from, const std::string &to) {
        std::string copy = text;
        copy.replace(copy.find(from), from.size(), to);
        return error_of(ErrorKind::bad_file, [&] { load_model(folder.write("changed", copy)); });
    };
    EXPECT_THAT(changed("weights 2", "weights 2147483648"), HasSubstr("2147483648 weights for 4 features"));
    EXPECT_THAT(changed("features 4", "features 99999999999"), HasSubstr("expected a whole number from 0"));
    EXPECT_THAT(changed("outputs 3", "outputs 1000000"), HasSubstr("1000000 outputs for 3 labels"));
    EXPECT_THAT(changed("\n2 1 0 -1", "\n3 1 0 -1"), HasSubstr("index 3 after 3"));
    EXPECT_THAT(changed("\n2 1 0 -1", "\n2 1 0"), HasSubstr("3 words, expected an index and 3 values"));
    EXPECT_THAT(changed("labels 1 2 3", "labels 1 2 2"), HasSubstr("two or more different labels"));
    EXPECT_THAT(changed("l1 0", "l1 -1"), HasSubstr("l1 = -1: must be at least 0"));
    EXPECT_THAT(changed("l1 0\n", "l1 0\nl1 0\n"), HasSubstr("'l1' twice"));
}

TEST(Scores, AreTheSameFromEveryStorage) {
    Model model = two_labels();
    model.values = {2, -1, 0.5};
    const std::vector<double> row{1, 9, 9, 2, 9, 9, 4};
    const AnyMatrix dense = DenseMatrix<double>::own(1, 7, row);
    const AnyMatrix sparse = CsrMatrix<float>::own(9, {0, 4}, {0, 3, 6, 8}, {1, 2, 4, 100}); // feature 9 has no weight
    const AnyMatrix narrow = CsrMatrix<double>::own(1, {0, 1}, {0}, {1});
    EXPECT_EQ(scores(model, dense), (std::vector<double>{2 * 1 - 1 * 2 + 0.5 * 4 + model.intercepts[0]}));
    EXPECT_EQ(scores(model, sparse), scores(model, dense));
    EXPECT_EQ(scores(model, narrow), (std::vector<double>{2 + model.intercepts[0]}));
}

TEST(Scores, FindFeaturesFarOut) { // beyond the table of small indices
    Model model = counts();
    model.features = std::int64_t{1} << 31;
    model.index = {5, 2'000'000'000};
    model.values = {1, 3};
    const AnyMatrix matrix = CsrMatrix<double>::own(2'147'483'647, {0, 3}, {4, 5, 2'000'000'000}, {1, 1, 1});
    EXPECT_EQ(scores(model, matrix), std::vector<double>{4});
}

TEST(Predictions, TwoLabels) {
    Model model = two_labels();
    EXPECT_EQ(predicted_labels(model, {-1, 0, 1e-9}), (std::vector<std::int64_t>{0, 0, 1}));
    error_of(ErrorKind::unsupported, [&] { probabilities(model, {0}); });
    model.loss = Logistic{};
    const std::vector<double> chances = probabilities(model, {0, std::log(3), -800, 800});
    EXPECT_EQ(chances[0], 0.5);
    EXPECT_NEAR(chances[3], 0.75, 1e-15);
    EXPECT_EQ(chances[4], 1);
    EXPECT_EQ(chances[5], 0);
    EXPECT_EQ(chances[7], 1);
}

TEST(Predictions, ManyLabels) {
    const Model model = three_labels();
    EXPECT_EQ(predicted_labels(model, {1, 3, 2, -1, -3, -2}), (std::vector<std::int64_t>{1, 0}));
    const std::vector<double> chances = probabilities(model, {1, 3, 2, -2000, -2000, -2000});
    EXPECT_NEAR(chances[0] + chances[1] + chances[2], 1, 1e-15);
    EXPECT_NEAR(chances[3], 1.0 / 3, 1e-15); // all three underflow
}

TEST(Predictions, AreOneLineARow) {
    const TempDir folder;
    Dataset data;
    data.matrix = DenseMatrix<double>::own(2, 4, {0, 1, 0, 0, 0, 0, 1, 0});
    write_predictions(three_labels(), data, Prediction::label, folder.file("labels"));
    EXPECT_EQ(read_file(folder.file("labels")), "1\n2\n");
    write_predictions(three_labels(), data, Prediction::score, folder.file("scores"));
    EXPECT_EQ(read_file(folder.file("scores")), "1 0 -1\n0.5 2 0\n");
}

TEST(Features, DenseDataNeedTheModelsColumns) {
    const Model model = three_labels();
    check_features(model, CsrMatrix<double>::own(9, {0, 0}, {}, {}), "data");
    check_features(model, DenseMatrix<double>::own(1, 4, {0, 0, 0, 0}), "data");
    EXPECT_THAT(error_of(ErrorKind::bad_file,
                         [&] {
                             check_features(model, DenseMatrix<double>::own(1, 3, {0, 0, 0}), "x.csv");
                         }),
                HasSubstr("x.csv: 3 columns beside the label, but the model has 4 features"));
}

TEST(MakeModel, KnowsTheWeightOfEveryClass) {
    Dataset data;
    data.matrix = DenseMatrix<double>::own(4, 1, {1, 2, 3, 4});
    data.targets = {0, 1, 1, 1};
    data.label_names = {"a", "b"};
    data.weights = {2, 1, 1, 4};
    ProblemOptions options;
    options.balanced = true;
    const Problem problem(data, Logistic{}, L2{0.1}, options);
    const Result result = solve(problem);
    const Model model = make_model(data, options, problem, result, 1e-4);
    EXPECT_NEAR(model.class_weights.at("a"), 8.0 / (2 * 2), 1e-14); // W / (classes * weight of the class)
    EXPECT_NEAR(model.class_weights.at("b"), 8.0 / (2 * 6), 1e-14);
    EXPECT_TRUE(model.row_weights);
    EXPECT_EQ(model.l2, 0.1);
    EXPECT_EQ(model.labels, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(label_indices(model, data), (std::vector<std::int64_t>{0, 1, 1, 1}));
    ASSERT_EQ(model.index.size(), 1u);
    EXPECT_EQ(model.values, result.weights);
}

TEST(CheckWritable, LeavesNothingBehind) {
    const TempDir folder;
    check_writable(folder.file("new"));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    check_writable(folder.write("old", "kept"));
    EXPECT_EQ(read_file(folder.file("old")), "kept");
    error_of(ErrorKind::bad_file, [&] { check_writable(folder.file("none/new")); });
    error_of(ErrorKind::bad_file, [&] { check_writable(folder.path().string()); });
}

} // namespace
} // namespace spdc
