"""scikit-learn: C = 1/(n lambda); Lasso alpha = l1."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.svm import LinearSVC

from peers.problem import Data

SOLVER = {
    "sk-lbfgs": "lbfgs",
    "sk-saga": "saga",
    "newton-cg": "newton-cg",
    "newton-cholesky": "newton-cholesky",
    "newton-cholesky-dense": "newton-cholesky",
}


def prepare(peer: str, data: Data) -> Any:
    """Rows, columns or a dense array, as the method wants."""
    if peer == "sk-lasso":
        return sparse.csc_matrix(data.rows), data.targets
    if peer == "newton-cholesky-dense":
        return data.rows.toarray(), data.targets
    return data.rows, data.targets


def estimator(peer: str, task: dict[str, Any]) -> Any:
    """The object to fit, iterations without a limit that matters."""
    common = {"tol": task["tolerance"], "fit_intercept": False, "max_iter": 1000000}
    if peer == "sk-lasso":
        return Lasso(alpha=task["penalty"], **common)
    cost = 1 / (task["count"] * task["penalty"])
    if peer == "LinearSVC":
        return LinearSVC(loss=task["loss"], dual=True, C=cost, **common)
    ratio = 1.0 if task["loss"] == "l1_logistic" else 0.0
    return LogisticRegression(solver=SOLVER[peer], l1_ratio=ratio, C=cost, **common)


def fit(peer: str, prepared: Any, task: dict[str, Any]) -> np.ndarray:
    """Fit the peer's estimator."""
    matrix, targets = prepared
    return np.ravel(estimator(peer, task).fit(matrix, targets).coef_)
