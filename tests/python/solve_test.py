"""spdc.solve, spdc.verify, spdc.read and Result, through the public door."""

import math
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import scipy.sparse

import spdc

REGRESSION = {"squared", "absolute", "huber", "epsilon_insensitive", "squared_epsilon_insensitive", "quantile"}


def objective(X, y, result):
    """The logistic objective, written again."""
    z = y * (X @ result.coef + result.intercept)
    return np.mean(np.logaddexp(0, -z)) + result.problem["l2"] / 2 * np.sum(result.coef**2)


@pytest.mark.parametrize("loss", spdc.LOSSES)
@pytest.mark.parametrize("penalty", [{"l2": 0.05}, {"l1": 0.02}, {"l1": 0.02, "l2": 0.05}])
def test_every_loss_is_certified_and_verified(loss, penalty, rng):
    X = rng.normal(size=(60, 5))
    y = rng.poisson(1.0, 60) if loss == "poisson" else X[:, 0] + rng.normal(size=60)
    if loss not in REGRESSION | {"poisson"}:
        y = np.sign(y)
    result = spdc.solve(X, y, loss=loss, intercept=True, tolerance=1e-6, **penalty)
    assert result.converged and result.stop_reason == "gap_reached" and result.relative_gap <= 1e-6
    assert spdc.verify(X, y, result).certified


@pytest.mark.parametrize("solver", spdc.SOLVERS)
def test_every_solver_is_reachable(solver, labelled):
    X, y = labelled
    penalty = {"l1": 0.02} if solver == "working_set" else {"l2": 0.05}
    result = spdc.solve(X, y, loss="logistic", solver=solver, tolerance=1e-6, **penalty)
    assert result.converged
    assert solver == "auto" or result.solver == solver


def test_every_solver_finds_the_optimum_of_scipys_lbfgs(labelled):
    X, y = labelled

    def value_and_gradient(x):
        z = y * (X @ x)
        slopes = -y / (1 + np.exp(z)) / len(y)
        return np.mean(np.logaddexp(0, -z)) + 0.025 * x @ x, X.T @ slopes + 0.05 * x

    theirs = scipy.optimize.minimize(
        value_and_gradient, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-12}
    )
    for solver in set(spdc.SOLVERS) - {"working_set"}:
        ours = spdc.solve(X, y, loss="logistic", l2=0.05, solver=solver, tolerance=1e-8)
        assert ours.dual <= theirs.fun * (1 + 1e-12), solver
        assert ours.primal == pytest.approx(theirs.fun, rel=2e-8), solver


def test_the_objective_is_the_documented_one(labelled):
    X, y = labelled
    result = spdc.solve(X, y, l2=0.03, intercept=True, tolerance=1e-10)
    assert result.primal == pytest.approx(objective(X, y, result), rel=1e-12)
    better = [objective(X, y, spdc.solve(X, y, l2=0.03, intercept=True, tolerance=t)) for t in (1e-2, 1e-6)]
    assert result.dual <= min(better)


def test_default_l2_is_one_over_the_total_weight(labelled):
    X, y = labelled
    assert spdc.solve(X, y).problem["l2"] == 1 / 120
    assert spdc.solve(X, y, weights=np.full(120, 2.0)).problem["l2"] == 1 / 240
    assert spdc.solve(X, y, l1=0.1).problem["l2"] == 0


def test_l1_as_a_share_of_the_largest(labelled):
    X, y = labelled
    assert np.count_nonzero(spdc.solve(X, y, l1="1.01max", intercept=True).coef) == 0
    assert np.count_nonzero(spdc.solve(X, y, l1="0.5max", intercept=True).coef) > 0
    with pytest.raises(ValueError, match="0.1max"):
        spdc.solve(X, y, l1="much")


def test_weights_are_repeated_rows(labelled, rng):
    X, y = labelled
    weights = rng.integers(0, 4, 120)
    one = spdc.solve(X, y, l2=0.1, weights=weights, intercept=True, tolerance=1e-12)
    two = spdc.solve(np.repeat(X, weights, axis=0), np.repeat(y, weights), l2=0.1, intercept=True, tolerance=1e-12)
    np.testing.assert_allclose(one.coef, two.coef, rtol=1e-5, atol=1e-7)
    assert one.primal == pytest.approx(two.primal, rel=1e-11)
    assert len(one.dual_variables) == 120 and np.all(one.dual_variables[weights == 0] == 0)


def test_class_weights(labelled):
    X, y = labelled
    by_class = spdc.solve(X, y, l2=0.1, class_weight={1: 3.0}, tolerance=1e-10)
    by_row = spdc.solve(X, y, l2=0.1, weights=np.where(y > 0, 3.0, 1.0), tolerance=1e-10)
    assert by_class.primal == pytest.approx(by_row.primal, rel=1e-9)
    assert spdc.verify(X, y, by_class).certified
    names = np.where(y > 0, "b", "a")
    assert spdc.solve(X, names, l2=0.1, class_weight={"b": 3.0}, tolerance=1e-10).primal == by_class.primal
    assert spdc.verify(X, y, spdc.solve(X, y, class_weight="balanced")).certified
    with pytest.raises(ValueError, match="class_weight"):
        spdc.solve(X, y, class_weight="fair")


def test_bounds_and_penalty_factors(labelled):
    X, y = labelled
    bounded = spdc.solve(X, y, l2=0.01, lower=0, upper=0.3)
    assert bounded.coef.min() >= 0 and bounded.coef.max() <= 0.3
    factors = np.array([0, 1, 1, 1, 1, 100.0])
    result = spdc.solve(X, y, l2=0.1, penalty_factors=factors, tolerance=1e-8)
    assert spdc.verify(X, y, result).certified
    assert abs(result.coef[5]) < abs(spdc.solve(X, y, l2=0.1).coef[5]) + 1e-3


def test_three_labels_are_one_against_the_rest(rng):
    X = rng.normal(size=(90, 4))
    y = np.array(["ant", "bee", "cow"])[np.argmax(X[:, :3], axis=1)]
    result = spdc.solve(X, y, intercept=True, tolerance=1e-8)
    assert result.coef.shape == (3, 4) and result.intercept.shape == (3,) and result.dual_variables.shape == (90, 3)
    assert list(result.classes) == ["ant", "bee", "cow"] and len(result.certificates) == 3
    assert result.relative_gap == max(certificate["relative_gap"] for certificate in result.certificates)
    assert spdc.verify(X, y, result).certified
    alone = spdc.solve(X, y == "bee", l2=result.problem["l2"], intercept=True, tolerance=1e-8)
    np.testing.assert_allclose(result.coef[1], alone.coef, atol=1e-4)


def test_verify_notices_what_is_wrong(labelled):
    X, y = labelled
    result = spdc.solve(X, y, l2=0.05, tolerance=1e-6)
    result.coef = result.coef * 1.1
    found = spdc.verify(X, y, result)
    assert not found.certified and any("primal" in sentence for sentence in found.objections)
    assert found.relative_gap > 1e-4
    good = spdc.solve(X, y, l2=0.05, tolerance=1e-3, solver="spdc")
    assert not spdc.verify(X, y, good, tolerance=1e-12).certified


def test_start(labelled):
    X, y = labelled
    first = spdc.solve(X, y, l2=0.01, intercept=True, tolerance=1e-8)
    again = spdc.solve(X, y, l2=0.01, intercept=True, tolerance=1e-7, start=first)
    assert again.passes == 0 and again.converged
    weights = spdc.solve(X, y, l2=0.01, intercept=True, tolerance=1e-6, start=(first.coef, first.intercept))
    assert weights.trace["primal"][0] == pytest.approx(first.primal)
    part = spdc.solve(X[:50], y[:50], l2=0.01, intercept=True, start=first)  # other rows
    assert part.converged
    with pytest.raises(ValueError, match="start: 3 weights, expected 6"):
        spdc.solve(X, y, start=np.zeros(3))


def test_trace_becomes_a_frame(labelled):
    X, y = labelled
    result = spdc.solve(X, y, solver="spdc", tolerance=1e-8)
    frame = pd.DataFrame(result.trace)
    assert {"passes", "seconds", "primal", "dual", "gap", "relative_gap", "solver"} <= set(frame.columns)
    assert frame["relative_gap"].iloc[-1] == result.relative_gap and frame["passes"].is_monotonic_increasing
    assert (frame["solver"] == "spdc").all()


def test_representations(labelled):
    X, y = labelled
    result = spdc.solve(X, y, l2=0.05, intercept=True)
    text, page = repr(result), result._repr_html_()
    assert "gap_reached" in text and "relative gap" in text and "logistic loss, l2=0.05" in text
    assert page.startswith("<table>") and "gap_reached" in page
    copy = pickle.loads(pickle.dumps(result))
    assert repr(copy) == text and np.array_equal(copy.coef, result.coef)


def test_plot(labelled):
    import matplotlib

    matplotlib.use("Agg")
    X, y = labelled
    left, right = spdc.solve(X, y, solver="spdc").plot()
    assert left.get_xlabel() == "passes" and right.get_xlabel() == "seconds" and left.get_yscale() == "log"
    assert len(left.lines) == 2


def test_limits_and_reasons(labelled):
    X, y = labelled
    short = spdc.solve(X, y, solver="spdc", l2=1e-6, tolerance=1e-12, max_passes=2)
    assert short.stop_reason == "pass_limit" and not short.converged and "max-passes" in short.message
    assert spdc.solve(X, y, solver="spdc", l2=1e-6, tolerance=1e-14, max_seconds=0.01).stop_reason == "time_limit"
    assert spdc.solve([[1.0], [-1.0]], [1, -1], l2=0).stop_reason == "no_minimizer"


def test_same_seed_same_bits(labelled):
    X, y = labelled
    runs = [spdc.solve(X, y, solver="spdc_fast", seed=5, threads=threads, tolerance=1e-6) for threads in (1, 1, 2, 3)]
    assert all(np.array_equal(run.coef, runs[0].coef) for run in runs)
    assert not np.array_equal(spdc.solve(X, y, solver="spdc_fast", seed=6, tolerance=1e-6).coef, runs[0].coef)


@pytest.mark.parametrize(
    "call, kind, words",
    [
        ({"loss": "lgistic"}, ValueError, "did you mean 'logistic'"),
        ({"solver": "spcd"}, ValueError, "did you mean 'spdc'"),
        ({"l2": -1}, ValueError, "l2"),
        ({"tolerance": 0}, ValueError, "tolerance"),
        ({"threads": 0}, ValueError, "threads = 0"),
        ({"solver": "newton", "l1": 0.1}, NotImplementedError, "l2 penalty"),
        ({"solver": "newton", "copy": False}, NotImplementedError, "copy"),
        ({"solver": "spdc_fast", "omega": -1.0}, ValueError, "omega"),
        ({"solver": "spdc_fast", "batch_size": 3}, ValueError, "batch_size"),
        ({"solver": "spdc", "sampling": "unifrm"}, ValueError, "did you mean 'uniform'"),
        ({"solver": "spdc", "batch_size": "many"}, ValueError, "batch_size = 'many'"),
        ({"delta": 2.0}, ValueError, "delta"),
        ({"omgea": 2.0}, TypeError, "omgea"),
        ({"intercept": "fre"}, ValueError, "did you mean 'free'"),
        ({"copy": "never"}, ValueError, "copy"),
        ({"weights": [1, 2]}, ValueError, "weights has 2 numbers; expected 120"),
        ({"weights": np.full(120, -1.0)}, ValueError, "weight"),
        ({"penalty_factors": [1]}, ValueError, "penalty_factors"),
    ],
)
def test_wrong_calls(call, kind, words, labelled):
    with pytest.raises(kind, match=words):
        spdc.solve(*labelled, **call)


def test_options_of_losses_and_solvers(labelled):
    X, y = labelled
    wide = spdc.solve(X, y, loss="huber", delta=100.0, l2=0.1, tolerance=1e-10)
    squares = spdc.solve(X, y, loss="squared", l2=0.1, tolerance=1e-10)
    np.testing.assert_allclose(wide.coef, squares.coef, atol=1e-4)
    batches = spdc.solve(X, y, solver="spdc", sampling="weighted", batch_size=8, step_scale=0.5)
    assert batches.converged


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_numbers_that_are_not_finite(bad, labelled):
    X, y = labelled
    X = X.copy()
    X[3, 2] = bad
    with pytest.raises(ValueError, match="row 3, column 2.*finite"):
        spdc.solve(X, y)
    with pytest.raises(ValueError, match="row 3.*finite"):
        spdc.solve(scipy.sparse.csr_matrix(X), y)
    y = y.copy()
    y[7] = bad
    with pytest.raises(ValueError, match="finite"):
        spdc.solve(labelled[0], y, loss="squared")


def test_wrong_targets(labelled):
    X, y = labelled
    with pytest.raises(ValueError, match="at least two labels"):
        spdc.solve(X, np.ones(120))
    with pytest.raises(ValueError, match="y has 3 numbers; expected 120"):
        spdc.solve(X, [1, 2, 3])
    with pytest.raises(ValueError, match="targets are text"):
        spdc.solve(X, np.where(y > 0, "a", "b"), loss="squared")
    with pytest.raises(ValueError, match="y is missing"):
        spdc.solve(X)


# ---- files


@pytest.fixture
def file(tmp_path, labelled):
    X, y = labelled
    path = tmp_path / "data.svm"
    rows = [f"{int(b)} " + " ".join(f"{j + 1}:{v:.17g}" for j, v in enumerate(row)) for row, b in zip(X, y)]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_reading(file, labelled):
    X, y = labelled
    data = spdc.read(file)
    assert data.shape == (120, 6) and "120 rows" in repr(data) and data.weights is None
    np.testing.assert_array_equal(data.X.toarray(), X)
    np.testing.assert_array_equal(data.y, y)
    X2, y2 = spdc.load_svmlight(file)
    assert (X2 != data.X).nnz == 0 and np.array_equal(y2, y)
    assert spdc.load_svmlight(str(file), n_features=9)[0].shape == (120, 9)
    assert spdc.load_svmlight(file, dtype=np.float32)[0].dtype == np.float32


def test_solve_takes_files_and_what_was_read(file, labelled):
    X, y = labelled
    expected = spdc.solve(scipy.sparse.csr_matrix(X), y, intercept=True)
    for given in (file, str(file), os.fsencode(file), spdc.read(file)):
        result = spdc.solve(given, intercept=True)
        assert np.array_equal(result.coef, expected.coef) and result.primal == expected.primal
    assert spdc.verify(file, None, expected).certified
    assert spdc.verify(spdc.read(file), y, expected).certified


def test_csv_with_text_labels(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("kind,a,b\nno,1,2\nyes,3,4.5\nno,0,1\n")
    data = spdc.read(path)
    assert data.feature_names == ["a", "b"] and list(data.y) == ["no", "yes", "no"]
    np.testing.assert_array_equal(data.X, [[1, 2], [3, 4.5], [0, 1]])
    assert list(spdc.solve(path).classes) == ["no", "yes"]
    assert list(spdc.read(path, label_column="kind").y) == ["no", "yes", "no"]


def test_views_of_a_file_outlive_it(file):
    X = spdc.read(file).X  # the Data is gone, its memory must not be
    assert np.isfinite(X.data).all() and X.sum() != 0
    assert not X.data.flags.writeable


def test_bad_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.svm"):
        spdc.read(tmp_path / "nowhere.svm")
    bad = tmp_path / "bad.svm"
    bad.write_text("1 1:2 1:3\n")
    with pytest.raises(OSError, match="bad.svm:1:7"):
        spdc.read(bad)
    with pytest.raises(ValueError, match="format"):
        spdc.read(bad, format="xml")


# ---- manners


def test_importing_is_quick_and_needs_no_scikit_learn():
    code = (
        "import numpy, scipy.sparse, time; t = time.perf_counter(); import spdc; t = time.perf_counter() - t; "
        "import sys; assert 'sklearn' not in sys.modules and 'matplotlib' not in sys.modules; assert t < 0.1, t; "
        "spdc.LinearSVC; assert 'sklearn' in sys.modules; assert 'Ridge' in dir(spdc)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=os.sep)


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="SVM"):
        spdc.SVM


def test_verify_refuses_other_data(labelled):
    X, y = labelled
    three = np.arange(len(y)) % 3
    cases = [
        (X, y, X[:, :3], y),
        (X[:, :3], y, X, y),
        (X, three, X, y),
        (X, y, X, three),
        (X, y, X[:50], y[:50]),
        (X[:50], y[:50], X, y),
    ]
    for X1, y1, X2, y2 in cases:
        for intercept in (False, True):
            result = spdc.solve(X1, y1, intercept=intercept)
            with pytest.raises(ValueError, match="verify: the result belongs to other data"):
                spdc.verify(X2, y2, result)
    result = spdc.solve(X, y)
    result.certificates = []
    with pytest.raises(ValueError, match="other data"):
        spdc.verify(X, y, result)


def test_options_of_the_loss_are_kept_and_verified(labelled):
    X, y = labelled
    for loss, option in (("huber", {"delta": 0.3}), ("quantile", {"quantile": 0.8}), ("epsilon_insensitive", {"epsilon": 0.4})):
        result = spdc.solve(X, y, loss=loss, **option)
        assert result.problem["loss_options"] == option and spdc.verify(X, y, result).certified


@pytest.mark.parametrize(
    "argument, value, words",
    [
        ("threads", 2.0, "threads = 2.0; expected an integer"),
        ("threads", 0, "threads = 0; expected an integer from 1"),
        ("seed", -1, "seed = -1; expected an integer from 0"),
        ("seed", "x", "seed = 'x'; expected an integer"),
        ("intercept", 1, "intercept = 1; expected True, False"),
        ("start", (np.zeros(6),), "start is a tuple of 1; expected .coef, intercept."),
        ("l1", "xmax", "l1 = 'xmax'; expected a number, or a share"),
        ("l2", "big", "l2 = 'big'; expected a number"),
        ("lower", None, "lower = None; expected a number"),
        ("loss", None, "loss = None; expected a name"),
        ("solver", 3, "solver = 3; expected a name"),
        ("tolerance", None, "tolerance = None; expected a number"),
        ("presolve", None, "presolve = None; expected 'auto', True or False"),
        ("presolve", "sometimes", "unknown presolve 'sometimes'"),
    ],
)
def test_arguments_of_the_wrong_type_get_a_sentence(argument, value, words, labelled):
    with pytest.raises(ValueError, match=words):
        spdc.solve(*labelled, **{argument: value})


def test_integers_of_numpy_are_integers(labelled):
    result = spdc.solve(*labelled, threads=np.int32(1), seed=np.uint64(2**64 - 1), intercept=np.True_)
    assert result.converged and result.seed == 2**64 - 1 and result.problem["intercept"] == "free"


def test_type_checkers_see_every_name():
    code = "import typing, sklearn.svm; typing.TYPE_CHECKING = True; import spdc; print(sorted(set(spdc.__all__) - set(vars(spdc))))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
