"""spdc for benchopt's ridge benchmark: copy this file to its folder solvers/ as spdc.py.

It minimises |y - Xβ - c|²/2 + lmbd |β|²/2.
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

    def set_objective(self, X, y, lmbd, fit_intercept=False):
        self.X, self.y, self.fit_intercept = X, y, fit_intercept
        self.l2 = lmbd / len(y)
        self.beta = np.zeros(X.shape[1] + bool(fit_intercept))

    def run(self, cb):
        def look(point):
            self.beta = np.append(point.coef, point.intercept) if self.fit_intercept else point.coef
            return cb()  # False when benchopt has seen enough

        spdc.solve(
            self.X, self.y, loss="squared", l2=self.l2, intercept=self.fit_intercept, solver=self.solver, tolerance=1e-15, callback=look, threads=1
        )

    def get_result(self):
        return {"beta": self.beta}
