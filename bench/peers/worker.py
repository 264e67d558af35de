"""A process that holds one data set in one peer's format and fits on request.

Requests are lines of JSON on standard input, answers lines of JSON on what was standard output;
whatever the libraries print goes to standard error. The parent kills the process when a fit
takes too long.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from peers.problem import Data, load, objective


# Weights; with wall and CPU seconds where another process did the work.
Fit = np.ndarray | tuple[np.ndarray, float, float]


class Wrapper(Protocol):
    """What every fit_*.py offers."""

    def prepare(self, peer: str, data: Data) -> Any:
        """Bring the data into the peer's own format; not timed."""

    def fit(self, peer: str, prepared: Any, task: dict[str, Any]) -> Fit:
        """Solve; timed. The task has loss, penalty, tolerance, threads, count."""


def small_data() -> Data:
    """Enough to make just-in-time compilers compile, before the clock runs."""
    random = np.random.default_rng(1)
    rows = sparse.random(60, 20, 0.3, format="csr", random_state=1)
    return Data(rows, np.where(random.random(60) < 0.5, -1.0, 1.0))


def task_of(request: dict[str, Any], data: Data) -> dict[str, Any]:
    """The request with the penalty of this data set."""
    penalty = data.penalty(request["loss"], request["strength"])
    return request | {"penalty": penalty, "count": data.count}


def answer(wrapper: Wrapper, data: Data, prepared: Any, request: dict[str, Any]) -> dict[str, Any]:
    """One timed fit, judged by our objective."""
    task = task_of(request, data)
    wall, cpu = time.perf_counter(), time.process_time()
    weights = wrapper.fit(request["peer"], prepared, task)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if isinstance(weights, tuple):
        weights, wall, cpu = weights
    primal = objective(data, request["loss"], request["strength"], weights)
    return {"seconds": wall, "cpu": cpu, "primal": primal}


def main() -> None:
    """worker.py CACHE MODULE PEER LOSS: warm up, load, then serve."""
    warnings.filterwarnings("ignore")
    cache, module, peer, loss, threads = sys.argv[1:]
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    wrapper: Wrapper = importlib.import_module(f"peers.fit_{module}")
    small = small_data()
    trial = {"peer": peer, "loss": loss, "strength": 0.1, "tolerance": 1e-3}
    trial["threads"] = int(threads)
    wrapper.fit(peer, wrapper.prepare(peer, small), task_of(trial, small))
    data = load(Path(cache))
    prepared = wrapper.prepare(peer, data)
    print(json.dumps({"ready": True}), file=replies, flush=True)
    for line in sys.stdin:
        try:
            reply = answer(wrapper, data, prepared, json.loads(line))
        except Exception as error:  # noqa: BLE001 - a peer may raise anything; the parent reports it
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()
