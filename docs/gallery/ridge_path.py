"""A path of ridge fits, each from where the last one ended."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import spdc

X, y = load_diabetes(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
alphas = np.logspace(4, -2, 40)

weights, passes, result = [], [], None
for alpha in alphas:
    result = spdc.solve(X, y, loss="squared", l2=alpha / len(y), intercept=True, tolerance=1e-8, start=result)
    assert result.converged
    weights.append(result.coef)
    passes.append(result.passes)
print(f"{len(alphas)} fits, {sum(passes):.0f} passes in all, every one certified to 1e-8")

figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
axis.semilogx(alphas, weights)
axis.invert_xaxis()
axis.set(xlabel="alpha", ylabel="weights")
axis.set_title("diabetes: ridge path", fontsize="medium", loc="left")
axis.legend(load_diabetes().feature_names, fontsize="small", ncols=2)
plt.savefig("ridge_path.png", dpi=120)
