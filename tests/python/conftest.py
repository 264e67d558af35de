import numpy as np
import pytest
import scipy.sparse
import sklearn.linear_model
import sklearn.svm

import spdc

ESTIMATORS = {
    "LogisticRegression": sklearn.linear_model.LogisticRegression,
    "LinearSVC": sklearn.svm.LinearSVC,
    "LinearSVR": sklearn.svm.LinearSVR,
    "Ridge": sklearn.linear_model.Ridge,
    "RidgeClassifier": sklearn.linear_model.RidgeClassifier,
    "Lasso": sklearn.linear_model.Lasso,
    "ElasticNet": sklearn.linear_model.ElasticNet,
    "HuberRegressor": sklearn.linear_model.HuberRegressor,
    "QuantileRegressor": sklearn.linear_model.QuantileRegressor,
    "PoissonRegressor": sklearn.linear_model.PoissonRegressor,
}
CLASSIFIERS = ("LogisticRegression", "LinearSVC", "RidgeClassifier")


def targets_for(name, X, rng):
    """Targets that suit an estimator: labels, counts or numbers."""
    z = np.asarray(X @ rng.normal(size=X.shape[1])).ravel()
    z = z / max(z.std(), 1e-12) + 0.5 * rng.normal(size=len(z))
    if name in CLASSIFIERS:
        return np.where(z > 0.3, "yes", "no")
    return rng.poisson(np.exp(0.5 * z)).astype(float) if name == "PoissonRegressor" else 3 * z + 1


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def labelled(rng):
    X = rng.normal(size=(120, 6))
    return X, np.sign(X[:, 0] - 0.5 * X[:, 1] + 0.3 * rng.normal(size=120))


@pytest.fixture(params=sorted(ESTIMATORS))
def name(request):
    return request.param


def sparse_like(rng, rows, columns, density=0.1):
    return scipy.sparse.random(rows, columns, density, format="csr", random_state=np.random.RandomState(3))
