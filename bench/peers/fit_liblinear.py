"""LIBLINEAR: min (1/2) |w|^2 + C sum loss (l1: |w|_1 + C sum loss), C = 1/(n lambda)."""

from __future__ import annotations

from typing import Any

import numpy as np
from liblinear.liblinear import parameter, problem
from liblinear.liblinearutil import train

from peers.problem import Data


def prepare(peer: str, data: Data) -> Any:
    """LIBLINEAR's arrays of nodes."""
    return problem(data.targets, data.rows, bias=-1)


def fit(peer: str, prepared: Any, task: dict[str, Any]) -> np.ndarray:
    """The solver's number is the end of the peer's name."""
    solver = peer.rsplit("-s", 1)[1]
    cost = 1 / (task["count"] * task["penalty"])
    options = f"-s {solver} -c {cost!r} -e {task['tolerance']!r} -B -1 -q"
    if peer.startswith("multicore"):
        options += f" -m {task['threads']}"
    model = train(prepared, parameter(options))
    weights = np.ctypeslib.as_array(model.w, (model.nr_feature,)).copy()
    return weights if model.get_labels()[0] == 1 else -weights
