#include "verify.h"

#include "spdc/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace spdc::cli {

namespace {

using Real = long double;

// Stated and recomputed numbers may differ by this much of the larger objective. The library promises 1e-12.
constexpr Real agreement = 1e-10L;

// What rounding may add to a relative gap, and by how much of their size dual variables may leave their domain.
constexpr Real rounding = 1e-12L;

// A prediction computed in double, as a share of the size of its terms. It matters where the objective itself is 0.
constexpr Real prediction_rounding = 8 * 0x1p-53L;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

Real positive(Real v) { return v > 0 ? v : 0; }

Real x_log_x(Real v) { return v > 0 ? v * std::log(v) : 0; }

Real shrink(Real v, Real t) { return v > t ? v - t : (v < -t ? v + t : 0); }

/// A loss as two formulas: phi(z, b), and phi*(y, b) for y between lower(b) and upper(b).
struct Formulas {
    std::function<Real(Real z, Real b)> value;
    std::function<Real(Real y, Real b)> conjugate;
    std::function<Real(Real b)> lower, upper;
};

constexpr Real endless = std::numeric_limits<Real>::infinity();

Formulas regression(std::function<Real(Real)> value, std::function<Real(Real)> conjugate, Real lower, Real upper) {
    return {[=](Real z, Real b) { return value(z - b); }, [=](Real y, Real b) { return b * y + conjugate(y); },
            [=](Real) { return lower; }, [=](Real) { return upper; }};
}

// In terms of the margin s = b z and of q = b y in [least, 0].
Formulas margin(std::function<Real(Real)> value, std::function<Real(Real)> conjugate, Real least) {
    return {[=](Real z, Real b) { return value(b * z); }, [=](Real y, Real b) { return conjugate(b * y); },
            [=](Real b) { return b > 0 ? least : 0; }, [=](Real b) { return b > 0 ? 0 : -least; }};
}

Formulas margin_formulas(const std::string &name, Real gamma) {
    const auto hinge = [](Real s) { return positive(1 - s); };
    if (name == "hinge")
        return margin(
            hinge, [](Real q) { return q; }, -1);
    if (name == "squared_hinge") {
        return margin([=](Real s) { return hinge(s) * hinge(s); }, [](Real q) { return q + q * q / 4; }, -endless);
    }
    if (name == "smoothed_hinge") {
        const auto value = [=](Real s) {
            return s <= 1 - gamma ? 1 - s - gamma / 2 : hinge(s) * hinge(s) / (2 * gamma);
        };
        return margin(
            value, [=](Real q) { return q + gamma * q * q / 2; }, -1);
    }
    if (name == "logistic") {
        const auto value = [](Real s) { return positive(-s) + std::log1p(std::exp(-std::abs(s))); };
        return margin(
            value, [](Real q) { return x_log_x(-q) + x_log_x(1 + q); }, -1);
    }
    fail(ErrorKind::unsupported, fmt::format("verify has no formulas for the loss {}", name));
}

Formulas formulas(const std::string &name, std::map<std::string, Real> parameter) {
    const auto absolute = [](Real r) { return std::abs(r); };
    const auto nothing = [](Real) { return Real(0); };
    const auto half_square = [](Real v) { return v * v / 2; };
    const Real epsilon = parameter["epsilon"], delta = parameter["delta"], quantile = parameter["quantile"];
    if (name == "squared") return regression(half_square, half_square, -endless, endless);
    if (name == "absolute") return regression(absolute, nothing, -1, 1);
    if (name == "huber") {
        const auto value = [=](Real r) {
            return std::abs(r) <= delta ? r * r / 2 : delta * std::abs(r) - delta * delta / 2;
        };
        return regression(value, half_square, -delta, delta);
    }
    if (name == "quantile") {
        const auto value = [=](Real r) { return r > 0 ? (1 - quantile) * r : -quantile * r; };
        return regression(value, nothing, -quantile, 1 - quantile);
    }
    if (name == "epsilon_insensitive") {
        return regression([=](Real r) { return positive(std::abs(r) - epsilon); },
                          [=](Real y) { return epsilon * std::abs(y); }, -1, 1);
    }
    if (name == "squared_epsilon_insensitive") {
        return regression([=](Real r) { return positive(std::abs(r) - epsilon) * positive(std::abs(r) - epsilon); },
                          [=](Real y) { return epsilon * std::abs(y) + y * y / 4; }, -endless, endless);
    }
    if (name == "poisson") {
        return {[](Real z, Real b) { return std::exp(z) - b * z; },
                [](Real y, Real b) { return x_log_x(positive(y + b)) - (y + b); }, [](Real b) { return -b; },
                [](Real) { return endless; }};
    }
    return margin_formulas(name, parameter["gamma"]);
}

std::map<std::string, Real> parameters(const AnyLoss &loss) {
    std::map<std::string, Real> values;
    std::visit(
        [&](const auto &l) { l.fields(l, [&](const Field &field, double value) { values[field.name] = value; }); },
        loss.variant());
    return values;
}

/// One coordinate: its weight, its penalty p1 |x| + (p2/2) x^2, its bounds, and u_j = (1/W) sum_i w_i y_i a_ij.
struct Coordinate {
    Real x = 0, p1 = 0, p2 = 0, lower = -endless, upper = endless, u = 0;

    Real penalty() const { return p1 * std::abs(x) + p2 * x * x / 2; }
    bool unbounded_towards(Real w) const { return p2 == 0 && (w > 0 ? upper == endless : lower == -endless); }
    Real radius() const { return 10 * std::max<Real>(1, std::abs(x)); }

    /// sup of w t - penalty(t) over the bounds at w = -scale u. Where that is infinite: over |t| <= radius() if nothing is
    /// penalised; else the scale is meant to keep |w| <= p1, and what exceeds it is rounding.
    Real conjugate(Real scale) const {
        const Real w = -scale * u;
        const Real excess = shrink(w, p1);
        Real t = 0;
        if (p2 > 0) {
            t = std::clamp(excess / p2, lower, upper);
        } else if (excess != 0) {
            const Real end = std::clamp(excess > 0 ? upper : lower, -radius(), radius());
            t = unbounded_towards(w) ? (p1 > 0 ? 0 : end) : (excess > 0 ? upper : lower);
        }
        return w * t - p1 * std::abs(t) - p2 * t * t / 2;
    }
};

class Verifier {
  public:
    Verifier(const Model &model, const Dataset &data, const std::vector<double> &factors,
             const std::vector<double> &dual, Verification &result)
        : model_(model), data_(data), dual_(dual), result_(result),
          formulas_(formulas(std::string(model.loss.name()), parameters(model.loss))), weights_(row_weights()) {
        for (const Real weight : weights_) total_ += weight;
        // Features beyond the data and the weights add nothing.
        const std::int64_t used = std::max(data.features(), model.index.empty() ? 0 : model.index.back() + 1);
        for (std::int64_t j = 0; j < used; ++j)
            coordinates_.push_back(coordinate(factors.empty() ? 1 : factors[at(j)]));
        if (model.intercept == Intercept::free) coordinates_.emplace_back();
        if (model.intercept == Intercept::penalized) coordinates_.push_back(coordinate(1));
    }

    VerifiedOutput check(std::int64_t output);

  private:
    Coordinate coordinate(Real factor) const {
        return {0, factor * model_.l1, factor * model_.l2, model_.bounds.lower, model_.bounds.upper, 0};
    }
    std::vector<Real> row_weights() const;
    Real target(std::size_t row, std::int64_t output) const;
    void check_bounds();
    Real dual_scale();
    template <class Visit> void each_entry(std::size_t row, Visit visit) const {
        std::visit(
            [&](const auto &matrix) {
                const auto entries = matrix.row(static_cast<std::int64_t>(row));
                for (std::int64_t p = 0; p < entries.size(); ++p) visit(at(entries.column(p)), Real(entries.value(p)));
            },
            data_.matrix);
        if (model_.intercept != Intercept::none) visit(coordinates_.size() - 1, Real(1));
    }
    void object(std::string sentence) { result_.objections.push_back(std::move(sentence)); }

    const Model &model_;
    const Dataset &data_;
    const std::vector<double> &dual_;
    Verification &result_;
    Formulas formulas_;
    std::vector<std::int64_t> labels_;
    std::vector<Real> weights_;
    std::vector<Coordinate> coordinates_;
    Real total_ = 0;
};

std::vector<Real> Verifier::row_weights() const {
    std::vector<Real> weights(data_.targets.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
        weights[i] = data_.weights.empty() ? 1 : data_.weights[i];
        if (model_.class_weights.empty()) continue;
        const std::string label = data_.label_names.empty()
                                      ? fmt::format("{}", data_.targets[i])
                                      : data_.label_names[at(static_cast<std::int64_t>(data_.targets[i]))];
        const auto found = model_.class_weights.find(label);
        if (found != model_.class_weights.end()) weights[i] *= found->second;
    }
    return weights;
}

Real Verifier::target(std::size_t row, std::int64_t output) const {
    if (!model_.is_classifier()) return data_.targets[row];
    if (labels_[row] < 0) {
        fail(ErrorKind::bad_file, fmt::format("row {}: the model does not know the label of this row", row + 1));
    }
    return labels_[row] == (model_.outputs == 1 ? 1 : output) ? 1 : -1;
}

void Verifier::check_bounds() {
    for (std::size_t j = 0; j < coordinates_.size(); ++j) {
        const Coordinate &c = coordinates_[j];
        if (c.lower <= c.x && c.x <= c.upper) continue;
        object(fmt::format("weight {} of feature {} lies outside its bounds {} to {}", static_cast<double>(c.x), j + 1,
                           model_.bounds.lower, model_.bounds.upper));
        return;
    }
}

// The largest s <= 1 with |s u_j| <= p1 wherever l1 is all that holds a weight: s y is then a dual point, too.
Real Verifier::dual_scale() {
    Real scale = 1;
    for (const Coordinate &c : coordinates_) {
        if (c.p1 > 0 && c.unbounded_towards(-c.u) && std::abs(c.u) > c.p1)
            scale = std::min(scale, c.p1 / std::abs(c.u));
        if (c.p1 == 0 && c.p2 == 0 && (c.lower == -endless || c.upper == endless)) {
            result_.radius = std::min(result_.radius, static_cast<double>(c.radius()));
        }
    }
    return scale;
}

VerifiedOutput Verifier::check(std::int64_t output) {
    labels_ = model_.is_classifier() ? label_indices(model_, data_) : std::vector<std::int64_t>{};
    for (Coordinate &c : coordinates_) c.x = c.u = 0;
    for (std::size_t k = 0; k < model_.index.size(); ++k) {
        coordinates_[at(model_.index[k])].x = model_.values[k * at(model_.outputs) + at(output)];
    }
    if (model_.intercept != Intercept::none) coordinates_.back().x = model_.intercepts[at(output)];
    check_bounds();

    VerifiedOutput found;
    Real losses = 0, conjugates = 0;
    std::size_t outside = 0;
    const auto y_of = [&](std::size_t i) { return Real(dual_[i * at(model_.outputs) + at(output)]); };
    for (std::size_t i = 0; i < weights_.size(); ++i) {
        if (weights_[i] == 0) continue;
        const Real b = target(i, output), y = y_of(i);
        Real z = 0, size = std::abs(b);
        each_entry(i, [&](std::size_t j, Real a) {
            z += a * coordinates_[j].x;
            size += std::abs(a * coordinates_[j].x);
            coordinates_[j].u += weights_[i] / total_ * y * a;
        });
        const Real loss = formulas_.value(z, b), step = prediction_rounding * size;
        losses += weights_[i] / total_ * loss;
        const Real either_side = std::max(formulas_.value(z - step, b), formulas_.value(z + step, b));
        found.rounding += weights_[i] / total_ * std::max<Real>(either_side - loss, 0);
        const Real slack = rounding * std::max<Real>(1, std::abs(y));
        outside += y < formulas_.lower(b) - slack || y > formulas_.upper(b) + slack ? 1 : 0;
    }
    if (outside > 0) {
        object(fmt::format("{} dual variables lie outside the domain of the {} loss", outside, model_.loss.name()));
    }
    const Real scale = dual_scale();
    for (std::size_t i = 0; i < weights_.size(); ++i) {
        if (weights_[i] == 0) continue;
        const Real b = target(i, output);
        const Real y = std::clamp(scale * y_of(i), formulas_.lower(b), formulas_.upper(b));
        conjugates += weights_[i] / total_ * formulas_.conjugate(y, b);
    }
    Real penalties = 0, supports = 0;
    for (const Coordinate &c : coordinates_) {
        penalties += c.penalty();
        supports += c.conjugate(scale);
    }
    found.primal = losses + penalties;
    found.dual = outside > 0 ? -endless : -conjugates - supports;
    found.gap = found.primal - found.dual;
    if (found.gap < 0 && -found.gap <= found.rounding) found.gap = 0; // a gap is not negative but for rounding
    const Real size = std::max(std::abs(found.primal), std::abs(found.dual));
    found.relative_gap = found.gap == 0 ? 0 : (std::isfinite(size) ? found.gap / size : endless);
    return found;
}

void compare(const char *what, double stated, Real found, Real allowed, const std::string &where,
             std::vector<std::string> &objections) {
    if (std::isinf(stated) && std::isinf(found)) return;
    if (std::abs(Real(stated) - found) <= allowed) return;
    objections.push_back(
        fmt::format("the model states a {} of {}{}, but it is {}", what, stated, where, static_cast<double>(found)));
}

} // namespace

Verification verify(const Model &model, const Dataset &data, const std::vector<double> &factors,
                    const std::vector<double> &dual, double tolerance) {
    Verification result;
    Verifier verifier(model, data, factors, dual, result);
    for (std::int64_t k = 0; k < model.outputs; ++k) {
        const VerifiedOutput found = verifier.check(k);
        const Certificate &stated = model.certificates[at(k)];
        const Real size = std::max(std::abs(found.primal), std::isfinite(found.dual) ? std::abs(found.dual) : 0);
        const std::string where = model.outputs > 1 ? fmt::format(" for label {}", model.labels[at(k)]) : "";
        const Real allowed = agreement * size + found.rounding;
        compare("primal", stated.primal, found.primal, allowed, where, result.objections);
        compare("dual", stated.dual, found.dual, allowed, where, result.objections);
        compare("gap", stated.gap, found.gap, allowed, where, result.objections);
        if (!(found.gap <= (tolerance + rounding) * size + found.rounding)) {
            result.objections.push_back(fmt::format("the relative gap{} is {:.3g}, above the tolerance {}", where,
                                                    static_cast<double>(found.relative_gap), tolerance));
        }
        result.worst_relative_gap = std::max(result.worst_relative_gap, static_cast<double>(found.relative_gap));
        result.outputs.push_back(found);
    }
    return result;
}

} // namespace spdc::cli
