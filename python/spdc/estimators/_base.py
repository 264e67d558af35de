"""What all estimators share: validated data in, a certified fit, and the attributes that tell of it."""

from __future__ import annotations

import functools
import math
import numbers
import time
import warnings

import numpy as np
import scipy.sparse
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints
from sklearn.utils.validation import _check_sample_weight, validate_data

from .. import _core
from .._data import Data, as_dataset, with_constant
from .._result import Result
from .._solve import _make_start, core_job, run

POSITIVE = Interval(numbers.Real, 0, None, closed="neither")
POSITIVE_OR_INFINITE = Interval(numbers.Real, 0, None, closed="right")
NON_NEGATIVE = Interval(numbers.Real, 0, None, closed="left")
UNIT = Interval(numbers.Real, 0, 1, closed="both")

# Entries times the smaller side: a Newton step of microseconds. Its steps do not depend on how rows are ordered or repeated, so that
# weights equal repeated rows to the last digits whatever tol is.
TINY = 1e5

SCIKIT_LEARNS_SOLVERS = {
    *("liblinear", "lbfgs", "newton-cg", "newton-cholesky", "sag", "saga"),
    *("svd", "cholesky", "lsqr", "sparse_cg"),
    *("highs", "highs-ds", "highs-ipm", "interior-point", "revised simplex"),
}

COMMON_CONSTRAINTS = {
    "solver": [StrOptions({*_core.SOLVERS, *SCIKIT_LEARNS_SOLVERS})],
    "fit_intercept": ["boolean"],
    "tol": [POSITIVE],
    "max_iter": [Interval(numbers.Integral, 1, None, closed="left"), None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "n_jobs": [None, numbers.Integral],
    "copy": ["boolean", StrOptions({"auto"})],
}


@functools.lru_cache(maxsize=256, typed=True)
def _accept(Model, names: tuple, *values) -> None:
    """Looks at parameters as scikit-learn does, once for the same values."""
    validate_parameter_constraints(Model._parameter_constraints, dict(zip(names, values)), caller_name=Model.__name__)


def _is_ready(X, y) -> bool:
    """Whether scikit-learn's checks of X and y would find nothing to say or to convert; the entries of X are the library's to check."""
    if type(X) not in (np.ndarray, np.memmap, scipy.sparse.csr_matrix, scipy.sparse.csr_array) or type(y) is not np.ndarray:
        return False
    is_table = X.ndim == 2 and X.dtype in (np.float64, np.float32) and X.dtype.isnative and min(X.shape) > 0
    is_in_place = scipy.sparse.issparse(X) or X.flags.c_contiguous
    is_target = y.ndim == 1 and y.dtype.kind in "biufU" and len(y) == X.shape[0]
    return is_table and is_in_place and is_target and (y.dtype.kind != "f" or bool(np.isfinite(y).all()))


def in_their_words(estimator, X, error: ValueError) -> ValueError:
    """The library's objection to X, which says where; in front of it scikit-learn's sentence where it has one."""
    try:
        assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")
    except ValueError as sentence:
        return ValueError(f"{sentence}\n{error}")
    return error


def dataset_of(estimator, X) -> _core.Dataset:
    """X for the library, which looks at every entry once."""
    try:
        data = as_dataset(X)
        data.check()
        return data
    except ValueError as error:
        raise in_their_words(estimator, X, error) from None


class Certified:
    """A mixin: fits by ``self._minimize`` and keeps what it proved.

    The parameters every estimator has besides its twin's are ``copy`` ("auto", or False for a fit that takes little memory besides
    the data) and ``n_jobs``; ``tol`` is the certified relative gap at which a fit ends, ``max_iter`` the passes over the data.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _validate_params(self):
        """scikit-learn's look at the parameters, without its look at the signature: a third of the time of a small fit."""
        if get_config()["skip_parameter_validation"]:
            return
        names = [name for name in vars(self) if name in self._parameter_constraints]
        try:
            _accept(type(self), tuple(names), *(getattr(self, name) for name in names))
        except TypeError:  # a value that cannot be remembered, or the error of a wrong one
            super()._validate_params()

    def _validated(self, X, y, sample_weight, **checks):
        """X, y and the weights as arrays; weights None where there are none."""
        if isinstance(X, Data):
            raise TypeError("an estimator takes X and y, not a spdc.Data: unpack it first, as in X, y = data")
        if _is_ready(X, y):
            self.n_features_in_ = X.shape[1]
            vars(self).pop("feature_names_in_", None)  # of an earlier fit
        else:
            X, y = validate_data(
                self,
                X,
                y,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                order="C",
                ensure_all_finite=False,  # the library looks at every entry: see in_their_words
                **checks,
            )
        if checks.get("y_numeric") and y.dtype.kind not in "biuf":
            y = y.astype(np.float64)  # numbers that are spelled
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return X, y, sample_weight

    def _minimize(
        self,
        data: _core.Dataset,
        y: np.ndarray,
        *,
        loss: str,
        l1: float = 0.0,
        l2: float = 0.0,
        weights=None,
        intercept: str,
        lower: float = -math.inf,
        start=None,
        solver: str = "auto",
        loss_options: dict | None = None,
        penalty_factors=None,
        since: float | None = None,
    ) -> Result:
        """Solves one problem in the library's own scaling. ``since``: when its seconds began, if not now."""
        since = time.perf_counter() if since is None else since
        problem = {
            "loss": loss,
            "loss_options": loss_options or {},
            "weights": weights,
            "intercept": intercept,
            "class_weight": None,
            "penalty_factors": penalty_factors,
            "lower": lower,
            "upper": math.inf,
            "tolerance": self.tol,
            "l1": l1,
            "l2": l2,
            "copy": bool(self.copy),
        }
        job = core_job(
            *(data, np.ascontiguousarray(y, dtype=np.float64), [], weights, loss, problem["loss_options"], intercept),
            *(penalty_factors, {}, False, problem["copy"]),
        )
        job.set_penalty(l1, l2, lower, math.inf)
        labels = job.label_names
        classes = np.array([float(label) for label in labels]) if labels else None
        if solver not in _core.SOLVERS:
            solver = "auto"  # scikit-learn's names
        if solver == "auto" and self.copy:
            if lower == 0:
                solver = "working_set"  # bounds leave most weights at 0, too
            elif l1 == 0 and data.nonzeros * min(data.shape) <= TINY:
                solver = "newton"
        is_result = isinstance(start, Result)
        if is_result and (start.coef.size != data.shape[1] * job.outputs or start.problem["intercept"] != intercept):
            start = None  # of another shape
        max_iter = getattr(self, "max_iter", None)
        return run(
            job,
            classes,
            problem,
            solver=solver,
            solver_options={},
            stopping={"tolerance": self.tol, "max_passes": 1e5 if max_iter is None else max_iter},
            seed=self._seed(),
            threads=effective_n_jobs(self.n_jobs),
            presolve="auto",
            copy=bool(self.copy),
            start=_make_start(job, start),
            callback=None,
            verbose=getattr(self, "verbose", 0),
            since=since,
        )

    def _seed(self) -> int:
        """None is a fixed seed, for the same fit every time."""
        state = getattr(self, "random_state", None)
        if state is None:
            return 1
        if isinstance(state, numbers.Integral):
            return int(state)
        return int(check_random_state(state).randint(2**31 - 1))

    def _start(self):
        """The last fit, where warm_start asks for it."""
        return getattr(self, "result_", None) if getattr(self, "warm_start", False) else None

    def _keep(self, results: list[Result], scale, single: bool) -> None:
        """The attributes that tell of the fit; ``scale`` turns the library's objective into scikit-learn's."""
        passes = [max(1, math.ceil(result.passes)) for result in results]
        if single:
            (result,) = results
            self.result_, self.dual_gap_, self.relative_gap_ = result, result.gap * scale, result.relative_gap
            self.stop_reason_, self.n_iter_ = result.stop_reason, passes[0]
        else:
            self.result_ = results
            self.dual_gap_ = np.array([result.gap for result in results]) * scale
            self.relative_gap_ = np.array([result.relative_gap for result in results])
            self.stop_reason_ = [result.stop_reason for result in results]
            self.n_iter_ = np.array(passes)
        for result in results:
            if not result.converged:
                advice = result.message.replace("max-passes", "max_iter").replace("the tolerance", "tol")
                advice = advice.replace("a larger tolerance", "a larger tol")
                warnings.warn(
                    f"{type(self).__name__} stopped at a certified relative gap of {result.relative_gap:.2g}, above "
                    f"tol={self.tol:g}: {advice or result.stop_reason}",
                    ConvergenceWarning,
                    stacklevel=3,
                )
                break


def fit_linear(estimator, X, y, *, penalize, intercept_scaling=1, **problem) -> tuple[Result, np.ndarray, np.ndarray]:
    """Fits with no intercept, a free one, or one that is penalised as a column of ``intercept_scaling``.

    Returns the result, coef of shape (outputs, features) and intercepts of shape (outputs,).
    """
    since = time.perf_counter()
    is_scaled = estimator.fit_intercept and penalize and intercept_scaling != 1
    l1, l2 = problem.get("l1", 0.0), problem.get("l2", 0.0)
    has_column = is_scaled and bool(estimator.copy)
    if has_column:
        X = with_constant(X, intercept_scaling)
    elif is_scaled:
        problem |= scaled_penalties(intercept_scaling, X.shape[1], l1, l2)
    intercept = "none"
    if estimator.fit_intercept and not has_column:
        intercept = "penalized" if penalize else "free"
    try:
        result = estimator._minimize(as_dataset(X), y, intercept=intercept, since=since, **problem)
    except ValueError as error:
        raise in_their_words(estimator, X, error) from None
    result.problem["constant_column"] = intercept_scaling if has_column else None  # for verify
    coef = result.coef.reshape(-1, X.shape[1])
    intercepts = np.array(result.intercept, dtype=np.float64, ndmin=1)
    if has_column:
        coef, intercepts = coef[:, :-1], coef[:, -1] * intercept_scaling
    return result, coef, intercepts


def scaled_penalties(scaling, features: int, l1: float, l2: float) -> dict:
    """A column of s without a copy of X for it. With v its weight and b = s v the intercept, l1 |v| + (l2/2) v² is
    (l1/s) |b| + (l2/2s²) b²: the intercept of the library, whose column is 1, and factors that give the features their penalties back.
    One factor serves l1 or l2, not both: none of scikit-learn's models has an elastic net and such a column."""
    assert l1 == 0 or l2 == 0
    factor = scaling if l1 > 0 else scaling**2
    return {"l1": l1 / factor, "l2": l2 / factor, "penalty_factors": np.full(features, float(factor))}


def total_weight(weights, rows: int) -> float:
    return float(rows) if weights is None else float(np.sum(weights))
