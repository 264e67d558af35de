#include "report.h"

#include "field_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace spdc::cli {

namespace {

template <class Value> Json value_json(const Value &value) {
    if constexpr (IsOptional<Value>::value) {
        return value ? value_json(*value) : Json();
    } else if constexpr (std::is_arithmetic_v<Value>) {
        return value;
    } else {
        return std::string(to_string(value));
    }
}

// The fields of an options struct; options that were left to the solver are null.
template <class Options> Json fields_json(const Options &options) {
    Json json = Json::object();
    Options::fields(options, [&](const Field &field, const auto &value) {
        std::string name = field.name;
        std::replace(name.begin(), name.end(), '-', '_');
        json[name] = value_json(value);
    });
    return json;
}

// The options of the solver that ran: those given, or the defaults of the one auto picked.
Json solver_options(const TrainReport &report) {
    const bool is_auto = std::holds_alternative<Auto>(report.arguments.solver);
    const AnySolver ran = is_auto ? make_solver(report.result.solver) : report.arguments.solver;
    return std::visit([](const auto &options) { return fields_json(options); }, ran);
}

std::string plural(std::int64_t count, const char *noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string penalty_text(const Model &model) {
    std::string text;
    if (model.l1 > 0) text += fmt::format(", l1 = {:.6g}", model.l1);
    if (model.l2 > 0) text += fmt::format(", l2 = {:.6g}", model.l2);
    if (model.l1 == 0 && model.l2 == 0) text += ", no penalty";
    if (model.bounds.lower != -infinity || model.bounds.upper != infinity) {
        text += fmt::format(", weights in [{}, {}]", model.bounds.lower, model.bounds.upper);
    }
    if (model.intercept != Intercept::none) text += fmt::format(", {} intercept", to_string(model.intercept));
    return text;
}

std::string verdict(const TrainReport &report) {
    const Result &result = report.result;
    const Certificate &worst = result.worst();
    const double tolerance = report.arguments.stopping.tolerance;
    std::string text;
    if (result.converged()) {
        text = fmt::format("certified   relative gap {:.2e}, tolerance {:.2g}", worst.relative_gap, tolerance);
        if (std::isfinite(worst.radius)) {
            text += fmt::format(", for unpenalised weights up to {:.3g}", worst.radius);
        }
        return text + "\n";
    }
    text = fmt::format("NOT CERTIFIED: relative gap {:.2e} is above the tolerance {:.2g}; stopped by {}\n",
                       worst.relative_gap, tolerance, to_string(result.stop_reason));
    if (!result.message.empty()) text += fmt::format("            {}\n", result.message);
    if (result.stop_reason == StopReason::interrupted) {
        text += "            interrupted; this is the best point so far, with its own gap\n";
    }
    return text;
}

} // namespace

std::string to_text(const Json &json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json parameters_json(const AnyLoss &loss) {
    return std::visit([](const auto &l) { return fields_json(l); }, loss.variant());
}

Json certificates_json(const std::vector<Certificate> &certificates) {
    Json list = Json::array();
    for (const Certificate &certificate : certificates) {
        list.push_back({{"primal", certificate.primal},
                        {"dual", certificate.dual},
                        {"gap", certificate.gap},
                        {"relative_gap", certificate.relative_gap},
                        {"certificate_radius", certificate.radius}});
    }
    return list;
}

std::string train_json(const TrainReport &report) {
    const Result &result = report.result;
    const Model &model = report.model;
    const Certificate &worst = result.worst();
    Json json;
    json["solver"] = result.solver;
    json["solver_reason"] = result.solver_reason;
    json["loss"] = model.loss.name();
    json["loss_parameters"] = parameters_json(model.loss);
    json["l1"] = model.l1;
    json["l2"] = model.l2;
    json["lower"] = model.bounds.lower;
    json["upper"] = model.bounds.upper;
    json["intercept_kind"] = to_string(model.intercept);
    json["intercept"] = model.intercepts;
    json["rows"] = report.data.rows();
    json["features"] = report.data.features();
    json["nonzeros"] = report.data.nonzeros();
    json["outputs"] = result.outputs;
    json["labels"] = model.labels;
    json["class_weights"] = model.class_weights;
    json["primal"] = worst.primal;
    json["dual"] = worst.dual;
    json["gap"] = worst.gap;
    json["relative_gap"] = worst.relative_gap;
    json["certificate_radius"] = worst.radius;
    json["certificates"] = certificates_json(result.certificates);
    json["converged"] = result.converged();
    json["stop_reason"] = to_string(result.stop_reason);
    json["message"] = result.message;
    json["stopping"] = fields_json(report.arguments.stopping);
    json["tolerance"] = report.arguments.stopping.tolerance;
    json["passes"] = result.passes;
    json["seconds"] = report.seconds;
    json["seconds_cpu"] = report.seconds_cpu;
    json["seconds_solver"] = result.seconds_solver;
    json["seconds_loading"] = report.seconds_loading;
    json["threads"] = result.threads;
    json["seed"] = result.seed;
    json["solver_options"] = solver_options(report);
    json["model_nonzeros"] = used_features(result);
    json["model"] = report.arguments.model.empty() ? Json() : Json(report.arguments.model);
    return to_text(json);
}

std::string train_text(const TrainReport &report) {
    const Result &result = report.result;
    const Model &model = report.model;
    const Certificate &worst = result.worst();
    std::string text = fmt::format("problem     {}{}\n", model.loss.name(), penalty_text(model));
    text += fmt::format("data        {}, {}, {} entries", plural(report.data.rows(), "row"),
                        plural(report.data.features(), "feature"), report.data.nonzeros());
    if (result.outputs > 1) text += fmt::format(", {} labels: one against the rest, the worst below", result.outputs);
    text += fmt::format("\nsolver      {} ({})\n", result.solver, result.solver_reason);
    text += fmt::format("objective   primal {:.10g}, dual {:.10g}\n", worst.primal, worst.dual);
    text += verdict(report);
    text += fmt::format(
        "work        {:.4g} passes in {:.3g} s ({:.3g} s without certification), {}; loading {:.3g} s\n", result.passes,
        report.seconds, result.seconds_solver, plural(result.threads, "thread"), report.seconds_loading);
    text += fmt::format("weights     {} of {} features", used_features(result), model.features);
    if (!model.intercepts.empty()) text += fmt::format(", intercept {:.6g}", fmt::join(model.intercepts, " "));
    text += fmt::format("\nmodel       {}\n",
                        report.arguments.model.empty() ? "not saved: no MODEL was named" : report.arguments.model);
    return text;
}

} // namespace spdc::cli
