"""Regressors: Ridge, Lasso, ElasticNet, LinearSVR, PoissonRegressor."""

from __future__ import annotations

import math
import time

import numpy as np
import scipy.sparse
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.linear_model._base import LinearModel
from sklearn.metrics import d2_tweedie_score
from sklearn.utils._param_validation import StrOptions

from .. import _core
from . import _factors, _paths
from ._base import COMMON_CONSTRAINTS, NON_NEGATIVE, POSITIVE, UNIT, Certified, dataset_of, fit_linear, total_weight


class SeveralTargets(Certified):
    """Squared loss, and one fit for every column of y."""

    def _fit_columns(self, X, y, weights, l1, l2, scales):
        """Penalties for each column; keeps coef_, intercept_ and the certificates."""
        since = time.perf_counter()
        single = y.ndim == 1
        data = dataset_of(self, X)
        columns = y[:, None] if single else y
        starts = self._start()
        starts = starts if isinstance(starts, list) else [starts]
        if self._shares_a_matrix(X, columns, l1, l2):
            starts = _factors.common_solutions(X, columns, weights, l2[0], self.fit_intercept) or starts
        results = []
        for k in range(columns.shape[1]):
            result = self._minimize(
                data,
                columns[:, k],
                loss="squared",
                l1=l1[k],
                l2=l2[k],
                weights=weights,
                intercept="free" if self.fit_intercept else "none",
                lower=0.0 if self.positive else -math.inf,
                start=starts[k] if len(starts) == columns.shape[1] else None,
                solver=self.solver,
                since=since,
            )
            since = time.perf_counter()
            results.append(result)
        self.coef_ = results[0].coef.copy() if single else np.array([result.coef for result in results])
        intercepts = np.array([result.intercept for result in results])
        self.intercept_ = float(intercepts[0]) if single else intercepts
        if not self.fit_intercept:
            self.intercept_ = 0.0
        self._keep(results, scales, single)

    def _shares_a_matrix(self, X, columns, l1, l2) -> bool:
        """Whether all targets have the same normal equations, and to factor them once pays."""
        is_plain = self.copy and self.solver not in {*_core.SOLVERS} - {"auto", "newton"} and not self.positive
        return bool(is_plain and not np.any(l1) and np.ptp(l2) == 0 and _factors.pays(X, columns.shape[1], l2[0]))


class RidgeBase(SeveralTargets):
    _parameter_constraints: dict = {
        **COMMON_CONSTRAINTS,
        "alpha": [NON_NEGATIVE, np.ndarray, list],
        "copy_X": ["boolean"],
        "positive": ["boolean"],
    }

    def _fit_targets(self, X, y, weights):
        targets = 1 if y.ndim == 1 else y.shape[1]
        alpha = np.ravel(np.asarray(self.alpha, dtype=np.float64))
        if len(alpha) not in (1, targets):
            raise ValueError(f"Number of targets and number of penalties do not correspond: {targets} != {len(alpha)}")
        # sum_i s_i r_i^2 + alpha |w|^2 = 2 W ((1/W) sum_i s_i r_i^2/2 + (alpha/W) |w|^2/2)
        W = total_weight(weights, X.shape[0])
        l2 = np.broadcast_to(alpha / W, targets)
        self._fit_columns(X, y, weights, np.zeros(targets), l2, 2 * W)
        self.solver_ = (self.result_ if y.ndim == 1 else self.result_[0]).solver


class Ridge(MultiOutputMixin, RegressorMixin, RidgeBase, LinearModel):
    """Ridge regression with a certificate; scikit-learn's parameters.

    Minimises ``Σ sᵢ (yᵢ - f(xᵢ))² + alpha |w|²``. ``tol`` is the certified relative gap and ``max_iter`` counts passes over the data.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1.0
        Strength of the penalty.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is not penalised.
    copy_X : bool, default=True
        Taken for compatibility: X is never changed.
    max_iter : int, optional
        Most passes over the data; by default there is no limit.
    tol : float, default=1e-4
        Certified relative gap at which the fit ends.
    solver : str, default="auto"
        One of ``spdc.SOLVERS``; scikit-learn's names are taken for ``"auto"``.
    positive : bool, default=False
        Whether the weights must not be negative.
    random_state : int, RandomState or None, default=None
        The seed; None is a fixed one.
    n_jobs : int, optional
        Threads.
    copy : {"auto", False}, default="auto"
        False: no solver makes a copy of X.

    Attributes
    ----------
    coef_, intercept_, n_features_in_, feature_names_in_, solver_
        As in scikit-learn.
    n_iter_ : int or ndarray of shape (n_targets,)
        Passes over the data.
    dual_gap_, relative_gap_ : float or ndarray of shape (n_targets,)
        The objective is at most this far above the smallest possible; absolutely and relatively.
    stop_reason_, result_
        How the fit ended and all that the solver found; lists for several targets.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import spdc
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = spdc.Ridge(alpha=0.1, tol=1e-8).fit(X, y)
    >>> model.relative_gap_ <= 1e-8
    True
    """

    def __init__(
        self,
        alpha=1.0,
        *,
        fit_intercept=True,
        copy_X=True,
        max_iter=None,
        tol=1e-4,
        solver="auto",
        positive=False,
        random_state=None,
        n_jobs=None,
        copy="auto",
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.copy = copy

    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,) or float, optional

        Returns
        -------
        self
        """
        self._validate_params()
        X, y, weights = self._validated(X, y, sample_weight, multi_output=True, y_numeric=True)
        is_column = y.ndim == 2 and y.shape[1] == 1
        self._fit_targets(X, y[:, 0] if is_column else y, weights)
        if is_column and self.fit_intercept:
            self.intercept_ = np.array([self.intercept_])  # as scikit-learn does
        return self


class ElasticNet(MultiOutputMixin, RegressorMixin, SeveralTargets, LinearModel):
    """Linear regression with l1 and l2 penalties and a certificate; scikit-learn's parameters.

    Minimises ``Σ sᵢ (yᵢ - f(xᵢ))² / (2 Σ sᵢ) + alpha l1_ratio |w|₁ + alpha (1 - l1_ratio) |w|²/2``. ``tol`` is the certified relative
    gap and ``max_iter`` counts passes over the data.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty.
    l1_ratio : float, default=0.5
        Share of l1 in it.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is not penalised.
    precompute, copy_X, selection
        Taken for compatibility; they make no difference.
    max_iter : int, default=1000
        Most passes over the data.
    tol : float, default=1e-4
        Certified relative gap at which the fit ends.
    warm_start : bool, default=False
        Whether to start where the last fit ended.
    positive : bool, default=False
        Whether the weights must not be negative.
    random_state : int, RandomState or None, default=None
        The seed; None is a fixed one.
    solver : str, default="auto"
        One of ``spdc.SOLVERS``.
    n_jobs : int, optional
        Threads.
    copy : {"auto", False}, default="auto"
        False: no solver makes a copy of X.

    Attributes
    ----------
    coef_, sparse_coef_, intercept_, n_features_in_, feature_names_in_
        As in scikit-learn.
    n_iter_, dual_gap_, relative_gap_, stop_reason_, result_
        As in ``Ridge``.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> import spdc
    >>> X, y = make_regression(n_samples=60, n_features=200, n_informative=5, random_state=0)
    >>> model = spdc.ElasticNet(alpha=1.0, l1_ratio=0.9, tol=1e-8).fit(X, y)
    >>> model.relative_gap_ <= 1e-8
    True
    """

    _parameter_constraints: dict = {
        **COMMON_CONSTRAINTS,
        "alpha": [NON_NEGATIVE],
        "l1_ratio": [UNIT],
        "precompute": ["boolean", "array-like"],
        "copy_X": ["boolean"],
        "warm_start": ["boolean"],
        "positive": ["boolean"],
        "selection": [StrOptions({"random", "cyclic"})],
    }

    def __init__(
        self,
        alpha=1.0,
        *,
        l1_ratio=0.5,
        fit_intercept=True,
        precompute=False,
        max_iter=1000,
        copy_X=True,
        tol=1e-4,
        warm_start=False,
        positive=False,
        random_state=None,
        selection="cyclic",
        solver="auto",
        n_jobs=None,
        copy="auto",
    ):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.max_iter = max_iter
        self.copy_X = copy_X
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.solver = solver
        self.n_jobs = n_jobs
        self.copy = copy

    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,) or float, optional

        Returns
        -------
        self
        """
        self._validate_params()
        X, y, weights = self._validated(X, y, sample_weight, multi_output=True, y_numeric=True)
        targets = 1 if y.ndim == 1 else y.shape[1]
        if y.ndim == 2 and targets == 1:
            y = y[:, 0]  # as scikit-learn does
        l1, l2 = self.alpha * self.l1_ratio, self.alpha * (1 - self.l1_ratio)
        self._fit_columns(X, y, weights, np.full(targets, l1), np.full(targets, l2), 1.0)
        return self

    @staticmethod
    def path(X, y, **parameters):
        """``spdc.enet_path``, as scikit-learn's models have theirs."""
        return _paths.enet_path(X, y, **parameters)

    @property
    def sparse_coef_(self):
        """``coef_`` as a sparse matrix."""
        return scipy.sparse.csr_matrix(self.coef_)


class Lasso(ElasticNet):
    """Linear regression with an l1 penalty and a certificate; scikit-learn's parameters.

    Minimises ``Σ sᵢ (yᵢ - f(xᵢ))² / (2 Σ sᵢ) + alpha |w|₁``. ``tol`` is the certified relative gap and ``max_iter`` counts passes over
    the data.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is not penalised.
    precompute, copy_X, selection
        Taken for compatibility; they make no difference.
    max_iter : int, default=1000
        Most passes over the data.
    tol : float, default=1e-4
        Certified relative gap at which the fit ends.
    warm_start : bool, default=False
        Whether to start where the last fit ended.
    positive : bool, default=False
        Whether the weights must not be negative.
    random_state : int, RandomState or None, default=None
        The seed; None is a fixed one.
    solver : str, default="auto"
        One of ``spdc.SOLVERS``.
    n_jobs : int, optional
        Threads.
    copy : {"auto", False}, default="auto"
        False: no solver makes a copy of X.

    Attributes
    ----------
    coef_, sparse_coef_, intercept_, n_features_in_, feature_names_in_
        As in scikit-learn.
    n_iter_, dual_gap_, relative_gap_, stop_reason_, result_
        As in ``Ridge``.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> import spdc
    >>> X, y = make_regression(n_samples=60, n_features=200, n_informative=5, random_state=0)
    >>> model = spdc.Lasso(alpha=1.0).fit(X, y)
    >>> model.relative_gap_ <= 1e-4
    True
    """

    _parameter_constraints: dict = {**ElasticNet._parameter_constraints}
    _parameter_constraints.pop("l1_ratio")
    l1_ratio = 1.0

    def __init__(
        self,
        alpha=1.0,
        *,
        fit_intercept=True,
        precompute=False,
        copy_X=True,
        max_iter=1000,
        tol=1e-4,
        warm_start=False,
        positive=False,
        random_state=None,
        selection="cyclic",
        solver="auto",
        n_jobs=None,
        copy="auto",
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.precompute = precompute
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.positive = positive
        self.random_state = random_state
        self.selection = selection
        self.solver = solver
        self.n_jobs = n_jobs
        self.copy = copy


class LinearSVR(RegressorMixin, Certified, LinearModel):
    """Linear support vector regression with a certificate; scikit-learn's parameters.

    Minimises ``C Σ sᵢ max(0, |yᵢ - f(xᵢ)| - epsilon) + |w|²/2``, or with the square of the loss. As in scikit-learn the intercept is penalised as
    the weight of a column of ``intercept_scaling``; ``penalize_intercept=False`` frees it. ``tol`` is the certified relative gap and
    ``max_iter`` counts passes over the data.

    Parameters
    ----------
    epsilon : float, default=0.0
        Residuals up to this cost nothing.
    tol : float, default=1e-4
        Certified relative gap at which the fit ends.
    C : float, default=1.0
        Inverse strength of the penalty.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, default="epsilon_insensitive"
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1.0
        Value of the intercept's column.
    dual : "auto" or bool, default="auto"
        Taken for compatibility; it makes no difference.
    verbose : int, default=0
    random_state : int, RandomState or None, default=None
        The seed; None is a fixed one.
    max_iter : int, default=1000
        Most passes over the data.
    penalize_intercept : bool, default=True
        Whether the intercept is penalised.
    solver : str, default="auto"
        One of ``spdc.SOLVERS``.
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
    >>> from sklearn.datasets import load_diabetes
    >>> import spdc
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = spdc.LinearSVR(C=10.0).fit(X, y)
    >>> model.relative_gap_ <= 1e-4
    True
    """

    _parameter_constraints: dict = {
        **COMMON_CONSTRAINTS,
        "epsilon": [NON_NEGATIVE],
        "C": [POSITIVE],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
        "intercept_scaling": [POSITIVE],
        "dual": ["boolean", StrOptions({"auto"})],
        "penalize_intercept": ["boolean"],
    }

    def __init__(
        self,
        *,
        epsilon=0.0,
        tol=1e-4,
        C=1.0,
        loss="epsilon_insensitive",
        fit_intercept=True,
        intercept_scaling=1.0,
        dual="auto",
        verbose=0,
        random_state=None,
        max_iter=1000,
        penalize_intercept=True,
        solver="auto",
        n_jobs=None,
        copy="auto",
    ):
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.penalize_intercept = penalize_intercept
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
        scale = self.C * total_weight(weights, X.shape[0])
        result, coef, intercept = fit_linear(
            self,
            X,
            y,
            penalize=self.penalize_intercept,
            intercept_scaling=self.intercept_scaling,
            loss=self.loss,
            loss_options={"epsilon": float(self.epsilon)},
            l2=1 / scale,
            weights=weights,
            solver=self.solver,
        )
        self.coef_ = coef[0]
        self.intercept_ = intercept if self.fit_intercept else 0.0
        self._keep([result], scale, single=True)
        return self


class PoissonRegressor(RegressorMixin, Certified, LinearModel):
    """Poisson regression with a log link and a certificate; scikit-learn's parameters.

    Minimises ``Σ sᵢ (exp(f(xᵢ)) - yᵢ f(xᵢ)) / Σ sᵢ + alpha |w|²/2``, scikit-learn's objective up to a constant. ``tol`` is the certified
    relative gap and ``max_iter`` counts passes over the data.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is not penalised.
    solver : str, default="auto"
        One of ``spdc.SOLVERS``; scikit-learn's names are taken for ``"auto"``.
    max_iter : int, default=100
        Most passes over the data.
    tol : float, default=1e-4
        Certified relative gap at which the fit ends.
    warm_start : bool, default=False
        Whether to start where the last fit ended.
    verbose : int, default=0
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
    >>> X = rng.normal(size=(100, 3))
    >>> y = rng.poisson(np.exp(X[:, 0]))
    >>> model = spdc.PoissonRegressor(alpha=0.01).fit(X, y)
    >>> model.relative_gap_ <= 1e-4
    True
    """

    _parameter_constraints: dict = {
        **COMMON_CONSTRAINTS,
        "alpha": [NON_NEGATIVE],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        *,
        alpha=1.0,
        fit_intercept=True,
        solver="auto",
        max_iter=100,
        tol=1e-4,
        warm_start=False,
        verbose=0,
        n_jobs=None,
        copy="auto",
    ):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.copy = copy

    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Counts, or other numbers that are not negative.
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._validate_params()
        X, y, weights = self._validated(X, y, sample_weight, y_numeric=True)
        if np.any(y < 0):
            raise ValueError("Some value(s) of y are out of the valid range: Poisson targets must not be negative")
        result, coef, intercept = fit_linear(
            self,
            X,
            y,
            penalize=False,
            loss="poisson",
            l2=self.alpha,
            weights=weights,
            start=self._start(),
            solver=self.solver,
        )
        self.coef_ = coef[0]
        self.intercept_ = float(intercept[0]) if self.fit_intercept else 0.0
        self._keep([result], 1.0, single=True)
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def predict(self, X):
        """The rate of each row, exp(f(x))."""
        return np.exp(self._decision_function(X))

    def score(self, X, y, sample_weight=None):
        """D², the share of the Poisson deviance that the model explains."""
        return d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1)
