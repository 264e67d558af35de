"""adelie: groups of one feature, weights 1/n, a short path down to the wanted l1."""

from __future__ import annotations

from typing import Any

import adelie
import numpy as np
from scipy import sparse

from peers.problem import Data


def prepare(peer: str, data: Data) -> Any:
    """Columns."""
    return sparse.csc_matrix(data.rows), data.targets


def fit(peer: str, prepared: Any, task: dict[str, Any]) -> np.ndarray:
    """grpnet without standardisation."""
    columns, targets = prepared
    if task["loss"] == "lasso":
        model = adelie.glm.gaussian(targets)
    else:
        model = adelie.glm.binomial((targets + 1) / 2)
    state = adelie.grpnet(
        X=adelie.matrix.sparse(columns, method="naive", n_threads=task["threads"]),
        glm=model,
        intercept=False,
        lmda_path=np.array([task["penalty"]]),
        tol=task["tolerance"],
        early_exit=False,
        progress_bar=False,
        n_threads=task["threads"],
    )
    return np.asarray(state.betas[-1].todense()).ravel()
