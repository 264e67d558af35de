"""What ``solve`` and ``verify`` return."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(eq=False)
class Result:
    """The best point of a run, its certificate, and how the run ended.

    ``primal - dual`` bounds how far the objective is from the smallest possible: no model has an objective below ``dual``.
    With more than two labels there is one problem for each against the rest; ``coef`` then has a row and ``intercept`` a number
    for each, and the numbers of the certificate are those of the worst one.

    Attributes
    ----------
    coef : ndarray of shape (features,) or (labels, features)
        The weights.
    intercept : float or ndarray of shape (labels,)
        0 without one.
    primal, dual, gap, relative_gap : float
        Objective, its lower bound, their difference, and that over the larger of the two.
    radius : float
        With coordinates that nothing penalises, such as a free intercept: the bound holds for all models in which these are at most
        this large; infinity when there are none.
    certificates : list of dict
        The same for each label.
    stop_reason : str
        ``gap_reached``, ``pass_limit``, ``time_limit``, ``interrupted``, ``stalled``, ``no_minimizer`` or ``numerical_failure``.
    converged : bool
        Whether the gap is within the tolerance.
    message : str
        What to do about it when it is not.
    passes, seconds, seconds_solver : float
        Passes over the data (certification is not counted), wall time since the call of ``solve`` or ``fit``, the look at X included, and
        the same without certification.
    dual_variables : ndarray of shape (rows,) or (rows, labels)
        The dual point behind ``dual``.
    classes : ndarray or None
        The labels, ascending; None in regression.
    solver, solver_reason : str
        Which solver ran and why.
    threads, seed : int
        Threads that worked, and the seed.
    problem : dict
        What was solved: loss, l1, l2, intercept, ...
    """

    coef: np.ndarray
    intercept: Any
    primal: float
    dual: float
    gap: float
    relative_gap: float
    radius: float
    certificates: list[dict]
    stop_reason: str
    converged: bool
    message: str
    passes: float
    seconds: float
    seconds_solver: float
    dual_variables: np.ndarray
    classes: np.ndarray | None
    solver: str
    solver_reason: str
    threads: int
    seed: int
    problem: dict = field(repr=False)
    _trace: dict = field(repr=False)

    @property
    def trace(self) -> np.ndarray:
        """One record per certification; ``pandas.DataFrame(result.trace)`` is a frame."""
        columns = {name: np.asarray(values) for name, values in self._trace.items()}
        columns["solver"] = columns["solver"].astype(str)
        records = np.empty(len(columns["output"]), dtype=[(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            records[name] = column
        return records

    def _facts(self) -> dict[str, str]:
        facts = {
            "stopped": self.stop_reason + (f" ({self.message})" if self.message else ""),
            "primal": f"{self.primal:.10g}",
            "dual": f"{self.dual:.10g}",
            "gap": f"{self.gap:.3g}",
            "relative gap": f"{self.relative_gap:.3g}",
            "passes": f"{self.passes:.4g}",
            "seconds": f"{self.seconds:.3g}",
            "solver": f"{self.solver} ({self.solver_reason})",
            "non-zeros": f"{np.count_nonzero(self.coef)} of {self.coef.size}",
        }
        if self.problem["intercept"] != "none":
            facts["intercept"] = np.array2string(np.asarray(self.intercept), precision=6)
        return facts

    def _title(self) -> str:
        penalties = ", ".join(f"{name}={self.problem[name]:.4g}" for name in ("l1", "l2") if self.problem[name])
        return f"{self.problem['loss']} loss, {penalties or 'no penalty'}"

    def __repr__(self) -> str:
        lines = [f"Result: {self._title()}"]
        return "\n".join(lines + [f"  {name:<13} {value}" for name, value in self._facts().items()])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self._facts().items()
        )
        return f"<table><caption>{html.escape(self._title())}</caption>{rows}</table>"

    def plot(self, axes=None):
        """Draw the relative gap against passes and seconds.

        Parameters
        ----------
        axes : pair of matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        pair of matplotlib Axes
        """
        if axes is None:
            import matplotlib.pyplot as plt

            _, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout="constrained")
        trace = self.trace
        for axis, column in zip(axes, ("passes", "seconds")):
            for output in np.unique(trace["output"]):
                part = trace[trace["output"] == output]
                gaps = np.where(part["relative_gap"] > 0, part["relative_gap"], np.nan)
                axis.plot(part[column], gaps, marker=".", label=None if self.classes is None else str(output))
            axis.axhline(self.problem["tolerance"], color="grey", linewidth=1, linestyle="--")
            axis.set_yscale("log")
            axis.set_xlabel(column)
            axis.grid(alpha=0.3)
        axes[0].set_ylabel("relative gap")
        axes[0].set_title(self._title(), fontsize="medium", loc="left")
        axes[1].set_title(f"{self.solver}: {self.stop_reason}", fontsize="medium", loc="left")
        return axes


@dataclass
class Verification:
    """A certificate computed again from the data, the weights and the dual variables alone.

    Attributes
    ----------
    primal, dual, gap, relative_gap : float
        Of the worst output.
    certified : bool
        Whether the numbers agree with the result's and the gap is within the tolerance.
    objections : list of str
        Why not, in sentences.
    certificates : list of dict
        The numbers for each output.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    certified: bool
    objections: list[str]
    certificates: list[dict] = field(repr=False)
