"""glmnet: an R process beside this one; a path of ten l1 down to the wanted one."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from peers.problem import Data

SCRIPT = Path(__file__).with_name("glmnet.R")
KILLED_WITH_PARENT = 1, 9  # prctl(PR_SET_PDEATHSIG, SIGKILL)


def prepare(peer: str, data: Data) -> Any:
    """Columns as plain files, read by R once."""
    columns = sparse.csc_matrix(data.rows)
    columns.sort_indices()
    with tempfile.TemporaryDirectory() as folder:
        arrays = {
            "offsets": columns.indptr.astype(np.int32),
            "rows": columns.indices.astype(np.int32),
            "values": columns.data.astype(np.float64),
            "shape": np.array(columns.shape, dtype=np.int32),
            "targets": data.targets.astype(np.float64),
        }
        for name, array in arrays.items():
            array.tofile(Path(folder) / name)
        process = subprocess.Popen(
            ["Rscript", str(SCRIPT), folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: ctypes.CDLL(None).prctl(*KILLED_WITH_PARENT),
        )
        # An answer says that R has read the files.
        ask(process, "lasso", float(np.abs(columns.T @ data.targets).max() / data.count), 1e-3)
    return process, data.rows.shape[1]


def ask(process: Any, loss: str, penalty: float, tolerance: float) -> list[str]:
    """The words of R's answer."""
    process.stdin.write(f"{loss} {penalty!r} {tolerance!r}\n")
    process.stdin.flush()
    words = process.stdout.readline().split()
    if not words:
        raise RuntimeError("R ended; see workers.log")
    return words


def fit(peer: str, prepared: Any, task: dict[str, Any]) -> tuple[np.ndarray, float, float]:
    """The weights, and the times by R's clock."""
    process, features = prepared
    seconds, cpu, *pairs = ask(process, task["loss"], task["penalty"], task["tolerance"])
    weights = np.zeros(features)
    for pair in pairs:
        index, _, value = pair.partition(":")
        if value:
            weights[int(index)] = float(value)
    return weights, float(seconds), float(cpu)
