"""scikit-learn's linear models with a certificate. The only place that knows other scalings than the library's (C, alpha)."""

from ._classifiers import LinearSVC, LogisticRegression, RidgeClassifier
from ._paths import enet_path, lasso_path
from ._regressors import ElasticNet, Lasso, LinearSVR, PoissonRegressor, Ridge
from ._robust import HuberRegressor, QuantileRegressor

__all__ = [
    "ElasticNet",
    "HuberRegressor",
    "Lasso",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "PoissonRegressor",
    "QuantileRegressor",
    "Ridge",
    "RidgeClassifier",
    "enet_path",
    "lasso_path",
]
