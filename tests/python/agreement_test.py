"""At tol=1e-8 every estimator reaches the objective of scikit-learn's most exact solver, and its lower bound lies below that."""

import warnings

import numpy as np
import pytest
import scipy.sparse
import sklearn.linear_model as lm
import sklearn.svm as svm
from conftest import targets_for

import spdc

SHAPES = ["dense", "sparse", "wide", "tall", "unscaled", "imbalanced"]


def data_of(shape, name):
    rng = np.random.default_rng(11)
    rows, columns = {"wide": (40, 150), "tall": (600, 4), "sparse": (150, 60)}.get(shape, (120, 12))
    X = rng.normal(size=(rows, columns))
    if shape == "sparse":
        X = scipy.sparse.csr_matrix(X * (rng.random(X.shape) < 0.15))
    y = targets_for(name, X, rng)
    if shape == "unscaled":
        X = X * np.logspace(-2, 2, columns) + 3
    if shape == "imbalanced" and y.dtype.kind == "U":
        keep = np.flatnonzero((y == "no") | (np.arange(rows) % 8 == 0))
        X, y = X[keep], y[keep]
    elif shape == "imbalanced":
        y = np.where(np.arange(rows) % 15 == 0, 4 * np.abs(y), y)  # a few rows far from the others
        y = np.round(y) if name == "PoissonRegressor" else y
    return X, y


def linear(X, model):
    return np.asarray(X @ np.ravel(model.coef_)).ravel() + np.ravel(model.intercept_)[0]


def l1_norm(w):
    return np.abs(w).sum()


def half_square(w):
    return 0.5 * np.sum(np.square(w))


def signs(model, y):
    return np.where(y == model.classes_[1], 1.0, -1.0)


# ---- scikit-learn's objectives, written from its documentation


def logistic(model, X, y, C=1.0, l1_ratio=0.0):
    w = model.coef_
    penalty = l1_ratio * l1_norm(w) + (1 - l1_ratio) * half_square(w)
    return C * np.logaddexp(0, -signs(model, y) * linear(X, model)).sum() + penalty


def svc(model, X, y, C=1.0, power=2, scaling=1.0, penalty=half_square):
    margins = np.maximum(0, 1 - signs(model, y) * linear(X, model)) ** power
    return C * margins.sum() + penalty(model.coef_) + penalty(np.ravel(model.intercept_) / scaling)


def svr(model, X, y, C=1.0, epsilon=0.0, power=1):
    losses = np.maximum(0, np.abs(y - linear(X, model)) - epsilon) ** power
    return C * losses.sum() + half_square(model.coef_) + half_square(model.intercept_)


def ridge(model, X, y, alpha=1.0):
    targets = signs(model, y) if hasattr(model, "classes_") else y
    return np.sum((targets - linear(X, model)) ** 2) + alpha * np.sum(model.coef_**2)


def elastic_net(model, X, y, alpha, l1_ratio=1.0):
    w = model.coef_
    squares = half_square(y - linear(X, model)) / len(y)
    return squares + alpha * (l1_ratio * l1_norm(w) + (1 - l1_ratio) * half_square(w))


def huber(model, X, y, epsilon=1.35, alpha=1e-4):
    z = np.abs(y - linear(X, model)) / model.scale_
    h = np.where(z < epsilon, z**2, 2 * epsilon * z - epsilon**2)
    return np.sum(model.scale_ * (1 + h)) + alpha * np.sum(model.coef_**2)


def quantile(model, X, y, q, alpha):
    r = y - linear(X, model)
    return np.mean(np.maximum(q * r, (q - 1) * r)) + alpha * l1_norm(model.coef_)


def poisson(model, X, y, alpha=1.0):
    z = linear(X, model)
    return np.mean(np.exp(z) - y * z) + alpha * half_square(model.coef_)


CASES = {
    "logistic": ("LogisticRegression", {}, lm.LogisticRegression, {"tol": 1e-12, "max_iter": 100000}, logistic, {}),
    "logistic, small C": (
        "LogisticRegression",
        {"C": 0.01},
        lm.LogisticRegression,
        {"C": 0.01, "tol": 1e-12, "max_iter": 100000},
        logistic,
        {"C": 0.01},
    ),
    "logistic, l1": (
        "LogisticRegression",
        {"l1_ratio": 1.0},
        lm.LogisticRegression,
        {"l1_ratio": 1.0, "solver": "saga", "tol": 1e-9, "max_iter": 20000},
        logistic,
        {"l1_ratio": 1.0},
    ),
    "squared hinge": ("LinearSVC", {}, svm.LinearSVC, {"tol": 1e-12, "max_iter": 50000}, svc, {}),
    "hinge": (
        "LinearSVC",
        {"loss": "hinge"},
        svm.LinearSVC,
        {"loss": "hinge", "tol": 1e-9, "max_iter": 50000},
        svc,
        {"power": 1},
    ),
    "squared hinge, scaled intercept": (
        "LinearSVC",
        {"intercept_scaling": 10.0},
        svm.LinearSVC,
        {"intercept_scaling": 10.0, "tol": 1e-12, "max_iter": 50000},
        svc,
        {"scaling": 10.0},
    ),
    "squared hinge, l1": (
        "LinearSVC",
        {"penalty": "l1"},
        svm.LinearSVC,
        {"penalty": "l1", "dual": False, "tol": 1e-10, "max_iter": 50000},
        svc,
        {"penalty": l1_norm},
    ),
    "svr": ("LinearSVR", {"epsilon": 0.1}, svm.LinearSVR, {"epsilon": 0.1, "tol": 1e-10, "max_iter": 50000}, svr, {"epsilon": 0.1}),
    "squared svr": (
        "LinearSVR",
        {"loss": "squared_epsilon_insensitive"},
        svm.LinearSVR,
        {"loss": "squared_epsilon_insensitive", "tol": 1e-12, "max_iter": 50000},
        svr,
        {"power": 2},
    ),
    "ridge": ("Ridge", {}, lm.Ridge, {"tol": 1e-12}, ridge, {}),
    "ridge, small alpha": ("Ridge", {"alpha": 1e-3}, lm.Ridge, {"alpha": 1e-3, "tol": 1e-12}, ridge, {"alpha": 1e-3}),
    "ridge classifier": ("RidgeClassifier", {}, lm.RidgeClassifier, {"tol": 1e-12}, ridge, {}),
    "lasso": ("Lasso", {"alpha": 0.1}, lm.Lasso, {"alpha": 0.1, "tol": 1e-12, "max_iter": 100000}, elastic_net, {"alpha": 0.1}),
    "elastic net": (
        "ElasticNet",
        {"alpha": 0.1},
        lm.ElasticNet,
        {"alpha": 0.1, "tol": 1e-12, "max_iter": 100000},
        elastic_net,
        {"alpha": 0.1, "l1_ratio": 0.5},
    ),
    "huber": ("HuberRegressor", {}, lm.HuberRegressor, {"tol": 1e-9, "max_iter": 5000}, huber, {}),
    "quantile": (
        "QuantileRegressor",
        {"quantile": 0.8, "alpha": 0.05},
        lm.QuantileRegressor,
        {"quantile": 0.8, "alpha": 0.05},
        quantile,
        {"q": 0.8, "alpha": 0.05},
    ),
    "poisson": ("PoissonRegressor", {}, lm.PoissonRegressor, {"solver": "newton-cholesky", "tol": 1e-12}, poisson, {}),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", CASES)
def test_objective_agrees(case, shape):
    name, parameters, Twin, exact, objective, known = CASES[case]
    X, y = data_of(shape, name)
    if Twin is lm.LogisticRegression and "solver" not in exact:
        exact = {**exact, "solver": "newton-cg" if shape == "sparse" else "newton-cholesky"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = Twin(**exact).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = getattr(spdc, name)(tol=1e-8, max_iter=100000, **parameters).fit(X, y)
    value, reference = objective(ours, X, y, **known), objective(theirs, X, y, **known)
    size = abs(reference)
    assert value <= reference + 1e-6 * size
    assert ours.relative_gap_ <= 1e-8
    if name != "HuberRegressor":  # whose bound holds at its scale only
        assert value - ours.dual_gap_ <= reference + 1e-9 * size


@pytest.mark.parametrize("parameters", [{"solver": "liblinear"}, {"solver": "liblinear", "intercept_scaling": 5.0}])
def test_liblinear_penalises_the_intercept_of_logistic_regression(parameters):
    X, y = data_of("imbalanced", "LogisticRegression")
    scaling = parameters.get("intercept_scaling", 1.0)

    def objective(model):
        return logistic(model, X, y) + half_square(model.intercept_ / scaling)

    theirs = lm.LogisticRegression(tol=1e-12, max_iter=100000, **parameters).fit(X, y)
    ours = spdc.LogisticRegression(tol=1e-10, **parameters).fit(X, y)
    assert objective(ours) == pytest.approx(objective(theirs), rel=1e-8)
    free = spdc.LogisticRegression(tol=1e-10).fit(X, y)
    assert objective(free) > objective(ours) + 1e-6


def test_free_intercept_of_svms(rng):
    X = rng.normal(size=(100, 3)) + 5
    y = np.where(X[:, 0] > 5.3, 1, 0)
    free = spdc.LinearSVC(penalize_intercept=False, tol=1e-8).fit(X, y)
    wide = spdc.LinearSVC(intercept_scaling=1e4, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(free.coef_, wide.coef_, atol=1e-3)
    held = spdc.LinearSVC(tol=1e-8).fit(X, y)
    assert svc(free, X, y) - half_square(free.intercept_) < svc(held, X, y) - half_square(held.intercept_)
    target = 3 * X[:, 0] + 100
    assert spdc.LinearSVR(penalize_intercept=False, C=10.0).fit(X, target).intercept_ == pytest.approx(100, abs=2)


@pytest.mark.parametrize("positive", ["Ridge", "Lasso", "ElasticNet"])
def test_positive(positive):
    X, y = data_of("dense", positive)
    ours = getattr(spdc, positive)(alpha=0.1, positive=True, tol=1e-8).fit(X, y)
    theirs = getattr(lm, positive)(alpha=0.1, positive=True, tol=1e-12).fit(X, y)
    assert ours.coef_.min() >= 0 and ours.relative_gap_ <= 1e-8
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


def test_no_penalty_at_all():
    X, y = data_of("dense", "Ridge")
    ours = spdc.Ridge(alpha=0.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, lm.LinearRegression().fit(X, y).coef_, atol=1e-3)
    X, y = data_of("imbalanced", "LogisticRegression")
    ours = spdc.LogisticRegression(C=np.inf, tol=1e-6, max_iter=100000).fit(X, y)
    theirs = lm.LogisticRegression(C=np.inf, tol=1e-10, max_iter=100000).fit(X, y)
    assert logistic(ours, X, y) <= logistic(theirs, X, y) * (1 + 1e-5)
    same = spdc.LogisticRegression(penalty=None, tol=1e-6, max_iter=100000).fit(X, y)
    assert np.array_equal(same.coef_, ours.coef_) and same.C == 1.0
    assert logistic(ours, X, y, C=1.0) - half_square(ours.coef_) <= logistic(theirs, X, y) - half_square(theirs.coef_) + ours.dual_gap_
    X, y = data_of("dense", "PoissonRegressor")
    ours = spdc.PoissonRegressor(alpha=0, tol=1e-8, max_iter=100000).fit(X, y)
    theirs = lm.PoissonRegressor(alpha=0, solver="newton-cholesky", tol=1e-10).fit(X, y)
    assert poisson(ours, X, y, 0) == pytest.approx(poisson(theirs, X, y, 0), rel=1e-6)
