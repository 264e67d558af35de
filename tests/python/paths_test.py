"""lasso_path and enet_path: scikit-learn's alphas and shapes, and a gap for every fit that bounds what could still be gained."""

import numpy as np
import pytest
import scipy.sparse
import sklearn.linear_model
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning

import spdc


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
