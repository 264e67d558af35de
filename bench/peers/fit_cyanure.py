"""Cyanure: lambda_1 = lambda; its squared hinge carries a factor 1/2."""

from __future__ import annotations

from typing import Any

import numpy as np
from cyanure.estimators import Classifier, Regression

from peers.problem import Data

LOSS = {"squared_hinge": "sqhinge", "l1_logistic": "logistic"}


def prepare(peer: str, data: Data) -> Any:
    """CSR rows."""
    return data.rows, data.targets


def fit(peer: str, prepared: Any, task: dict[str, Any]) -> np.ndarray:
    """Solver "auto"."""
    rows, targets = prepared
    loss = task["loss"]
    half = 0.5 if loss == "squared_hinge" else 1.0
    kind = {} if loss == "lasso" else {"loss": LOSS.get(loss, loss)}
    make = Regression if loss == "lasso" else Classifier
    model = make(
        **kind,
        penalty="l1" if loss in ("lasso", "l1_logistic") else "l2",
        lambda_1=half * task["penalty"],
        tol=task["tolerance"],
        max_iter=100000,
        fit_intercept=False,
        n_threads=task["threads"],
        verbose=False,
    )
    model.fit(rows, targets)
    return np.ravel(model.get_weights())
