#include "info.h"

#include "spdc/certificate.h"
#include "spdc/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace spdc::cli {

namespace {

constexpr std::size_t most_labels_listed = 20;

std::string storage(const AnyMatrix &matrix) {
    return std::string(is_sparse(matrix) ? "sparse rows, " : "dense, ") + (has_floats(matrix) ? "float32" : "float64");
}

Json row_norms(const AnyMatrix &matrix) {
    std::vector<double> norms;
    std::visit(
        [&](const auto &rows_of) {
            for (std::int64_t i = 0; i < rows_of.rows(); ++i) {
                const auto row = rows_of.row(i);
                double square = 0;
                for (std::int64_t p = 0; p < row.size(); ++p) square += row.value(p) * row.value(p);
                norms.push_back(std::sqrt(square));
            }
        },
        matrix);
    std::sort(norms.begin(), norms.end());
    const std::size_t n = norms.size();
    const double mean = std::accumulate(norms.begin(), norms.end(), 0.0) / static_cast<double>(n);
    return {{"min", norms.front()},
            {"median", 0.5 * (norms[(n - 1) / 2] + norms[n / 2])},
            {"mean", mean},
            {"max", norms.back()}};
}

std::map<double, std::int64_t> count_targets(const Dataset &data) {
    std::map<double, std::int64_t> counts;
    for (const double target : data.targets) ++counts[target];
    return counts;
}

Json labels(const Dataset &data, const std::map<double, std::int64_t> &counts) {
    Json json = Json::object();
    for (const auto &[target, count] : counts) {
        json[data.label_names.empty() ? fmt::format("{}", target)
                                      : data.label_names[static_cast<std::size_t>(target)]] = count;
    }
    return json;
}

Json targets(const Dataset &data) {
    double mean = 0, square = 0;
    const auto n = static_cast<double>(data.targets.size());
    for (const double target : data.targets) mean += target / n;
    for (const double target : data.targets) square += (target - mean) * (target - mean) / n;
    const auto [least, most] = std::minmax_element(data.targets.begin(), data.targets.end());
    return {{"min", *least}, {"mean", mean}, {"max", *most}, {"standard_deviation", std::sqrt(square)}};
}

std::string value_text(const Json &value) {
    if (value.is_number_float()) return fmt::format("{:.10g}", value.get<double>());
    if (value.is_string()) return value.get<std::string>();
    if (value.is_null()) return "-";
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace

double lambda_max(const Problem &problem) {
    double largest = 0;
    for (std::int64_t k = 0; k < problem.outputs(); ++k) largest = std::max(largest, l1_max(problem.output(k)));
    return largest;
}

Json data_info(const InfoArguments &arguments, const Dataset &data) {
    const std::map<double, std::int64_t> counts = count_targets(data);
    const bool are_labels = !data.label_names.empty() || counts.size() <= most_labels_listed;
    const double cells = static_cast<double>(data.rows()) * static_cast<double>(data.features());
    Json json;
    json["kind"] = "data";
    json["path"] = arguments.path;
    json["rows"] = data.rows();
    json["features"] = data.features();
    json["nonzeros"] = data.nonzeros();
    json["density"] = cells > 0 ? Json(static_cast<double>(data.nonzeros()) / cells) : Json();
    json["storage"] = storage(data.matrix);
    json["index_base"] = data.index_base;
    json["row_norms"] = row_norms(data.matrix);
    json["different_targets"] = counts.size();
    if (are_labels) json["labels"] = labels(data, counts);
    if (data.label_names.empty()) json["targets"] = targets(data);
    const AnyLoss loss =
        arguments.loss.value_or(are_labels && counts.size() >= 2 ? AnyLoss(Logistic{}) : AnyLoss(Squared{}));
    json["loss"] = loss.name();
    if (!arguments.loss && !data.label_names.empty() && counts.size() < 2) {
        json["lambda_max"] = Json(); // one text label: neither a classification nor a regression
        return json;
    }
    ProblemOptions options;
    options.intercept = arguments.intercept;
    json["lambda_max"] = lambda_max(Problem(data, loss, L2{}, options));
    return json;
}

Json model_info(const Model &model) {
    Json json;
    json["kind"] = "model";
    json["loss"] = model.loss.name();
    json["loss_parameters"] = parameters_json(model.loss);
    json["labels"] = model.labels;
    json["features"] = model.features;
    json["model_nonzeros"] = model.index.size();
    json["index_base"] = model.index_base;
    json["outputs"] = model.outputs;
    json["intercept_kind"] = to_string(model.intercept);
    json["intercept"] = model.intercepts;
    json["l1"] = model.l1;
    json["l2"] = model.l2;
    json["lower"] = model.bounds.lower;
    json["upper"] = model.bounds.upper;
    json["class_weights"] = model.class_weights;
    json["row_weights"] = model.row_weights;
    json["penalty_factors"] = model.penalty_factors;
    const Certificate worst = model.worst();
    json["primal"] = worst.primal;
    json["dual"] = worst.dual;
    json["gap"] = worst.gap;
    json["relative_gap"] = worst.relative_gap;
    json["certificate_radius"] = worst.radius;
    json["tolerance"] = model.tolerance;
    json["stop_reason"] = model.stop_reason;
    json["solver"] = model.solver;
    if (model.outputs > 1) json["certificates"] = certificates_json(model.certificates);
    return json;
}

std::string info_text(const Json &json) {
    std::string text;
    for (const auto &[key, value] : json.items()) {
        if (value.is_structured() && value.empty()) continue;
        std::string line;
        if (value.is_object()) {
            for (const auto &[name, inner] : value.items()) line += fmt::format("  {} {}", name, value_text(inner));
        } else if (value.is_array()) {
            for (const Json &inner : value) line += "  " + value_text(inner);
        } else {
            line = "  " + value_text(value);
        }
        text += fmt::format("{:<19} {}\n", key, line.substr(2));
    }
    return text;
}

} // namespace spdc::cli
