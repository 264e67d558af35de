"""Does `auto` pick well on data it was not made for? ./run bench robust [--quick]

For every case the time of `auto` to a certified gap of 1e-6 against the fastest engine that accepts
the problem. Engines slower than `auto` are stopped when its time is over, so a case costs about as
many times its time as there are engines.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import shapes
from peers.report import write_between

TOLERANCE = 1e-6
SECONDS = 60.0  # what `auto` may take
FLOOR = 0.005  # seconds; shorter times count as this: the start of a process is noise
WITH_INTERCEPT = ("unscaled_columns", "imbalanced", "far_from_zero", "wine", "diabetes")
REGRESSION_SETS = ("diabetes",)


@dataclass(frozen=True)
class Case:
    """A data file and the options of a problem on it."""

    data: str
    file: Path
    features: int
    options: tuple[str, ...]

    @property
    def name(self) -> str:
        """As in the table."""
        return f"{self.data} `{' '.join(self.options)}`"


def problems(is_regression: bool, quick: bool) -> list[tuple[str, ...]]:
    """Losses and penalties for one data set."""
    losses = ["squared", "huber"] if is_regression else ["logistic", "squared_hinge", "hinge"]
    l2 = ["1e-6"] if quick else ["1e-3", "1e-6", "1e-9"]
    l1 = ["0.1max"] if quick else ["0.1max", "0.01max"]
    found = [("--loss", loss, "--l2", strength) for loss in losses for strength in l2]
    return found + [("--loss", losses[0], "--l1", strength) for strength in l1]


def cases(work: Path, quick: bool) -> list[Case]:
    """Every shape and every bundled set, each with its problems."""
    work.mkdir(parents=True, exist_ok=True)
    sets = {shape.__name__: shape(3) for shape in shapes.SHAPES}
    sets |= {f"{name}, numbers": shapes.regression(data, 3) for name, data in sets.items()}
    sets |= shapes.bundled()
    found = []
    for name, data in sets.items():
        is_regression = name.endswith(", numbers") or name in REGRESSION_SETS
        file = work / f"{name.replace(', ', '_')}.svm"
        shapes.write_libsvm(file, data)
        features = data[0].shape[1]
        for options in problems(is_regression, quick):
            found.append(Case(name, file, features, options))
            if name.split(",")[0] in WITH_INTERCEPT and "--l2" in options:
                found.append(Case(name, file, features, (*options, "--intercept", "free")))
    return found


def engines(spdc: Path) -> list[str]:
    """All solvers, from the message that lists them."""
    wrong = [str(spdc), "train", "--solver", "?", "/dev/null"]
    message = subprocess.run(wrong, capture_output=True, text=True, check=False).stderr
    names = message.rsplit("known:", 1)[1].replace(",", " ").split()
    return [name for name in names if name != "auto"]


def run(spdc: Path, case: Case, engine: str, seconds: float, clock: str) -> dict[str, Any] | None:
    """The result, or None where the engine refuses the problem."""
    command = [spdc, "train", "--solver", engine, "--json", "--quiet", "--best-effort"]
    command += ["--threads", 1, "--tolerance", TOLERANCE, "--max-seconds", seconds]
    command += ["--features", case.features, *case.options, case.file]
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    if done.returncode == 1 and engine != "auto":
        return None
    if done.returncode != 0:
        return {"solver": engine, "converged": False, "relative_gap": float("inf"), "time": seconds,
                "message": done.stderr.strip()}  # fmt: skip
    result = json.loads(done.stdout)
    result["time"] = max(result[clock], FLOOR)
    return result


def judge(spdc: Path, case: Case, names: list[str], clock: str) -> dict[str, Any]:
    """auto, then everybody else within its time."""
    ours = run(spdc, case, "auto", SECONDS, clock)
    assert ours is not None
    best = ours
    for engine in names:
        if engine == ours["solver"]:
            continue
        # On a busy machine wall time runs ahead of CPU time.
        patience = (best["seconds"] if best["converged"] else SECONDS / 3) * 1.2 + 0.02
        other = run(spdc, case, engine, patience, clock)
        if other and other["converged"] and (not best["converged"] or other["time"] < best["time"]):
            best = other
    return {
        "case": case.name,
        "engine": ours["solver"],
        "seconds": ours["time"],
        "gap": ours["relative_gap"],
        "certified": ours["converged"],
        "best": best["solver"] if best["converged"] else "none",
        "best_seconds": best["time"],
        "ratio": ours["time"] / best["time"] if ours["converged"] else float("inf"),
        "message": ours.get("message", ""),
    }


def row(result: dict[str, Any]) -> str:
    """One line of a table."""
    ratio = f"{result['ratio']:.1f}" if result["certified"] else "-"
    return (f"| {result['case']} | {result['engine']} | {result['seconds']:.3g} "
            f"| {result['gap'] or float('nan'):.1e} | {result['best']} "
            f"| {result['best_seconds']:.3g} | {ratio} |")  # fmt: skip


def table(results: list[dict[str, Any]]) -> str:
    """Rows under a header."""
    header = ["| case | auto picks | seconds | gap | fastest engine | its seconds | ratio |",
              "|---|---|---:|---:|---|---:|---:|"]  # fmt: skip
    return "\n".join(header + [row(result) for result in results])


def summary(results: list[dict[str, Any]]) -> str:
    """Worst, median, and what was not certified."""
    certified = [result for result in results if result["certified"]]
    failed = [result for result in results if not result["certified"]]
    ratios = [result["ratio"] for result in certified]
    text = [f"{len(results)} cases, {len(certified)} certified to {TOLERANCE:g} by auto within "
            f"{SECONDS:g} s. Time of auto over the fastest engine: median {median(ratios):.2f}, "
            f"nine of ten below {np.quantile(ratios, 0.9):.2f}, worst {max(ratios):.2f}."]  # fmt: skip
    slow = sorted(certified, key=lambda result: -result["ratio"])[:15]
    text += ["The fifteen worst ratios:", table(slow)]
    long = sorted(certified, key=lambda result: -result["seconds"])[:10]
    text += ["The ten that took longest:", table(long)]
    text += ["Not certified:", table(failed)] if failed else ["None was left without."]
    return "\n\n".join(text)


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(prog="./run bench robust", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one lambda per loss")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--all", action="store_true", help="print every case")
    parser.add_argument("--clock", choices=["seconds", "seconds_cpu"], default="seconds")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="into this Markdown page")
    parser.add_argument("--spdc", type=Path, default=Path("build/release/spdc"))
    parser.add_argument("--work", type=Path, default=Path("build/bench"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = engines(options.spdc)
    results = []
    chosen = cases(options.work / "shapes", options.quick)
    chosen = [case for case in chosen if options.only in case.name]
    with open(options.work / "robust.jsonl", "w", encoding="utf-8") as log:
        for number, case in enumerate(chosen, 1):
            results.append(judge(options.spdc, case, names, options.clock))
            print(json.dumps(results[-1]), file=log, flush=True)
            print(f"[{number}/{len(chosen)}] {row(results[-1])}", file=sys.stderr, flush=True)
    text = summary(results)
    print(table(results) + "\n\n" + text if options.all else text)
    if options.write:
        write_between(options.write, "robust", text)


if __name__ == "__main__":
    main()
