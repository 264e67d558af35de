"""lasso_path and enet_path: scikit-learn's alphas and shapes, and a gap for every fit that bounds what could still be gained."""

import numpy as np
import pytest
import scipy.sparse
import sklearn.linear_model
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning

import spdc
from spdc.estimators import _factors, _paths


@pytest.fixture
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X, y - y.mean()


def objective(X, y, alphas, l1_ratio, coefs):
    losses = np.sum((y[:, None] - X @ coefs) ** 2, axis=0) / (2 * len(y))
    return losses + alphas * (l1_ratio * np.abs(coefs).sum(axis=0) + (1 - l1_ratio) * np.sum(coefs**2, axis=0) / 2)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.3])
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix, lambda X: np.asfortranarray(X)])
def test_path_is_scikit_learns_and_its_gaps_hold(kind, l1_ratio, positive, diabetes):
    X, y = diabetes
    options = {"l1_ratio": l1_ratio, "positive": positive, "eps": 1e-2, "alphas": 30}
    alphas, coefs, gaps, passes = spdc.enet_path(kind(X), y, tol=1e-6, return_n_iter=True, **options)
    twin_alphas, twin, _ = sklearn.linear_model.enet_path(X, y, tol=1e-14, max_iter=10**6, **options)
    np.testing.assert_allclose(alphas, twin_alphas)
    assert coefs.shape == twin.shape == (10, 30) and len(passes) == 30 and min(passes) >= 1
    assert np.all(np.abs(coefs[:, 0]) < 1e-9) and np.all((coefs >= 0) if positive else True)  # the largest alpha is rounded, too
    found, least = objective(X, y, alphas, l1_ratio, coefs), objective(X, y, alphas, l1_ratio, twin)
    assert np.all(gaps <= 1e-6 * found)
    assert np.all(found - least <= gaps + 1e-12 * found)
    assert np.all(least - found <= 1e-9 * found)


def tall(rng, rows=900):
    """Columns in units a million apart, one twice, one empty, one the sum of two."""
    X = rng.normal(size=(rows, 12)) * np.logspace(-3, 3, 12)
    X[:, 4], X[:, 5], X[:, 6] = X[:, 3], 0.0, X[:, 1] + X[:, 2]
    return X, X @ (rng.normal(size=12) / np.logspace(-3, 3, 12)) + rng.normal(size=rows) + 3


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tall_paths_by_a_factor_are_those_of_the_rows(dtype, l1_ratio, positive, monkeypatch):
    X, y = tall(np.random.default_rng(3))
    X = X.astype(dtype)
    monkeypatch.setattr(_factors, "PIECE", 1e4)
    options = {"l1_ratio": l1_ratio, "positive": positive, "alphas": 12, "tol": 1e-8}
    alphas, coefs, gaps = spdc.enet_path(X, y, **options)
    monkeypatch.setattr(_paths, "_suits_a_factor", lambda *_: False)
    _, plain, plain_gaps = spdc.enet_path(X, y, **options)
    found, expected = (objective(X.astype(float), y, alphas, l1_ratio, w) for w in (coefs, plain))
    assert np.all(np.abs(found - expected) <= np.maximum(gaps, plain_gaps) + 1e-12 * found)
    assert np.all(gaps <= 1e-8 * found)


def test_the_gaps_of_a_path_are_the_librarys(rng):
    X, y = tall(rng)
    coefs = 0.1 * rng.normal(size=(12, 4))
    for positive in (False, True):
        w = np.maximum(coefs, 0) if positive else coefs
        l1, l2 = np.array([0.5, 0.1, 0.2, 3.0]), np.array([0.0, 0.0, 0.3, 0.1])
        gaps, relative = _factors.path_gaps(X, y, w, l1, l2, positive)
        for k in range(4):
            found = spdc.solve(
                *(X, y),
                loss="squared",
                l1=l1[k],
                l2=l2[k],
                lower=0.0 if positive else -np.inf,
                tolerance=1e-10,
            )
            primal = np.mean((y - X @ w[:, k]) ** 2) / 2 + l1[k] * np.abs(w[:, k]).sum() + l2[k] / 2 * np.sum(w[:, k] ** 2)
            assert gaps[k] >= (primal - found.primal) * (1 - 1e-9)  # it bounds what could be gained
            at_best = _factors.path_gaps(X, y, found.coef[:, None], l1[k : k + 1], l2[k : k + 1], positive)
            assert at_best[1][0] <= 1e-6  # ... and not by much


def test_a_path_that_the_factor_spoils_goes_on_with_the_rows(monkeypatch):
    X, y = tall(np.random.default_rng(3))
    triangle = _factors.triangle
    monkeypatch.setattr(_factors, "triangle", lambda X, y: (triangle(X, y)[0], 1.01 * triangle(X, y)[1]))
    alphas, coefs, gaps = spdc.lasso_path(X, y, alphas=6, tol=1e-8)
    assert np.all(gaps <= 1e-8 * objective(X, y, alphas, 1.0, coefs))


def test_tall_paths_of_nothing_and_of_nan(rng):
    X = rng.normal(size=(100, 3))
    assert np.all(spdc.lasso_path(X, np.zeros(100), alphas=6)[1] == 0)
    assert np.all(spdc.lasso_path(np.zeros((100, 3)), np.ones(100), alphas=[1.0] * 6)[1] == 0)
    X[50, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        spdc.lasso_path(X, np.ones(100), alphas=[1.0] * 6)


def test_lasso_path_and_the_models_path(diabetes):
    X, y = diabetes
    alphas, coefs, gaps = spdc.lasso_path(X, y, alphas=[0.1, 1.0, 0.5], tol=1e-10)
    assert alphas.tolist() == [1.0, 0.5, 0.1] and gaps.shape == (3,)
    for k, alpha in enumerate(alphas):
        fit = spdc.Lasso(alpha=alpha, fit_intercept=False, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(coefs[:, k], fit.coef_, atol=1e-3)
    for Model in (spdc.Lasso, spdc.ElasticNet):  # as in scikit-learn, both are enet_path
        np.testing.assert_array_equal(Model.path(X, y, l1_ratio=1.0, alphas=alphas, tol=1e-10)[1], coefs)
    assert len(spdc.lasso_path(X, y, n_alphas=7)[0]) == 7


def test_each_fit_starts_where_the_last_one_ended(diabetes, monkeypatch):
    X, y = diabetes
    starts = []
    minimize = spdc.ElasticNet._minimize

    def watched(self, *arguments, start, **options):
        starts.append(start)
        return minimize(self, *arguments, start=start, **options)

    monkeypatch.setattr(spdc.ElasticNet, "_minimize", watched)
    init = np.full(10, 2.0)
    _, coefs, _ = spdc.enet_path(X, y, alphas=3, coef_init=init)
    assert starts[0] is init
    np.testing.assert_array_equal(starts[2].coef, coefs[:, 1])


def test_what_a_path_cannot_do(diabetes):
    X, y = diabetes
    with pytest.raises(ValueError, match="1d array"):
        spdc.lasso_path(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="give alphas"):
        spdc.enet_path(X, y, l1_ratio=0)
    with pytest.raises(ValueError, match="'l1_ratio' parameter"):
        spdc.enet_path(X, y, l1_ratio=2)
    with pytest.raises(TypeError, match="unexpected"):
        spdc.lasso_path(X, y, tolerance=1e-3)
    with pytest.warns(ConvergenceWarning, match="of 5 fits"):
        rng = np.random.default_rng(0)
        spdc.lasso_path(rng.normal(size=(50, 300)), rng.normal(size=50), alphas=5, tol=1e-13, max_iter=1)
    assert np.all(spdc.lasso_path(X, np.zeros(len(y)), alphas=4)[1] == 0)
