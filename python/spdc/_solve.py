"""``solve`` and ``verify``: arguments become a job of the library, and what it returns a Result."""

from __future__ import annotations

import math
import operator
import os
import time
from typing import Any, Callable

import numpy as np

from . import _core
from ._data import Data, as_dataset, as_numbers, as_targets, read, with_constant
from ._progress import Progress
from ._result import Result, Verification


def _number(name: str, value) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} = {value!r}; expected a number") from None


def _integer(name: str, value, smallest: int, largest: int) -> int:
    if not hasattr(value, "__index__") or not smallest <= operator.index(value) <= largest:
        raise ValueError(f"{name} = {value!r}; expected an integer from {smallest} to {largest}")
    return operator.index(value)


def _intercept(value) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "free" if value else "none"
    if not isinstance(value, str):
        raise ValueError(f"intercept = {value!r}; expected True, False, 'none', 'free' or 'penalized'")
    return value


def _presolve(value) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "on" if value else "off"
    if not isinstance(value, str):
        raise ValueError(f"presolve = {value!r}; expected 'auto', True or False")
    return value


def _spelled(label, has_names: bool) -> str:
    """A label as the library spells it."""
    if has_names or isinstance(label, str):
        return str(label)
    return repr(float(label)).removesuffix(".0")


def core_job(*arguments) -> _core.Job:
    try:
        return _core.job(*arguments)
    except OSError as error:  # targets that do not fit the loss: a bad file for the program, a bad value here
        raise ValueError(str(error)) from None


def _make_job(X, y, problem: dict) -> tuple[_core.Job, np.ndarray | None, tuple]:
    """The job without its penalty, the labels in classification, and targets and weights as it was given them."""
    if isinstance(X, (str, bytes, os.PathLike)):
        X = read(X)
    data = as_dataset(X)
    if y is None:
        if not isinstance(X, Data):
            raise ValueError("y is missing; only a file or what spdc.read returns has targets of its own")
        targets, names = data.targets, data.label_names
    else:
        targets, names = as_targets(y, data.shape[0])
    weights, factors = problem["weights"], problem["penalty_factors"]
    class_weight = problem["class_weight"]
    balanced = isinstance(class_weight, str) and class_weight == "balanced"
    if not (balanced or class_weight is None or isinstance(class_weight, dict)):
        raise ValueError(f"class_weight = {class_weight!r}; expected None, 'balanced' or a dict")
    weights = None if weights is None else as_numbers(weights, "weights", data.shape[0])
    job = core_job(
        data,
        targets,
        names,
        weights,
        problem["loss"],
        problem["loss_options"],
        problem["intercept"],
        None if factors is None else as_numbers(factors, "penalty_factors", data.shape[1]),
        {} if balanced else {_spelled(k, bool(names)): float(v) for k, v in (class_weight or {}).items()},
        balanced,
        bool(problem.get("copy", True)),
    )
    labels = job.label_names
    if not labels:
        return job, None, (targets, weights)
    return job, np.asarray(labels if names else [float(label) for label in labels]), (targets, weights)


def _share(text: str) -> float:
    """0.1 of "0.1max", 1 of "max"."""
    number, is_share, rest = text.partition("max")
    try:
        if is_share and not rest:
            return float(number or 1)
    except ValueError:
        pass
    raise ValueError(f"l1 = {text!r}; expected a number, or a share of the largest useful one such as '0.1max'")


def _penalties(job: _core.Job, l1, l2) -> tuple[float, float]:
    """l1 may be a share of the largest useful one, as "0.1max"; l2 is 1/W unless there is an l1."""
    if isinstance(l1, str):
        l1 = _share(l1) * job.l1_max()
    if l2 is None:
        l2 = 0.0 if l1 else 1 / job.total_weight
    return _number("l1", l1), _number("l2", l2)


def _flat(array) -> np.ndarray:
    return np.ascontiguousarray(np.asarray(array, dtype=np.float64).ravel())


def _make_start(job: _core.Job, start) -> _core.Start | None:
    """From a Result, (coef, intercept) or coef."""
    if start is None:
        return None
    dual = None
    if isinstance(start, Result):
        intercept = None if start.problem["intercept"] == "none" else start.intercept
        coef, dual = start.coef, _flat(start.dual_variables)
        if len(dual) != job.rows * job.outputs:
            dual = None  # other rows: the weights may still be of use
    elif isinstance(start, tuple):
        if len(start) != 2:
            raise ValueError(f"start is a tuple of {len(start)}; expected (coef, intercept)")
        coef, intercept = start
    else:
        coef, intercept = start, None
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64)).T  # features x outputs
    return job.start(_flat(coef), None if intercept is None else _flat(intercept), dual)


def _make_result(raw: dict, classes, problem: dict) -> Result:
    single = raw["weights"].shape[1] == 1
    intercepts = raw["intercepts"]
    intercept: Any = 0.0 if single else np.zeros(raw["weights"].shape[1])
    if intercepts.size:
        intercept = float(intercepts[0]) if single else intercepts
    worst = max(raw["certificates"], key=lambda certificate: certificate["relative_gap"])
    return Result(
        coef=raw["weights"][:, 0] if single else np.ascontiguousarray(raw["weights"].T),
        intercept=intercept,
        **worst,
        certificates=raw["certificates"],
        stop_reason=raw["stop_reason"],
        converged=raw["converged"],
        message=raw["message"],
        passes=raw["passes"],
        seconds=raw["seconds"],
        seconds_solver=raw["seconds_solver"],
        dual_variables=raw["dual"][:, 0] if single else raw["dual"],
        classes=classes,
        solver=raw["solver"],
        solver_reason=raw["solver_reason"],
        threads=raw["threads"],
        seed=raw["seed"],
        problem=problem,
        _trace=raw["trace"],
    )


def _split_options(options: dict) -> tuple[dict, dict]:
    """The options of the loss and those of the solver."""
    known = set(_core.LOSS_OPTIONS) | set(_core.SOLVER_OPTIONS)
    for name in options:
        if name not in known:
            raise TypeError(
                f"solve() got an unexpected keyword argument '{name}'; options of losses: "
                f"{', '.join(_core.LOSS_OPTIONS)}; of solvers: {', '.join(_core.SOLVER_OPTIONS)}"
            )
    loss = {name: value for name, value in options.items() if name in _core.LOSS_OPTIONS}
    return loss, {name: value for name, value in options.items() if name not in loss}


def solve(
    X,
    y=None,
    *,
    loss: str = "logistic",
    l1: float | str = 0.0,
    l2: float | None = None,
    weights=None,
    intercept: bool | str = False,
    class_weight: dict | str | None = None,
    penalty_factors=None,
    lower: float = -math.inf,
    upper: float = math.inf,
    solver: str = "auto",
    tolerance: float = 1e-4,
    max_passes: float = 1e5,
    max_seconds: float = math.inf,
    threads: int | None = None,
    seed: int = 1,
    start=None,
    copy: bool | str = "auto",
    presolve: bool | str = "auto",
    callback: Callable | None = None,
    verbose: int = 0,
    **options,
) -> Result:
    """Minimise (1/W) Σ wᵢ loss(xᵢᵀcoef + intercept, yᵢ) + l1 |coef|₁ + (l2/2) |coef|², and prove how close the answer is.

    Parameters
    ----------
    X : array-like, sparse matrix, frame, Data or path
        The rows. C-contiguous float32 and float64 arrays and CSR matrices are read where they lie; all else is
        converted once. A path is read as by ``read``.
    y : array-like, optional
        One target a row: numbers, or labels of any kind in classification. Not needed with a path or Data.
    loss : str, default="logistic"
        One of ``spdc.LOSSES``. Options of a loss are keywords: ``gamma`` (smoothed_hinge), ``delta`` (huber), ``epsilon``
        (epsilon_insensitive and its square), ``quantile``.
    l1 : float or str, default=0.0
        Strength of the l1 penalty; ``"0.1max"`` is a tenth of the one at which all weights are 0.
    l2 : float, optional
        Strength of the l2 penalty; by default 0 with an l1 penalty, else 1/W, which is what C=1 means in other packages.
    weights : array-like, optional
        Row weights wᵢ, W their sum: a weight of 3 is three equal rows.
    intercept : bool or {"none", "free", "penalized"}, default=False
        True is ``"free"``: not penalised. ``"penalized"`` is a feature that is always 1.
    class_weight : dict or "balanced", optional
        Multiplies the weights of the rows of each label.
    penalty_factors : array-like, optional
        Multiplies the penalty of each feature; 0: not penalised.
    lower, upper : float, default=-inf, inf
        Bounds of every weight; they must hold 0.
    solver : str, default="auto"
        One of ``spdc.SOLVERS``. Options of a solver are keywords, as ``omega`` of spdc_fast; ``spdc help train`` and
        docs/solvers.md list them.
    tolerance : float, default=1e-4
        Stop when the certified relative gap is at most this.
    max_passes, max_seconds : float
        Stop after this many passes over the data or seconds since the call.
    threads : int, optional
        By default all cores.
    seed : int, default=1
        The same seed gives the same bits.
    start : Result, (coef, intercept) or coef, optional
        Where to start.
    copy : {"auto", False}, default="auto"
        ``"auto"`` lets a solver copy the data where that pays. False: none does; the fit then takes little memory besides X.
    presolve : {"auto", True, False}, default="auto"
        Whether equal rows and proportional columns are merged first.
    callback : callable, optional
        Called with a ``TracePoint`` at every certification, which also has ``coef`` and ``intercept``, the best so far; returning False
        stops the run. An exception stops it, too,
        and has the best result as its attribute ``result``, as KeyboardInterrupt has.
    verbose : int, default=0
        1 shows progress on standard error.
    **options
        Options of the loss and of the solver.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np, spdc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5))
    >>> y = np.sign(X[:, 0] + 0.1 * rng.normal(size=200))
    >>> result = spdc.solve(X, y, loss="logistic", l2=0.01, tolerance=1e-6)
    >>> result.converged, result.relative_gap <= 1e-6
    (True, True)
    >>> spdc.verify(X, y, result).certified
    True
    """
    since = time.perf_counter()
    loss_options, solver_options = _split_options(options)
    if copy not in ("auto", True, False):
        raise ValueError(f"copy = {copy!r}; expected 'auto' or False")
    for name, value in (("loss", loss), ("solver", solver)):
        if not isinstance(value, str):
            raise ValueError(f"{name} = {value!r}; expected a name")
    problem = {
        "loss": loss,
        "loss_options": loss_options,
        "weights": weights,
        "intercept": _intercept(intercept),
        "class_weight": class_weight,
        "penalty_factors": penalty_factors,
        "lower": _number("lower", lower),
        "upper": _number("upper", upper),
        "tolerance": _number("tolerance", tolerance),
        "copy": bool(copy),
    }
    job, classes = _make_job(X, y, problem)[:2]
    problem["l1"], problem["l2"] = _penalties(job, l1, l2)
    job.set_penalty(problem["l1"], problem["l2"], problem["lower"], problem["upper"])
    return run(
        job,
        classes,
        problem,
        solver=solver,
        solver_options=solver_options,
        stopping={"tolerance": problem["tolerance"], "max_passes": max_passes, "max_seconds": max_seconds},
        seed=_integer("seed", seed, 0, 2**64 - 1),
        threads=_core.available_cores() if threads is None else _integer("threads", threads, 1, 2**31 - 1),
        presolve=_presolve(presolve),
        copy=bool(copy),
        start=_make_start(job, start),
        callback=callback,
        verbose=verbose,
        since=since,
    )


def run(job: _core.Job, classes, problem: dict, *, callback, verbose, since: float, **context) -> Result:
    """Runs a job; an exception that stops it leaves with the best result attached. ``since``: when the call began."""
    progress = Progress(problem["tolerance"]) if verbose else None

    def observe(point):
        if progress:
            progress.show(point)
        answer = callback(point) if callback else None
        return not isinstance(answer, (bool, np.bool_)) or bool(answer)

    raw, exception = job.solve(
        callback=observe if progress or callback else None, elapsed=time.perf_counter() - since, **context
    )
    result = _make_result(raw, classes, problem)
    if progress:
        progress.close(result.relative_gap, result.passes, result.seconds, result.stop_reason)
    if exception is not None:
        exception.result = result
        raise exception
    return result


def verify(X, y, result: Result, *, tolerance: float | None = None) -> Verification:
    """Compute the certificate of a result again, with formulas that share no code with the solvers.

    Parameters
    ----------
    X, y
        As they were given to ``solve``.
    result : Result
        What it returned.
    tolerance : float, optional
        The relative gap that counts as certified; by default that of the run.

    Returns
    -------
    Verification

    Examples
    --------
    >>> import spdc
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1, -1, 1]
    >>> result = spdc.solve(X, y, loss="hinge", l2=0.1)
    >>> spdc.verify(X, y, result).certified
    True
    """
    problem = result.problem
    if problem.get("constant_column") is not None:  # of an estimator with an intercept_scaling
        X = with_constant(X, problem["constant_column"])
    if problem.get("targets") is not None:  # of a classifier: what it makes of a label; those without weight may be anything
        labels = (y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)).ravel().tolist()
        y = [problem["targets"].get(label, 0) for label in labels]
    intercept = result.intercept
    if problem.get("shift") is not None:  # of an estimator that fits from a target in the middle
        shift, beyond = problem["shift"]
        y = as_targets(y, np.size(y))[0] - shift
        intercept = beyond if shift + beyond == intercept else intercept - shift
    job, _, rows = _make_job(X, y, problem)
    job.set_penalty(problem["l1"], problem["l2"], problem["lower"], problem["upper"])
    found = job.verify(
        *rows,
        _flat(np.atleast_2d(result.coef).T),
        _flat(intercept if problem["intercept"] != "none" else []),
        _flat(result.dual_variables),
        [(certificate["primal"], certificate["dual"]) for certificate in result.certificates],
        problem["tolerance"] if tolerance is None else tolerance,
    )
    worst = dict(max(found["certificates"], key=lambda certificate: certificate["relative_gap"]))
    worst.pop("radius")
    objections = found["objections"]
    return Verification(**worst, certified=not objections, objections=objections, certificates=found["certificates"])
