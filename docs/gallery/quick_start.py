"""Quick start: a certified logistic regression, its trace and its verification."""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import spdc

X, y = load_breast_cancer(return_X_y=True)

X = (X - X.mean(axis=0)) / X.std(axis=0)

result = spdc.solve(X, y, loss="logistic", l2=1e-3, intercept=True, solver="spdc_fast", tolerance=1e-6)
print(result)
print(spdc.verify(X, y, result))  # the certificate, computed again by other formulas

result.plot()
plt.savefig("quick_start.png", dpi=120)
