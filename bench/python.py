"""Ours against scikit-learn's solvers, at equal certified accuracy.

    python bench/python.py [--gap 1e-4] [--limit 60] [--only NAME] [DATA_DIR]
    python bench/python.py --overhead [--only NAME] [DATA_DIR]

Every fit must bring the objective within the relative gap of the optimum, as proved by the lower bound of a much tighter run of ours.
Our tolerance is that gap. scikit-learn's tolerances mean other things, so each of its solvers gets the largest of 1e-1, 1e-2, ... 1e-12 that
is enough; only that fit's seconds of one core count (best of several when quick; OMP_NUM_THREADS and OPENBLAS_NUM_THREADS must be 1). A
solver that needs more than --limit seconds is given up.
DATA_DIR (default ../shared/data) may lack files; their rows are left out.

--overhead: what LogisticRegression().fit takes beyond the three calls of the library that it makes (data set, problem, solve), beyond the
last of them alone, and beyond result_.seconds, whose clock starts with the look at the entries. Best of thirty. Sparse matrices are also fitted
as copies, whose entries the library looks at; it knows those it has read.
"""

import argparse
import pathlib
import time
import warnings

import numpy as np
import scipy.sparse
import sklearn.datasets
import sklearn.linear_model as lm
import sklearn.preprocessing
import sklearn.svm as svm

import spdc
from spdc import _core as core

warnings.simplefilter("ignore")


def margins(model, X, y):
    return np.where(y == model.classes_[1], 1, -1) * model.decision_function(X)


def half_square(w):
    return 0.5 * float(np.sum(np.square(w)))


def logistic(model, X, y):
    return np.logaddexp(0, -margins(model, X, y)).sum() + half_square(model.coef_)


def hinge(model, X, y):
    return np.maximum(0, 1 - margins(model, X, y)).sum() + half_square(model.coef_) + half_square(model.intercept_)


def squared_hinge(model, X, y):
    losses = np.maximum(0, 1 - margins(model, X, y)) ** 2
    return losses.sum() + half_square(model.coef_) + half_square(model.intercept_)


def ridge(model, X, y):
    return np.sum((y - model.predict(X)) ** 2) + np.sum(model.coef_**2)


def lasso(model, X, y):
    return half_square(y - model.predict(X)) / len(y) + model.alpha * np.abs(model.coef_).sum()


def logistic_twins(X):
    for solver in ("lbfgs", "newton-cg", "newton-cholesky", "saga"):
        if solver == "newton-cholesky" and X.shape[1] > 2000:
            continue  # a dense matrix of features x features
        yield solver, lambda tol, solver=solver: lm.LogisticRegression(solver=solver, tol=tol, max_iter=10**5)


def svc_twins(loss, X):
    for dual in (True, False):
        if loss == "squared_hinge" or dual:
            yield f"liblinear, {'dual' if dual else 'primal'}", lambda tol, dual=dual: svm.LinearSVC(
                loss=loss, dual=dual, tol=tol, max_iter=10**5
            )


def ridge_twins(X):
    for solver in ("auto", "sparse_cg", "sag"):
        yield solver, lambda tol, solver=solver: lm.Ridge(solver=solver, tol=tol)


MODELS = {
    "LogisticRegression()": (spdc.LogisticRegression, {}, logistic, logistic_twins, "labels"),
    "LinearSVC()": (spdc.LinearSVC, {}, squared_hinge, lambda X: svc_twins("squared_hinge", X), "labels"),
    "LinearSVC(loss='hinge')": (spdc.LinearSVC, {"loss": "hinge"}, hinge, lambda X: svc_twins("hinge", X), "labels"),
    "Ridge()": (spdc.Ridge, {}, ridge, ridge_twins, "numbers"),
    "Lasso(alpha=max/20)": (
        spdc.Lasso,
        {"alpha": None},
        lasso,
        lambda X: [("coordinate descent", lambda tol: lm.Lasso(tol=tol, max_iter=10**5))],
        "numbers",
    ),
}


def datasets(folder):
    """Name, kind of targets, X, y."""
    scale = sklearn.preprocessing.StandardScaler().fit_transform
    X, y = sklearn.datasets.load_breast_cancer(return_X_y=True)
    yield "breast_cancer", "labels", scale(X), y
    X, y = sklearn.datasets.load_digits(return_X_y=True)
    yield "digits, even or odd", "labels", X / 16, y % 2
    X, y = sklearn.datasets.load_diabetes(return_X_y=True)
    yield "diabetes", "numbers", scale(X), y
    files = {
        "a9a": ("a9a.xz", "labels"),
        "rcv1": ("rcv1v2_subsets.binary.xz", "labels"),
        "news20": ("news20_bigram.binary.xz", "labels"),
        "covtype": ("covtype.libsvm.binary.scale.xz", "labels"),
        "cadata": ("cadata.xz", "numbers"),
    }
    for name, (file, kind) in files.items():
        path = folder / file
        if path.exists():
            X, y = spdc.read(path)
            if kind == "numbers":
                X, y = scale(X.toarray()), y / np.std(y)
            elif len(np.unique(y)) > 2:
                y = np.where(y == y.max(), 1, 0)
            yield name, kind, X, y


def seconds(make, X, y):
    """The model, and the best time of a third of a second of fits: of the processor, which others on the machine lengthen least."""
    best, spent = np.inf, 0.0
    while spent < 0.3:
        start = time.process_time()
        model = make().fit(X, y)
        best = min(best, time.process_time() - start)
        spent += time.process_time() - start
    return model, best


def overhead(name, X, y):
    inside, last = 0.0, 0.0

    def timed(function):
        def call(*arguments, **options):
            nonlocal inside, last
            start = time.perf_counter()
            result = function(*arguments, **options)
            last = time.perf_counter() - start
            inside += last
            return result

        return call

    calls = [(core, "csr"), (core, "dense"), (core, "job"), (core.Job, "solve")]
    originals = [getattr(owner, attribute) for owner, attribute in calls]
    for (owner, attribute), function in zip(calls, originals):
        setattr(owner, attribute, timed(function))
    times = []
    for _ in range(30):
        inside, start = 0.0, time.perf_counter()
        model = spdc.LogisticRegression().fit(X, y)
        whole = time.perf_counter() - start
        times.append((whole, whole - inside, whole - last, whole - model.result_.seconds))
    for (owner, attribute), function in zip(calls, originals):
        setattr(owner, attribute, function)
    print(f"| {name} | " + " | ".join(f"{1e3 * time:.2f}" for time in np.min(times, axis=0)) + " |", flush=True)


def cheapest(twin, X, y, objective, enough, limit, set_alpha):
    """Seconds of the loosest tolerance that is enough, or None."""
    for exponent in range(1, 13):
        model, spent = seconds(lambda: set_alpha(twin(10.0**-exponent)), X, y)
        if objective(model, X, y) <= enough:
            return spent
        if spent > limit:
            return None
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=pathlib.Path, default=pathlib.Path("../shared/data"))
    parser.add_argument("--only", help="this data set alone")
    parser.add_argument("--gap", type=float, default=1e-4)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--overhead", action="store_true")
    arguments = parser.parse_args()
    if arguments.overhead:
        print("| data | fit, ms | beyond the library's calls, ms | beyond its solve, ms | beyond result_.seconds, ms |\n|---|---:|---:|---:|---:|")
        for name, kind, X, y in datasets(arguments.data):
            if kind == "labels" and arguments.only in (None, name):
                overhead(name, X, y)
                if scipy.sparse.issparse(X):
                    overhead(f"{name}, a copy", X.copy(), y)
        return
    print("| data | model | ours, s | gap proved | scikit-learn's best, s | its solver | times faster |")
    print("|---|---|---:|---:|---:|---|---:|")
    for name, kind, X, y in datasets(arguments.data):
        if arguments.only not in (None, name):
            continue
        for label, (Model, parameters, objective, twins, wants) in MODELS.items():
            if wants == kind:
                row(name, label, Model, parameters, objective, twins, X, y, arguments)


def row(name, label, Model, parameters, objective, twins, X, y, arguments):
    alpha = {}
    if "alpha" in parameters:
        alpha = {"alpha": float(np.max(np.abs(X.T @ (y - y.mean())))) / len(y) / 20}
    tight = Model(**{**parameters, **alpha}, tol=arguments.gap / 1000, max_iter=10**5).fit(X, y)
    bound = objective(tight, X, y) - tight.dual_gap_
    enough = bound + arguments.gap * abs(bound)
    ours, spent = seconds(lambda: Model(**{**parameters, **alpha}, tol=arguments.gap, max_iter=10**5), X, y)
    assert objective(ours, X, y) <= enough * (1 + 1e-9)
    times = {
        solver: cheapest(twin, X, y, objective, enough, arguments.limit, lambda model: model.set_params(**alpha))
        for solver, twin in twins(X)
    }
    reached = {solver: t for solver, t in times.items() if t is not None}
    solver = min(reached, key=reached.get) if reached else "none"
    theirs = f"{reached[solver]:.3g}" if reached else f"> {arguments.limit:g}"
    factor = f"{reached[solver] / spent:.2g}" if reached else f"> {arguments.limit / spent:.0f}"
    print(f"| {name} | {label} | {spent:.3g} | {ours.relative_gap_:.1e} | {theirs} | {solver} | {factor} |", flush=True)


if __name__ == "__main__":
    main()
