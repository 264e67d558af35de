"""Runs the solver files of this folder with benchopt itself, each in a benchmark of one objective and one small data set.

    pip install benchopt spdc && python bench/benchopt/try_out.py

Ends with an error unless benchopt ran every file and its best value is, to a relative 1e-6, that of scikit-learn.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import pandas as pd
from sklearn.linear_model import ElasticNet, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

HERE = pathlib.Path(__file__).parent

DATASET = '''
import numpy as np
from benchopt import BaseDataset

class Dataset(BaseDataset):
    name = "small"

    def get_data(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 12))
        y = X @ rng.normal(size=12) + rng.normal(size=200)
        return {"X": X, "y": np.sign(y) if LABELS else y}
'''

OBJECTIVE = '''
import numpy as np
from benchopt import BaseObjective

class Objective(BaseObjective):
    name = "NAME"
    min_benchopt_version = "1.6"
    parameters = PARAMETERS

    def set_data(self, X, y):
        self.X, self.y = X, y

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1] + bool(getattr(self, "fit_intercept", False)))}

    def evaluate_result(self, beta):
        has_intercept = len(beta) > self.X.shape[1]
        w, z = (beta[:-1], self.X @ beta[:-1] + beta[-1]) if has_intercept else (beta, self.X @ beta)
        y, n = self.y, len(self.y)
        return {"value": VALUE}

    def get_objective(self):
        return {"X": self.X, "y": self.y, **{name: getattr(self, name) for name in self.parameters}}
'''

# benchmark: (parameters, the objective's value, whether y are labels, the optimal beta by somebody else)
CASES = {
    "logreg_l2": (
        {"lmbd": [1.0], "fit_intercept": [False, True]},
        "np.logaddexp(0, -y * z).sum() + self.lmbd * w @ w / 2",
        True,
        lambda X, y, c: LogisticRegression(C=1.0, fit_intercept=c, tol=1e-10, max_iter=10000).fit(X, y),
    ),
    "ridge": (
        {"lmbd": [1.0], "fit_intercept": [False, True]},
        "((y - z) ** 2).sum() / 2 + self.lmbd * w @ w / 2",
        False,
        lambda X, y, c: Ridge(alpha=1.0, fit_intercept=c).fit(X, y),
    ),
    "lasso": (
        {"lmbd": [20.0], "fit_intercept": [False, True]},
        "((y - z) ** 2).sum() / 2 + self.lmbd * np.abs(w).sum()",
        False,
        lambda X, y, c: ElasticNet(alpha=20.0 / len(y), l1_ratio=1.0, fit_intercept=c, tol=1e-12).fit(X, y),
    ),
    "elastic_net": (
        {"lmbda": [0.1], "l1_ratio": [0.5], "fit_intercept": [False, True]},
        "((y - z) ** 2).sum() / (2 * n) + self.lmbda * (self.l1_ratio * np.abs(w).sum() + (1 - self.l1_ratio) * w @ w / 2)",
        False,
        lambda X, y, c: ElasticNet(alpha=0.1, l1_ratio=0.5, fit_intercept=c, tol=1e-12).fit(X, y),
    ),
    "linear_svm": (
        {"C": [0.1]},
        "self.C * np.maximum(0, 1 - y * z).sum() + w @ w / 2",
        True,
        lambda X, y, c: LinearSVC(C=0.1, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6).fit(X, y),
    ),
}


def make_benchmark(folder: pathlib.Path, name: str) -> None:
    parameters, value, labels, _ = CASES[name]
    for part in ("datasets", "solvers"):
        (folder / part).mkdir(parents=True)
    (folder / "datasets" / "small.py").write_text(f"LABELS = {labels}\n{DATASET}")
    objective = OBJECTIVE.replace("NAME", name).replace("PARAMETERS", repr(parameters)).replace("VALUE", value)
    (folder / "objective.py").write_text(objective)
    shutil.copy(HERE / f"{name}.py", folder / "solvers" / "spdc.py")


def expected(folder: pathlib.Path, name: str, fit_intercept: bool) -> float:
    scope: dict = {}
    exec((folder / "datasets" / "small.py").read_text(), scope)
    exec((folder / "objective.py").read_text(), scope)
    data = scope["Dataset"]().get_data()
    model = CASES[name][3](data["X"], data["y"], fit_intercept)
    objective = scope["Objective"]()
    for parameter, values in CASES[name][0].items():
        setattr(objective, parameter, fit_intercept if parameter == "fit_intercept" else values[0])
    objective.set_data(**data)
    beta = np.ravel(model.coef_)
    return objective.evaluate_result(np.append(beta, model.intercept_) if fit_intercept else beta)["value"]


def main() -> None:
    for name in CASES:
        folder = pathlib.Path(tempfile.mkdtemp(), name)
        make_benchmark(folder, name)
        command = [sys.executable, "-m", "benchopt", "run", str(folder), "-r", "1", "-n", "50", "--no-plot", "--no-html"]
        run = subprocess.run(command, capture_output=True, text=True)
        files = sorted(folder.glob("outputs/*.parquet")) + sorted(folder.glob("outputs/*.csv"))
        if run.returncode != 0 or not files:
            sys.exit(f"{name}: benchopt failed\n{run.stdout}\n{run.stderr}")
        table = pd.read_parquet(files[-1]) if files[-1].suffix == ".parquet" else pd.read_csv(files[-1])
        column = "p_obj_fit_intercept" if "p_obj_fit_intercept" in table else None
        for fit_intercept, part in table.groupby(column) if column else [(False, table)]:
            best, twin = part["objective_value"].min(), expected(folder, name, bool(fit_intercept))
            print(f"{name}, fit_intercept={fit_intercept}: {len(part)} points, best {best:.12g}, another solver's {twin:.12g}")
            if not best <= twin * (1 + 1e-6):
                sys.exit(f"{name}: {best} is above {twin}")
        shutil.rmtree(folder.parent)


if __name__ == "__main__":
    main()
