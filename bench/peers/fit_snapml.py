"""Snap ML: regularizer = n lambda, dual solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
import snapml

from peers.problem import Data


def prepare(peer: str, data: Data) -> Any:
    """CSR rows."""
    return data.rows, data.targets


def fit(peer: str, prepared: Any, task: dict[str, Any]) -> np.ndarray:
    """LogisticRegression or SupportVectorMachine."""
    rows, targets = prepared
    common = {
        "regularizer": task["count"] * task["penalty"],
        "tol": task["tolerance"],
        "max_iter": 100000,
        "n_jobs": task["threads"],
        "fit_intercept": False,
    }
    if task["loss"] == "logistic":
        model = snapml.LogisticRegression(dual=True, **common)
    else:
        model = snapml.SupportVectorMachine(loss=task["loss"], **common)
    return np.ravel(model.fit(rows, targets).coef_)
