"""Every solver on one problem, by the same certificate."""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse
from sklearn.preprocessing import normalize

import spdc

rng = np.random.default_rng(0)
X = scipy.sparse.random(4000, 2000, density=0.01, format="csr", random_state=np.random.RandomState(0))
X = normalize(X)
y = np.sign(X @ rng.normal(size=2000) + 0.1 * rng.normal(size=4000))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for solver in spdc.SOLVERS:
    if solver == "auto":
        continue
    try:
        result = spdc.solve(X, y, loss="logistic", l2=1e-5, solver=solver, tolerance=1e-8, max_passes=300, max_seconds=10)
    except NotImplementedError as refusal:  # a solver says what it does not take
        print(f"{solver}: {refusal}")
        continue
    print(f"{solver:12} {result.stop_reason:12} gap {result.relative_gap:.1e}, {result.passes:.0f} passes, {result.seconds:.2f} s")
    trace = result.trace
    gaps = np.where(trace["relative_gap"] > 0, trace["relative_gap"], np.nan)
    left.plot(trace["passes"], gaps, marker=".", label=solver)
    right.plot(trace["seconds"], gaps, marker=".", label=solver)
for axis, label in ((left, "passes"), (right, "seconds")):
    axis.set(xlabel=label, yscale="log")
    axis.grid(alpha=0.3)
left.set_ylabel("certified relative gap")
right.set_xscale("log")
right.legend(fontsize="small")
plt.savefig("comparing_solvers.png", dpi=120)
