"""A support vector machine whose distance from the optimum is known while it runs."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

import spdc

X, y = make_classification(n_samples=5000, n_features=30, n_informative=10, flip_y=0.1, random_state=0)
model = spdc.LinearSVC(loss="hinge", C=0.01, solver="spdc", tol=1e-4).fit(X, y)
print(f"objective within {model.dual_gap_:.2g} of the smallest possible, relative gap {model.relative_gap_:.1e}")

trace = model.result_.trace
scale = 0.01 * len(y)  # from the library's objective to scikit-learn's
best = scale * model.result_.dual

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.plot(trace["passes"], scale * trace["primal"], marker=".", label="objective")
left.plot(trace["passes"], scale * trace["dual"], marker=".", label="proved lower bound")
left.set(xlabel="passes", ylabel="objective", ylim=(0.5 * best, 2 * best))
left.legend()
left.set_title("the optimum lies between the curves", fontsize="medium", loc="left")

margins = np.where(y == 1, 1, -1) * model.decision_function(X)
right.hist(margins, bins=60, range=(-3, 4), color="tab:grey")
right.axvline(1, color="tab:red", label="margin")
right.set(xlabel="y f(x)", ylabel="rows")
right.set_title(f"{np.mean(margins < 1):.0%} of the rows are inside the margin", fontsize="medium", loc="left")
right.legend()
plt.savefig("certified_svm.png", dpi=120)
