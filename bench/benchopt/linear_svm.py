"""spdc for benchopt's linear_svm_binary_classif_no_intercept benchmark: copy this file to its folder solvers/ as spdc.py.

It minimises C Σ max(0, 1 - yᵢ xᵢᵀβ) + |β|²/2.
"""

import numpy as np
from benchopt import BaseSolver

import spdc


class Solver(BaseSolver):
    name = "spdc"
    sampling_strategy = "callback"
    requirements = ["pip::spdc"]
    parameters = {"solver": ["auto"]}
    references = ["Y. Zhang and L. Xiao, Stochastic primal-dual coordinate method for regularized empirical risk minimization, 2015"]

    def set_objective(self, X, y, C):
        self.X, self.y = X, y
        self.l2 = 1 / (C * len(y))
        self.beta = np.zeros(X.shape[1])

    def run(self, cb):
        def look(point):
            self.beta = point.coef
            return cb()  # False when benchopt has seen enough

        spdc.solve(
            self.X, self.y, loss="hinge", l2=self.l2, solver=self.solver, tolerance=1e-15, callback=look, threads=1
        )

    def get_result(self):
        return {"beta": self.beta}
