"""Regressors that outliers do not move: HuberRegressor, QuantileRegressor."""

from __future__ import annotations

import math
import numbers

import numpy as np
from scipy.optimize import brentq
from sklearn.base import RegressorMixin
from sklearn.linear_model._base import LinearModel
from sklearn.utils._param_validation import Interval
from sklearn.utils.extmath import safe_sparse_dot

from ._base import COMMON_CONSTRAINTS, NON_NEGATIVE, Certified, dataset_of, fit_linear, total_weight


class HuberRegressor(RegressorMixin, Certified, LinearModel):
    """Linear regression that is robust to outliers, with a certificate; scikit-learn's parameters.

    Minimises ``Σ sᵢ (σ + H(rᵢ/σ) σ) + alpha |w|²`` over the weights and the scale σ, with ``H(z) = z²`` for ``|z| < epsilon`` and
    ``2 epsilon |z| - epsilon²`` beyond. At a fixed σ this is a Huber loss, solved with a certificate; around it σ is the
    root of ``Σ sᵢ min(zᵢ², epsilon²) = Σ sᵢ``, where the derivative by σ is 0. ``dual_gap_`` and ``relative_gap_`` certify the weights
    at ``scale_``. ``tol`` is that relative gap, and the relative width to which σ is found.

    Parameters
    ----------
    epsilon : float, default=1.35
        Where the loss turns from a parabola into a line, in units of the scale.
    max_iter : int, default=100
        Most passes over the data of each of the inner fits.
    alpha : float, default=0.0001
        Strength of the penalty.
    warm_start : bool, default=False
        Whether to start where the last fit ended.
    fit_intercept : bool, default=True
    tol : float, default=1e-5
    solver : str, default="auto"
        One of ``spdc.SOLVERS``.
    n_jobs : int, optional
        Threads.
    copy : {"auto", False}, default="auto"
        False: no solver makes a copy of X.

    Attributes
    ----------
    coef_, intercept_, scale_, outliers_, n_features_in_, feature_names_in_
        As in scikit-learn.
    n_iter_ : int
        Passes over the data of all inner fits.
    dual_gap_, relative_gap_, stop_reason_, result_
        Of the inner fit at ``scale_``.

    Examples
    --------
    >>> import numpy as np, spdc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> y = X @ [1.0, 2.0] + 0.1 * rng.normal(size=100)
    >>> y[:5] += 50
    >>> spdc.HuberRegressor().fit(X, y).coef_.round(1)
    array([1., 2.])
    """

    _parameter_constraints: dict = {
        **COMMON_CONSTRAINTS,
        "epsilon": [Interval(numbers.Real, 1.0, None, closed="left")],
        "alpha": [NON_NEGATIVE],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        *,
        epsilon=1.35,
        max_iter=100,
        alpha=0.0001,
        warm_start=False,
        fit_intercept=True,
        tol=1e-05,
        solver="auto",
        n_jobs=None,
        copy="auto",
    ):
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.alpha = alpha
        self.warm_start = warm_start
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.solver = solver
        self.n_jobs = n_jobs
        self.copy = copy

    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._validate_params()
        X, y, weights = self._validated(X, y, sample_weight, y_numeric=True)
        y = y.astype(np.float64, copy=False)
        fit = _ScaleSearch(self, X, y, weights)
        scale = fit.search()
        result = fit.result_at(scale)
        self.coef_ = result.coef.copy()
        self.intercept_ = float(result.intercept)
        self.scale_ = scale
        self.outliers_ = np.abs(fit.residuals(result)) > scale * self.epsilon
        # the joint objective is sigma W + (2 W/sigma) times the library's
        self._keep([result], 2 * fit.W / scale, single=True)
        self.n_iter_ = max(1, math.ceil(fit.passes))
        return self


class _ScaleSearch:
    """Fits at one scale after another, each from where the last one ended."""

    def __init__(self, estimator: HuberRegressor, X, y, weights):
        self.estimator, self.X, self.y, self.weights = estimator, X, y, weights
        self.data = dataset_of(estimator, X)
        self.W = total_weight(weights, X.shape[0])
        self.values: dict = {}  # the excess at each scale
        # The last fit and, unless memory is short, the one of the smallest excess, by scale: all of them would be many times the rows.
        self.kept: dict = {}
        self.passes = 0.0
        self.last = estimator._start()
        spread = np.max(np.abs(y)) if len(y) else 1.0
        self.smallest = 10 * np.finfo(np.float64).eps * max(1.0, float(spread))

    def residuals(self, result) -> np.ndarray:
        residuals = self.y - result.intercept
        if self.X.dtype == np.float64:
            residuals -= safe_sparse_dot(self.X, result.coef)
            return residuals
        # In pieces, since the product turns the float32 rows that it is given into doubles.
        ends = np.linspace(0, self.X.shape[0], min(128, 1 + self.X.data.nbytes // 2**18) + 1).astype(int)
        for i, j in zip(ends, ends[1:]):
            residuals[i:j] -= safe_sparse_dot(self.X[i:j], result.coef)
        return residuals

    def result_at(self, scale: float):
        if scale not in self.kept:
            self.excess(scale)
        return self.kept[scale]

    def excess(self, scale: float) -> float:
        """Σ sᵢ min(zᵢ², epsilon²)/W - 1 at the weights that are best for the scale; falls as the scale grows."""
        estimator = self.estimator
        self.last = estimator._minimize(
            self.data,
            self.y,
            loss="huber",
            loss_options={"delta": estimator.epsilon * scale},
            l2=estimator.alpha * scale / self.W,
            weights=self.weights,
            intercept="free" if estimator.fit_intercept else "none",
            start=self.last,
            solver=estimator.solver,
        )
        self.passes += self.last.passes
        z2 = self.residuals(self.last)  # and squared below, in place
        z2 /= scale
        z2 *= z2
        np.minimum(z2, estimator.epsilon**2, out=z2)
        self.values[scale] = float(np.average(z2, weights=self.weights)) - 1
        self.kept[scale] = self.last
        best = min(self.kept, key=lambda kept: abs(self.values[kept]))
        self.kept = {kept: self.kept[kept] for kept in ((best, scale) if estimator.copy else (scale,))}
        return self.values[scale]

    def _deviation(self) -> float:
        """The standard deviation of the targets."""
        squares = (self.y - np.average(self.y, weights=self.weights)) ** 2
        return max(float(np.sqrt(np.average(squares, weights=self.weights))), self.smallest)

    def search(self) -> float:
        """The root, or the smallest scale where the fit is perfect."""
        scale = self._deviation() if self.estimator._start() is None else self.estimator.scale_
        low = high = scale
        value = self.excess(scale)
        while value > 0:  # too small a scale
            low, high = high, 2 * high
            value = self.excess(high)
        if low == high:
            while value <= 0:
                high, low = low, max(low / 4, self.smallest)
                value = self.excess(low)
                if value <= 0 and low == self.smallest:
                    return low
        return self._root(low, high)

    def _root(self, low: float, high: float) -> float:
        if low == high or low not in self.values:
            return high
        # A second fit at an end, from another start, may differ by the tolerance and lose the change of sign: each scale once.
        scales = {math.log(low): low, math.log(high): high}

        def excess(t: float) -> float:
            scale = scales.setdefault(t, math.exp(t))
            return self.values[scale] if scale in self.values else self.excess(scale)

        root = brentq(
            excess,
            math.log(low),
            math.log(high),
            xtol=max(self.estimator.tol, 1e-12),
            rtol=1e-12,
        )
        return scales.get(root, math.exp(root))


class QuantileRegressor(RegressorMixin, Certified, LinearModel):
    """Regression on a quantile with an l1 penalty and a certificate; scikit-learn's parameters.

    Minimises ``Σ sᵢ pinball(yᵢ - f(xᵢ)) / Σ sᵢ + alpha |w|₁``.

    Parameters
    ----------
    quantile : float, default=0.5
        Which quantile, strictly between 0 and 1.
    alpha : float, default=1.0
        Strength of the penalty.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is not penalised.
    solver : str, default="auto"
        One of ``spdc.SOLVERS``; scikit-learn's names are taken for ``"auto"``.
    solver_options : dict, optional
        Taken for compatibility.
    tol : float, default=1e-4
        Certified relative gap at which the fit ends.
    max_iter : int, optional
        Most passes over the data; by default there is no limit.
    n_jobs : int, optional
        Threads.
    copy : {"auto", False}, default="auto"
        False: no solver makes a copy of X.

    Attributes
    ----------
    coef_, intercept_, n_features_in_, feature_names_in_
        As in scikit-learn.
    n_iter_, dual_gap_, relative_gap_, stop_reason_, result_
        As in ``Ridge``.

    Examples
    --------
    >>> import numpy as np, spdc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = X @ [1.0, 2.0] + rng.normal(size=200)
    >>> model = spdc.QuantileRegressor(quantile=0.9, alpha=0.01).fit(X, y)
    >>> round(float(np.mean(model.predict(X) >= y)), 1)
    0.9
    """

    _parameter_constraints: dict = {
        **COMMON_CONSTRAINTS,
        "quantile": [Interval(numbers.Real, 0, 1, closed="neither")],
        "alpha": [NON_NEGATIVE],
        "solver_options": [dict, None],
    }

    def __init__(
        self,
        *,
        quantile=0.5,
        alpha=1.0,
        fit_intercept=True,
        solver="auto",
        solver_options=None,
        tol=1e-4,
        max_iter=None,
        n_jobs=None,
        copy="auto",
    ):
        self.quantile = quantile
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.copy = copy

    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._validate_params()
        X, y, weights = self._validated(X, y, sample_weight, y_numeric=True)
        # From a target in the middle: those far from 0 leave the solvers too few digits for what the features explain.
        shift = float(np.partition(y, len(y) // 2)[len(y) // 2]) if self.fit_intercept else 0.0
        result, coef, intercept = fit_linear(
            self,
            X,
            y - shift,
            penalize=False,
            loss="quantile",
            loss_options={"quantile": float(self.quantile)},
            l1=self.alpha,
            weights=weights,
            solver=self.solver,
        )
        result.problem["shift"] = shift, result.intercept  # for verify: their sum is rounded
        result.intercept += shift
        self.coef_ = coef[0]
        self.intercept_ = result.intercept
        self._keep([result], 1.0, single=True)
        return self
