"""The peers: which method of which library solves which loss, and where its sweep starts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """One method of one library.

    `module` is the wrapper fit_MODULE.py; `environment` the virtual environment it runs in;
    `start` the loosest tolerance tried; `threads` whether it can use several;
    `program` what must be installed beside the environment.
    """

    name: str
    module: str
    losses: tuple[str, ...]
    start: float
    environment: str = "peers"
    threads: bool = False
    largest_side: int | None = None
    program: str | None = None

    def accepts(self, loss: str, features: int, threads: int) -> bool:
        """Whether to run it on a loss, with so many features, in a table for so many threads."""
        if self.name.startswith("multicore") and threads == 1:
            return False
        fits = self.largest_side is None or features <= self.largest_side
        return loss in self.losses and fits


# Those that were fast in earlier runs stand first: later ones are cut short when they cannot win.
PEERS = (
    Peer("liblinear-s7", "liblinear", ("logistic",), 10.0),
    Peer("liblinear-s0", "liblinear", ("logistic",), 1e-1),
    Peer("liblinear-s1", "liblinear", ("squared_hinge",), 10.0),
    Peer("liblinear-s2", "liblinear", ("squared_hinge",), 1e-1),
    Peer("liblinear-s3", "liblinear", ("hinge",), 1.0),
    Peer("liblinear-s6", "liblinear", ("l1_logistic",), 1e-1),
    Peer("multicore-s0", "liblinear", ("logistic",), 1e-1, "multicore", threads=True),
    Peer("multicore-s2", "liblinear", ("squared_hinge",), 1e-1, "multicore", threads=True),
    Peer("multicore-s1", "liblinear", ("squared_hinge",), 1.0, "multicore", threads=True),
    Peer("multicore-s3", "liblinear", ("hinge",), 1.0, "multicore", threads=True),
    Peer("snapml", "snapml", ("logistic", "squared_hinge", "hinge"), 1e-1, threads=True),
    Peer("newton-cholesky", "sklearn", ("logistic",), 1e-2, largest_side=2000),
    Peer("newton-cholesky-dense", "sklearn", ("logistic",), 1e-2, largest_side=500),
    Peer("cyanure", "cyanure", ("logistic", "squared_hinge"), 1e-2, threads=True),
    Peer("sk-lbfgs", "sklearn", ("logistic",), 1e-2, threads=True),
    Peer("LinearSVC", "sklearn", ("squared_hinge", "hinge"), 1.0),
    Peer("newton-cg", "sklearn", ("logistic",), 1e-3),
    Peer("celer", "celer", ("lasso", "l1_logistic"), 1e-2),
    Peer("skglm", "skglm", ("lasso", "l1_logistic"), 1e-2),
    Peer("adelie", "adelie", ("lasso", "l1_logistic"), 1e-3, "adelie", threads=True),
    Peer("glmnet", "glmnet", ("lasso", "l1_logistic"), 1e-4, program="Rscript"),
    Peer("sk-lasso", "sklearn", ("lasso",), 1e-1),
    Peer("cyanure-l1", "cyanure", ("lasso", "l1_logistic"), 1e-2, threads=True),
    Peer("sk-saga", "sklearn", ("logistic", "l1_logistic"), 1e-2),
    Peer("skglm-svc", "skglm", ("hinge",), 1e-2),
)
