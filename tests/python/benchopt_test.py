"""The solver files of bench/benchopt, run as benchopt runs them, against minimal objectives."""

import importlib.util
import pathlib
import sys
import types

import numpy as np
import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "bench" / "benchopt"


def sums(beta, X, y, fit_intercept):
    w, c = (beta[:-1], beta[-1]) if fit_intercept else (beta, 0.0)
    return w, X @ w + c


def logreg_l2(beta, X, y, lmbd, fit_intercept):
    w, z = sums(beta, X, y, fit_intercept)
    return np.logaddexp(0, -y * z).sum() + lmbd * w @ w / 2


def ridge(beta, X, y, lmbd, fit_intercept):
    w, z = sums(beta, X, y, fit_intercept)
    return np.sum((y - z) ** 2) / 2 + lmbd * w @ w / 2


def lasso(beta, X, y, lmbd, fit_intercept):
    w, z = sums(beta, X, y, fit_intercept)
    return np.sum((y - z) ** 2) / 2 + lmbd * np.abs(w).sum()


def elastic_net(beta, X, y, lmbda, l1_ratio, fit_intercept):
    w, z = sums(beta, X, y, fit_intercept)
    return np.sum((y - z) ** 2) / (2 * len(y)) + lmbda * (l1_ratio * np.abs(w).sum() + (1 - l1_ratio) * w @ w / 2)


def linear_svm(beta, X, y, C):
    return C * np.maximum(0, 1 - y * (X @ beta)).sum() + beta @ beta / 2


CASES = [
    (logreg_l2, {"lmbd": 1.0}, "labels"),
    (ridge, {"lmbd": 1.0}, "numbers"),
    (lasso, {"lmbd": 5.0}, "numbers"),
    (elastic_net, {"lmbda": 0.1, "l1_ratio": 0.5}, "numbers"),
    (linear_svm, {"C": 0.1}, "labels"),
]


class BaseSolver:
    """As much of benchopt's as the files use."""

    sampling_strategy = None


def load(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "benchopt", types.SimpleNamespace(BaseSolver=BaseSolver))
    spec = importlib.util.spec_from_file_location(f"benchopt_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Solver()


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("objective, parameters, targets", CASES)
def test_reaches_a_point_that_no_step_improves(objective, parameters, targets, fit_intercept, rng, monkeypatch):
    name = objective.__name__
    if name == "linear_svm" and fit_intercept:
        pytest.skip("that benchmark has none")
    solver = load(name, monkeypatch)
    assert solver.sampling_strategy == "callback"
    solver.solver = solver.parameters["solver"][0]
    X = rng.normal(size=(100, 8))
    y = X @ rng.normal(size=8) + rng.normal(size=100) + 0.5
    y = np.sign(y) if targets == "labels" else y
    arguments = {"X": X, "y": y, **parameters}
    if name != "linear_svm":
        arguments["fit_intercept"] = fit_intercept
    solver.set_objective(**arguments)
    values = []

    def cb():
        values.append(objective(solver.get_result()["beta"], **arguments))
        return len(values) < 300

    solver.run(cb)
    beta = solver.get_result()["beta"]
    assert beta.shape == (8 + fit_intercept,) and len(values) >= 1
    best = objective(beta, **arguments)
    assert best <= min(values) * (1 + 1e-12)
    for _ in range(300):  # convex: a point that no small step improves is the minimiser
        step = rng.normal(size=beta.shape) * 10 ** rng.uniform(-4, -1)
        assert objective(beta + step, **arguments) >= best * (1 - 1e-7)
