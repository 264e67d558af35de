"""The problems of the comparison: data, objective, and what spdc is asked for.

P(x) = (1/n) sum_i loss(a_i'x, b_i) + penalty, no intercept, rows as stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

L1_LOSSES = ("lasso", "l1_logistic")
SPDC_LOSS = {"lasso": "squared", "l1_logistic": "logistic"}


@dataclass(frozen=True)
class Cell:
    """One problem. `strength` is l2, or l1 as a fraction of lambda_max."""

    data: str
    loss: str
    strength: float

    @property
    def name(self) -> str:
        """Label of the cell in tables and result files."""
        unit = " max" if self.is_l1 else ""
        return f"{self.data} {self.loss} {self.strength:g}{unit}"

    @property
    def is_l1(self) -> bool:
        """Whether the penalty is l1 |x|_1 rather than (l2/2) |x|^2."""
        return self.loss in L1_LOSSES


@dataclass(frozen=True)
class Data:
    """A data set in memory: rows in CSR, targets (+1 and -1 when there are two)."""

    rows: sparse.csr_matrix
    targets: np.ndarray

    @property
    def count(self) -> int:
        """Number of rows."""
        return self.rows.shape[0]

    def penalty(self, loss: str, strength: float) -> float:
        """Turn a cell's strength into the l2 or l1 of the objective."""
        if loss not in L1_LOSSES:
            return strength
        slope = 0.5 if loss == "l1_logistic" else 1.0
        return strength * slope * float(np.abs(self.rows.T @ self.targets).max()) / self.count


def load(cache: Path) -> Data:
    """Read what `save` wrote."""
    with np.load(cache) as arrays:
        parts = (arrays["values"], arrays["columns"], arrays["offsets"])
        rows = sparse.csr_matrix(parts, shape=tuple(arrays["shape"]))
        return Data(rows, arrays["targets"])


def save(cache: Path, data: Data) -> None:
    """Write a data set so that every peer's process can load it in a moment."""
    rows = data.rows
    np.savez(
        cache,
        values=rows.data.astype(np.float64),
        columns=rows.indices.astype(np.int32),
        offsets=rows.indptr.astype(np.int32),
        shape=np.array(rows.shape),
        targets=data.targets.astype(np.float64),
    )


def signs(targets: np.ndarray) -> np.ndarray:
    """Two labels become -1 and +1, the larger one positive, as in spdc."""
    labels = np.unique(targets)
    if labels.size != 2:
        return targets
    return np.where(targets == labels[1], 1.0, -1.0)


def mean_loss(loss: str, predictions: np.ndarray, targets: np.ndarray) -> float:
    """Mean of the loss, in the scaling of docs/losses.md."""
    if loss == "lasso":
        return float(np.mean((predictions - targets) ** 2) / 2)
    margins = predictions * targets
    if loss in ("logistic", "l1_logistic"):
        return float(np.mean(np.logaddexp(0.0, -margins)))
    slack = np.maximum(1.0 - margins, 0.0)
    return float(np.mean(slack if loss == "hinge" else slack**2))


def objective(data: Data, loss: str, strength: float, weights: np.ndarray) -> float:
    """P at the weights a solver returned."""
    weights = np.asarray(weights, dtype=np.float64).ravel()
    if weights.size != data.rows.shape[1] or not np.all(np.isfinite(weights)):
        return float("inf")
    scale = data.penalty(loss, strength)
    size = np.abs(weights).sum() if loss in L1_LOSSES else weights @ weights / 2
    return mean_loss(loss, data.rows @ weights, data.targets) + scale * float(size)
