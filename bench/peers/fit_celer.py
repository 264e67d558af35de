"""celer: alpha = l1 (lasso), C = 1/(n l1) (logistic)."""

from __future__ import annotations

from typing import Any

import celer
import numpy as np
from scipy import sparse

from peers.problem import Data


def prepare(peer: str, data: Data) -> Any:
    """Columns."""
    return sparse.csc_matrix(data.rows), data.targets


def fit(peer: str, prepared: Any, task: dict[str, Any]) -> np.ndarray:
    """Lasso or l1 logistic regression."""
    columns, targets = prepared
    common = {"tol": task["tolerance"], "fit_intercept": False, "max_iter": 1000}
    if task["loss"] == "lasso":
        model = celer.Lasso(alpha=task["penalty"], **common)
    else:
        cost = 1 / (task["count"] * task["penalty"])
        model = celer.LogisticRegression(C=cost, **common)
    return np.ravel(model.fit(columns, targets).coef_)
