"""skglm: alpha = l1; LinearSVC C = 1/(n lambda)."""

from __future__ import annotations

from typing import Any

import numpy as np
import skglm
from scipy import sparse

from peers.problem import Data


def prepare(peer: str, data: Data) -> Any:
    """Columns; rows for the dual of the support vector machine."""
    matrix = data.rows if peer == "skglm-svc" else sparse.csc_matrix(data.rows)
    return matrix, data.targets


def fit(peer: str, prepared: Any, task: dict[str, Any]) -> np.ndarray:
    """Lasso, l1 logistic regression or hinge."""
    matrix, targets = prepared
    common = {"tol": task["tolerance"], "fit_intercept": False, "max_iter": 1000}
    if task["loss"] == "lasso":
        model = skglm.Lasso(alpha=task["penalty"], **common)
    elif task["loss"] == "hinge":
        model = skglm.LinearSVC(C=1 / (task["count"] * task["penalty"]), **common)
    else:
        model = skglm.SparseLogisticRegression(alpha=task["penalty"], **common)
    return np.ravel(model.fit(matrix, targets).coef_)
