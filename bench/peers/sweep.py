"""One peer on one cell: tolerances from loose to tight until the bars are met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from peers.problem import Cell
from peers.process import Worker

BARS = (1e-3, 1e-6)
TIGHTEST = 1e-13
SHORT = 1.0  # seconds; shorter runs count by the median of three

Run = dict[str, Any]


@dataclass
class Limits:
    """How long a fit and a whole sweep may take; `best` is what the fastest peer needed so far."""

    cap: float
    budget: float
    best: float | None = None

    def patience(self) -> float:
        """A peer that cannot win any more is cut short."""
        return self.cap if self.best is None else min(self.cap, max(2.0, 2 * self.best))


class Sweep:
    """Runs of one peer on one cell. `optimum` is the P* that suboptimality is measured from."""

    def __init__(self, worker: Worker, cell: Cell, optimum: float, limits: Limits) -> None:
        self.worker, self.cell, self.optimum, self.limits = worker, cell, optimum, limits
        self.clock = worker.machine.clock
        self.runs: list[Run] = []
        self.spent = 0.0

    def suboptimality(self, run: Run) -> float:
        """Relative distance to the optimum of a run; infinite when it returned nothing."""
        if "primal" not in run:
            return float("inf")
        return (run["primal"] - self.optimum) / abs(self.optimum)

    def fit(self, tolerance: float) -> Run:
        """One more run, kept."""
        run = self.worker.fit(self.cell, tolerance, self.limits.patience())
        self.spent += run.get(self.clock, run.get("killed", 0.0))
        run |= {name: [run[name]] for name in ("seconds", "cpu") if name in run}
        self.runs.append(run)
        return run

    def stalled(self) -> bool:
        """Three tolerances in a row that brought nothing."""
        gaps = [self.suboptimality(run) for run in self.runs]
        return len(gaps) >= 4 and min(gaps[-3:]) > 0.9 * min(gaps[:-3])

    def descend(self, start: float) -> None:
        """Tighten by tens until the last bar is met, or there is no hope."""
        tolerance = start
        while tolerance > TIGHTEST and self.spent < self.limits.budget:
            run = self.fit(tolerance)
            if "primal" not in run or self.suboptimality(run) <= BARS[-1] or self.stalled():
                return
            tolerance /= 10

    def bisect(self, bar: float) -> None:
        """Between the last tolerance that missed the bar and the first that met it."""
        met = [run["tolerance"] for run in self.runs if self.suboptimality(run) <= bar]
        missed = [run["tolerance"] for run in self.runs if self.suboptimality(run) > bar]
        if met and missed and min(missed) > max(met) and self.spent < self.limits.budget:
            self.fit((max(met) * min(missed)) ** 0.5)

    def repeat(self, bar: float) -> None:
        """Short winners run twice more."""
        met = [run for run in self.runs if self.suboptimality(run) <= bar]
        if not met:
            return
        winner = min(met, key=lambda run: run[self.clock][0])
        while winner[self.clock][0] < SHORT and len(winner["seconds"]) < 3:
            again = self.worker.fit(self.cell, winner["tolerance"], self.limits.patience())
            if "seconds" not in again:
                return
            winner["seconds"].append(again["seconds"])
            winner["cpu"].append(again["cpu"])

    def all(self, start: float, between: Callable[[], None]) -> list[Run]:
        """The whole sweep; `between` lets spdc run in the middle of it."""
        self.descend(start)
        between()
        for bar in BARS:
            self.bisect(bar)
        for bar in BARS:
            self.repeat(bar)
        return self.runs
