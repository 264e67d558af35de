"""spdc for benchopt's elastic_net benchmark: copy this file to its folder solvers/ as spdc.py.

It minimises |y - Xβ - c|²/2n + lmbda (l1_ratio |β|₁ + (1 - l1_ratio) |β|²/2).
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

    def set_objective(self, X, y, lmbda, l1_ratio, fit_intercept=False):
        self.X, self.y, self.fit_intercept = X, y, fit_intercept
        self.l1, self.l2 = lmbda * l1_ratio, lmbda * (1 - l1_ratio)
        self.beta = np.zeros(X.shape[1] + bool(fit_intercept))

    def run(self, cb):
        def look(point):
            self.beta = np.append(point.coef, point.intercept) if self.fit_intercept else point.coef
            return cb()  # False when benchopt has seen enough

        spdc.solve(
            self.X, self.y, loss="squared", l1=self.l1, l2=self.l2, intercept=self.fit_intercept, solver=self.solver, tolerance=1e-15, callback=look, threads=1
        )

    def get_result(self):
        return {"beta": self.beta}
