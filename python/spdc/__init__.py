"""Linear models with a certificate of how far from optimal they are.

``solve`` minimises a regularised loss and proves how close the answer is; ``verify`` checks the proof; ``read`` reads data
files. The estimators (``LogisticRegression``, ``LinearSVC``, ``Ridge``, ...) take scikit-learn's parameters and need scikit-learn;
everything else needs NumPy and SciPy only.
"""

from typing import TYPE_CHECKING

from ._core import LOSSES, SOLVERS, TracePoint, __version__
from ._data import Data, load_svmlight, read
from ._result import Result, Verification
from ._solve import solve, verify

if TYPE_CHECKING:
    from .estimators import (
        ElasticNet,
        HuberRegressor,
        Lasso,
        LinearSVC,
        LinearSVR,
        LogisticRegression,
        PoissonRegressor,
        QuantileRegressor,
        Ridge,
        RidgeClassifier,
        enet_path,
        lasso_path,
    )

__all__ = [
    "LOSSES",
    "SOLVERS",
    "Data",
    "Result",
    "TracePoint",
    "Verification",
    "__version__",
    "load_svmlight",
    "read",
    "solve",
    "verify",
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


def __getattr__(name):  # scikit-learn is imported when an estimator is first used
    if name in __all__:
        from . import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'spdc' has no attribute '{name}'")


def __dir__():
    return sorted(__all__)
