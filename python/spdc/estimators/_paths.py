"""Paths of certified fits: ``enet_path`` and ``lasso_path``."""

from __future__ import annotations

import math
import numbers
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from . import _factors, _regressors
from ._base import dataset_of


def _grid(X, y, Xy, l1_ratio, positive, eps, count) -> np.ndarray:
    """From the smallest alpha at which all weights are 0 down to ``eps`` of it."""
    if l1_ratio == 0:
        raise ValueError("l1_ratio=0: without an l1 penalty there is no largest alpha; give alphas")
    Xy = X.T @ y if Xy is None else np.asarray(Xy)
    largest = np.max(Xy if positive else np.abs(Xy), initial=0) / (len(y) * l1_ratio)
    smallest = np.finfo(np.float64).resolution
    return np.geomspace(largest, eps * largest, count) if largest > smallest else np.full(count, smallest)


def enet_path(
    X,
    y,
    *,
    l1_ratio=0.5,
    eps=1e-3,
    n_alphas=None,
    alphas=None,
    precompute="auto",
    Xy=None,
    copy_X=True,
    coef_init=None,
    verbose=False,
    return_n_iter=False,
    positive=False,
    check_input=True,
    **params,
):
    """Elastic net fits along a path of penalties, each certified; scikit-learn's parameters.

    Minimises ``Σ (yᵢ - xᵢᵀw)² / 2n + alpha (l1_ratio |w|₁ + (1 - l1_ratio) |w|²/2)`` for every alpha, from the largest on, each from where the last
    one ended. There is no intercept, as in scikit-learn: centre the data.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        One target: scikit-learn's paths of several penalise them together, which is another problem.
    l1_ratio : float, default=0.5
        Share of the l1 penalty.
    eps : float, default=1e-3
        The smallest alpha as a share of the largest, where alphas are not given.
    n_alphas : int, optional
        The same as an integer ``alphas``.
    alphas : int or array-like, optional
        The penalties, or how many; by default 100, from the one at which all weights are 0 down to ``eps`` of it.
    precompute, copy_X, check_input
        Taken for compatibility; they make no difference.
    Xy : array-like of shape (n_features,), optional
        ``X.T @ y``, for the largest alpha.
    coef_init : array-like of shape (n_features,), optional
        Where the first fit starts.
    verbose : bool or int, default=False
        Whether to show the progress of every fit.
    return_n_iter : bool, default=False
        Whether to return the passes over the data, too.
    positive : bool, default=False
        Whether the weights must not be negative.
    **params
        ``tol`` (1e-4, the certified relative gap of every fit), ``max_iter`` and others of ``ElasticNet``.

    Returns
    -------
    alphas : ndarray of shape (n_alphas,)
        Descending.
    coefs : ndarray of shape (n_features, n_alphas)
    dual_gaps : ndarray of shape (n_alphas,)
        The certified gaps, in units of the objective above.
    n_iters : list of int
        Passes over the data, or over their triangular factor where they are tall and dense; only with ``return_n_iter``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import spdc
    >>> X, y = load_diabetes(return_X_y=True)
    >>> alphas, coefs, dual_gaps = spdc.enet_path(X, y - y.mean(), l1_ratio=0.9, alphas=20)
    >>> coefs.shape
    (10, 20)
    """
    params.pop("do_screening", None)  # of scikit-learn's sweeps
    model = _regressors.ElasticNet(l1_ratio=l1_ratio, fit_intercept=False, positive=positive, **params)
    model.verbose = verbose
    model._validate_params()
    X, y, _ = model._validated(X, y, None, y_numeric=True)
    count = alphas if alphas is not None else (100 if n_alphas is None else n_alphas)
    if isinstance(count, numbers.Integral):
        alphas = _grid(X, y, Xy, l1_ratio, positive, eps, count)
    alphas = np.sort(np.asarray(alphas, dtype=np.float64).ravel())[::-1]
    l1, l2 = alphas * l1_ratio, alphas * (1 - l1_ratio)
    fit = _Fits(model, l1, l2, positive)
    if _suits_a_factor(X, y, model, alphas):
        coefs, gaps, passes, is_near = fit.by_factor(X, y, coef_init)
    else:
        coefs, gaps, passes, is_near = fit.all(dataset_of(model, X), y, coef_init)
    missed = alphas[~is_near]
    if len(missed):
        warnings.warn(
            f"{len(missed)} of {len(alphas)} fits, the first at alpha={missed[0]:g}, stopped at a relative gap above "
            f"tol={model.tol:g}: raise max_iter or tol, and see dual_gaps",
            ConvergenceWarning,
            stacklevel=2,
        )
    return (alphas, coefs, gaps, passes) if return_n_iter else (alphas, coefs, gaps)


def _suits_a_factor(X, y, model, alphas) -> bool:
    """Whether the triangle of X and y is much smaller than these, and soon made beside the fits."""
    n, d = X.shape
    is_plain = isinstance(X, np.ndarray) and model.solver == "auto" and model.copy and model.tol >= 1e-9
    return bool(is_plain and n >= 3 * d and 1 < d <= 1000 and len(alphas) >= 5 and np.isfinite(X).all())


class _Fits:
    """The fits of a path, each from where the last one ended."""

    def __init__(self, model, l1, l2, positive):
        self.model, self.l1, self.l2, self.positive = model, l1, l2, positive

    def one(self, data, y, k, start):
        return self.model._minimize(
            data,
            y,
            loss="squared",
            l1=self.l1[k],
            l2=self.l2[k],
            intercept="none",
            lower=0.0 if self.positive else -math.inf,
            start=start,
            solver=self.model.solver,
        )

    def all(self, data, y, start):
        """coefs, gaps, passes, and whether the gaps are as small as they were to be."""
        results = []
        for k in range(len(self.l1)):
            start = self.one(data, y, k, start)
            results.append(start)
        coefs = np.stack([result.coef for result in results], axis=-1) if results else np.zeros((data.shape[1], 0))
        passes = [max(1, math.ceil(result.passes)) for result in results]
        is_near = np.array([result.converged for result in results], dtype=bool)
        return coefs, np.array([result.gap for result in results]), passes, is_near

    def by_factor(self, X, y, start):
        """The same by the triangular factor of X and y, which has the same objective. The gaps are those of the data, not of the factor; a
        fit that rounding has spoilt goes on there."""
        R, r = _factors.triangle(X, y)
        tol, self.model.tol = self.model.tol, self.model.tol / 4
        coefs, gaps, passes, _ = self.all(dataset_of(self.model, R), r, start)
        self.model.tol = tol
        gaps, relative = _factors.path_gaps(X, y, coefs, self.l1, self.l2, self.positive)
        is_near = relative <= tol
        for k in np.flatnonzero(~is_near):
            result = self.one(dataset_of(self.model, X), y, k, coefs[:, k])
            coefs[:, k], gaps[k], is_near[k] = result.coef, result.gap, result.converged
            passes[k] += math.ceil(result.passes)
        return coefs, gaps, passes, is_near


def lasso_path(X, y, *, eps=1e-3, n_alphas=None, alphas=None, **params):
    """Lasso fits along a path of penalties, each certified: ``enet_path`` with ``l1_ratio=1``.

    Parameters
    ----------
    X, y, eps, n_alphas, alphas, **params
        As in ``enet_path``.

    Returns
    -------
    alphas, coefs, dual_gaps
        As from ``enet_path``, and n_iters where ``return_n_iter`` asks for them.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import spdc
    >>> X, y = load_diabetes(return_X_y=True)
    >>> alphas, coefs, dual_gaps = spdc.lasso_path(X, y - y.mean(), alphas=[2.0, 1.0, 0.1], tol=1e-8)
    >>> int((coefs[:, 0] != 0).sum()) < int((coefs[:, 2] != 0).sum())
    True
    """
    return enet_path(X, y, l1_ratio=1.0, eps=eps, n_alphas=n_alphas, alphas=alphas, **params)
