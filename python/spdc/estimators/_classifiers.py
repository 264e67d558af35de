"""Classifiers: LogisticRegression, LinearSVC, RidgeClassifier."""

from __future__ import annotations

import math

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import column_or_1d, compute_sample_weight
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ._base import COMMON_CONSTRAINTS, POSITIVE, POSITIVE_OR_INFINITE, UNIT, Certified, fit_linear, total_weight
from ._regressors import RidgeBase

CLASS_WEIGHT = [dict, StrOptions({"balanced"}), None]


def encoded(y):
    """The classes, ascending, and the place of each row's class among them. Two classes, the usual case, need no sorting."""
    if y.dtype.kind in "biufU" and len(y):
        is_first = y == y[0]
        others = y[is_first.argmin()]
        is_other = y == others
        whole = y.dtype.kind != "f" or float(y[0]).is_integer() and float(others).is_integer()
        if whole and y[0] != others and (is_first ^ is_other).all():
            if y[0] < others:
                return np.array([y[0], others], dtype=y.dtype), is_other.view(np.int8)
            return np.array([others, y[0]], dtype=y.dtype), is_first.view(np.int8)
    check_classification_targets(y)
    return np.unique(y, return_inverse=True)


class Classifier(Certified, LinearClassifierMixin, SparseCoefMixin, BaseEstimator):
    """Labels in, one linear function for two labels or one for each out (one against the rest)."""

    def _class_factors(self, y, codes, weights):
        """What class_weight makes of each row; "balanced" gives every class that has weight the same."""
        if self.class_weight != "balanced":
            return compute_sample_weight(self.class_weight, y)
        totals = np.bincount(codes, weights)
        shares = np.zeros(len(totals))
        np.divide(totals.sum() / np.count_nonzero(totals), totals, out=shares, where=totals > 0)
        return shares[codes]

    def _fit_labels(self, X, y, sample_weight, *, loss, l1_share, penalize, solver):
        X, y, weights = self._validated(X, y, sample_weight)
        classes, codes = encoded(y)
        if self.class_weight is not None:
            factors = self._class_factors(y, codes, weights)
            weights = factors if weights is None else weights * factors
        kept = np.arange(len(classes)) if weights is None else np.unique(codes[weights > 0])
        if len(kept) < 2:
            found = f"only one class: {classes[kept[0]]!r}" if len(kept) else "no class"
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes in the data, but the data contains {found} "
                f"(rows of weight 0 do not count)"
            )
        self.classes_ = classes[kept]
        if len(kept) < len(classes):
            codes = np.minimum(np.searchsorted(kept, codes), len(kept) - 1)  # rows of weight 0 take any label
        # C sum_i s_i loss_i + penalty = C W ((1/W) sum_i s_i loss_i + penalty/(C W))
        W = total_weight(weights, X.shape[0])
        scale = self.C * W
        result, self.coef_, self.intercept_ = fit_linear(
            self,
            X,
            codes,
            penalize=penalize,
            intercept_scaling=self.intercept_scaling,
            loss=loss,
            l1=l1_share / scale,
            l2=(1 - l1_share) / scale,
            weights=weights,
            start=self._start(),
            solver=solver,
        )
        if not self.fit_intercept:
            self.intercept_ = np.zeros(len(self.coef_))
        result.classes = self.classes_
        result.problem["targets"] = {label: code for code, label in enumerate(self.classes_.tolist())}  # for verify
        self._keep([result], scale if math.isfinite(scale) else W, single=True)  # without a penalty: the losses alone
        return self


class LogisticRegression(Classifier):
    """Logistic regression with a certificate; scikit-learn's parameters.

    Minimises ``C Σ sᵢ log(1 + exp(-yᵢ f(xᵢ))) + (1 - l1_ratio) |w|²/2 + l1_ratio |w|₁``. What differs from scikit-learn: ``tol`` is
    the certified relative gap, ``max_iter`` counts passes over the data, and more than two classes are fitted one against the
    rest. ``random_state=None`` is a fixed seed.

    Parameters
    ----------
    penalty : {"l1", "l2", "elasticnet", None}, optional
        As in scikit-learn; by default ``l1_ratio`` decides.
    C : float, default=1.0
        Inverse strength of the penalty; infinity for none.
    l1_ratio : float, default=0.0
        Share of l1 in the penalty.
    dual : bool, default=False
        Taken for compatibility; it makes no difference.
    tol : float, default=1e-4
        Certified relative gap at which the fit ends.
    fit_intercept : bool, default=True
        Whether there is an intercept. It is not penalised, except with ``solver="liblinear"``, as in scikit-learn.
    intercept_scaling : float, default=1
        With ``solver="liblinear"``, the value of the intercept's column.
    class_weight : dict or "balanced", optional
        Multiplies the weights of the rows of each class.
    random_state : int, RandomState or None, default=None
        The seed.
    solver : str, default="auto"
        One of ``spdc.SOLVERS``; scikit-learn's names are taken for ``"auto"``.
    max_iter : int, default=100
        Most passes over the data.
    verbose : int, default=0
        Whether to show progress.
    warm_start : bool, default=False
        Whether to start where the last fit ended.
    n_jobs : int, optional
        Threads.
    copy : {"auto", False}, default="auto"
        False: no solver makes a copy of X.

    Attributes
    ----------
    classes_, coef_, intercept_, n_features_in_, feature_names_in_
        As in scikit-learn.
    n_iter_ : ndarray of shape (1,)
        Passes over the data.
    dual_gap_, relative_gap_ : float
        The objective is at most this far above the smallest possible; absolutely and relatively.
    stop_reason_ : str
        ``"gap_reached"``, or what came before.
    result_ : Result
        All that the solver found.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> import spdc
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = spdc.LogisticRegression(tol=1e-8).fit(X, y)
    >>> model.relative_gap_ <= 1e-8
    True
    >>> round(model.score(X, y), 2)
    0.96
    """

    _parameter_constraints: dict = {
        **COMMON_CONSTRAINTS,
        "penalty": [StrOptions({"l1", "l2", "elasticnet", "deprecated"}), None],
        "C": [POSITIVE_OR_INFINITE],
        "l1_ratio": [UNIT, None],
        "dual": ["boolean"],
        "intercept_scaling": [POSITIVE],
        "class_weight": CLASS_WEIGHT,
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        penalty="deprecated",
        *,
        C=1.0,
        l1_ratio=0.0,
        dual=False,
        tol=1e-4,
        fit_intercept=True,
        intercept_scaling=1,
        class_weight=None,
        random_state=None,
        solver="auto",
        max_iter=100,
        verbose=0,
        warm_start=False,
        n_jobs=None,
        copy="auto",
    ):
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
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
        share = {"l1": 1.0, "l2": 0.0}.get(self.penalty, self.l1_ratio or 0.0)
        if self.penalty is None:
            return self._fit_unpenalised(X, y, sample_weight)
        if self.solver == "liblinear" and 0 < share < 1:
            raise ValueError(
                f"solver='liblinear' has no elastic net (l1_ratio={share:g}), here as in scikit-learn; solver='auto' has, with an "
                f"intercept that is not penalised"
            )
        return self._fit_labels(
            X,
            y,
            sample_weight,
            loss="logistic",
            l1_share=share,
            penalize=self.solver == "liblinear",
            solver=self.solver,
        )

    def _keep(self, results, scale, single):
        super()._keep(results, scale, single)
        self.n_iter_ = np.array([self.n_iter_], dtype=np.int32)  # as the twin's

    def _fit_unpenalised(self, X, y, sample_weight):
        C, self.C = self.C, math.inf
        try:
            return self._fit_labels(
                X, y, sample_weight, loss="logistic", l1_share=0.0, penalize=False, solver=self.solver
            )
        finally:
            self.C = C

    def predict_proba(self, X):
        """Probabilities of the classes, in the order of ``classes_``; one against the rest, normalised, for more than two."""
        check_is_fitted(self)
        return super()._predict_proba_lr(X)

    def predict_log_proba(self, X):
        """Logarithms of ``predict_proba``."""
        return np.log(self.predict_proba(X))


class LinearSVC(Classifier):
    """Linear support vector classification with a certificate; scikit-learn's parameters.

    Minimises ``C Σ sᵢ max(0, 1 - yᵢ f(xᵢ))`` or its square, plus ``|w|²/2`` or ``|w|₁``. As in scikit-learn the intercept is penalised as the
    weight of a column of ``intercept_scaling``; ``penalize_intercept=False`` frees it. ``tol`` is the certified relative
    gap and ``max_iter`` counts passes over the data.

    Parameters
    ----------
    penalty : {"l1", "l2"}, default="l2"
    loss : {"hinge", "squared_hinge"}, default="squared_hinge"
    dual : "auto" or bool, default="auto"
        Taken for compatibility; it makes no difference.
    tol : float, default=1e-4
        Certified relative gap at which the fit ends.
    C : float, default=1.0
        Inverse strength of the penalty.
    multi_class : {"ovr"}, default="ovr"
        One against the rest; ``"crammer_singer"`` is refused.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1
        Value of the intercept's column.
    class_weight : dict or "balanced", optional
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
    classes_, coef_, intercept_, n_features_in_, feature_names_in_
        As in scikit-learn.
    n_iter_, dual_gap_, relative_gap_, stop_reason_, result_
        As in ``LogisticRegression``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> import spdc
    >>> X, y = make_classification(n_samples=300, random_state=0)
    >>> model = spdc.LinearSVC(loss="hinge", tol=1e-6).fit(X, y)
    >>> model.relative_gap_ <= 1e-6
    True
    """

    _parameter_constraints: dict = {
        **COMMON_CONSTRAINTS,
        "penalty": [StrOptions({"l1", "l2"})],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "dual": ["boolean", StrOptions({"auto"})],
        "C": [POSITIVE],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "intercept_scaling": [POSITIVE],
        "class_weight": CLASS_WEIGHT,
        "penalize_intercept": ["boolean"],
    }

    def __init__(
        self,
        penalty="l2",
        loss="squared_hinge",
        *,
        dual="auto",
        tol=1e-4,
        C=1.0,
        multi_class="ovr",
        fit_intercept=True,
        intercept_scaling=1,
        class_weight=None,
        verbose=0,
        random_state=None,
        max_iter=1000,
        penalize_intercept=True,
        solver="auto",
        n_jobs=None,
        copy="auto",
    ):
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
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
        if self.multi_class != "ovr":
            raise NotImplementedError("multi_class='crammer_singer' is not offered; take 'ovr'")
        self._fit_labels(
            X,
            y,
            sample_weight,
            loss=self.loss,
            l1_share=1.0 if self.penalty == "l1" else 0.0,
            penalize=self.penalize_intercept,
            solver=self.solver,
        )
        if not self.fit_intercept:
            self.intercept_ = 0.0
        return self


class RidgeClassifier(RidgeBase, LinearClassifierMixin, BaseEstimator):
    """Ridge regression on labels coded as -1 and +1, with a certificate; scikit-learn's parameters.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty.
    fit_intercept : bool, default=True
    copy_X : bool, default=True
        Taken for compatibility: X is never changed.
    max_iter : int, optional
        Most passes over the data.
    tol : float, default=1e-4
        Certified relative gap at which the fit ends.
    class_weight : dict or "balanced", optional
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
    classes_, coef_, intercept_, n_features_in_, feature_names_in_
        As in scikit-learn.
    n_iter_, dual_gap_, relative_gap_, stop_reason_, result_
        As in ``Ridge``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import spdc
    >>> X, y = load_iris(return_X_y=True)
    >>> model = spdc.RidgeClassifier().fit(X, y)
    >>> model.coef_.shape
    (3, 4)
    """

    _parameter_constraints: dict = {**RidgeBase._parameter_constraints, "class_weight": CLASS_WEIGHT}

    def __init__(
        self,
        alpha=1.0,
        *,
        fit_intercept=True,
        copy_X=True,
        max_iter=None,
        tol=1e-4,
        class_weight=None,
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
        self.class_weight = class_weight
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
        y : array-like of shape (n_samples,) or an indicator matrix
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._validate_params()
        X, y, weights = self._validated(X, y, sample_weight, multi_output=True)
        self._label_binarizer = LabelBinarizer(pos_label=1, neg_label=-1)
        codes = self._label_binarizer.fit_transform(y).astype(np.float64)
        is_multilabel = self._label_binarizer.y_type_.startswith("multilabel")
        if not is_multilabel:
            y = column_or_1d(y, warn=True)
        if self.class_weight is not None:
            factors = compute_sample_weight(self.class_weight, y)
            weights = factors if weights is None else weights * factors
        single = codes.shape[1] == 1
        self._fit_targets(X, codes[:, 0] if single else codes, weights)
        labels = [0, 1] if is_multilabel else self.classes_.tolist()
        for k, result in enumerate([self.result_] if single else self.result_):
            positive = labels[1:] if single or is_multilabel else [labels[k]]
            result.problem["targets"] = {label: 1.0 if label in positive else -1.0 for label in labels}  # for verify
        self.intercept_ = np.atleast_1d(self.intercept_) if self.fit_intercept else 0.0
        return self

    def predict(self, X):
        """The class of each row; with an indicator matrix, which labels it has."""
        check_is_fitted(self)
        if self._label_binarizer.y_type_.startswith("multilabel"):
            scores = 2 * (self.decision_function(X) > 0) - 1
            return self._label_binarizer.inverse_transform(scores)
        return super().predict(X)

    @property
    def classes_(self):
        """The labels."""
        return self._label_binarizer.classes_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
