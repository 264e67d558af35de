"""Time to a certified gap of 1e-6 against rows, features, non-zeros a row and threads.

./run bench scaling [--quick]: generated text (Zipf) and generated dense data, l2 = 1/n, each size
doubled around a middle one, the best of three runs. Linear growth shows as a constant last column.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import shapes
from peers.report import write_between

TOLERANCE = 1e-6


@dataclass(frozen=True)
class Size:
    """What is varied; `words` are the non-zeros a row."""

    kind: str
    rows: int
    features: int
    words: int
    threads: int = 1

    def file(self, work: Path) -> Path:
        """The data as LIBSVM text, made once."""
        path = work / f"{self.kind}_{self.rows}_{self.features}_{self.words}.svm"
        if not path.exists():
            if self.kind == "text":
                data = shapes.text(self.rows, self.features, self.words)
            else:
                data = shapes.dense(self.rows, self.features)
            shapes.write_libsvm(path, data)
        return path


def doubled(middle: int, steps: int) -> list[int]:
    """middle / 2^steps ... middle * 2^steps."""
    return [int(middle * 2.0**k) for k in range(-steps, steps + 1)]


def thread_counts() -> list[int]:
    """1, 2, 4, ... and all cores."""
    cores = len(os.sched_getaffinity(0))
    return sorted({cores, *(2**k for k in range(cores.bit_length()) if 2**k <= cores)})


def series(steps: int) -> Iterator[tuple[str, str, list[Size]]]:
    """Tables: title, the field that varies, the sizes."""
    text = Size("text", 20000, 50000, 50)
    dense = Size("dense", 40000, 50, 50)
    for base in (text, dense):
        for field in ("rows", "features", "words"):
            if base.kind == "dense" and field == "words":
                continue
            sizes = [replace(base, **{field: v}) for v in doubled(getattr(base, field), steps)]
            yield f"{base.kind}: {field}", field, sizes
        largest = replace(base, rows=base.rows * 2**steps)
        sizes = [replace(largest, threads=count) for count in thread_counts()]
        yield f"{base.kind}: threads, {largest.rows} rows", "threads", sizes


def run(spdc: Path, size: Size, loss: str, file: Path, clock: str) -> dict[str, Any]:
    """The best of three."""
    command = [spdc, "train", "--json", "--quiet", "--best-effort", "--loss", loss]
    command += ["--tolerance", TOLERANCE, "--max-seconds", 60, "--threads", size.threads]
    command += ["--features", size.features, file]
    results = []
    for _ in range(3):
        done = subprocess.run([str(part) for part in command], capture_output=True, check=True)
        results.append(json.loads(done.stdout))
    return min(results, key=lambda result: result[clock])


def table(title: str, field: str, runs: list[tuple[Size, str, dict[str, Any]]], clock: str) -> str:
    """One row per size and loss."""
    lines = [f"**{title}**", "", f"| {field} | loss | solver | threads used | passes | seconds "
             "| ns a non-zero |", "|---:|---|---|---:|---:|---:|---:|"]  # fmt: skip
    for size, loss, result in runs:
        per_entry = 1e9 * result[clock] / result["nonzeros"]
        certified = "" if result["converged"] else f" (gap {result['relative_gap']:.0e})"
        lines.append(f"| {getattr(size, field)} | {loss} | {result['solver']} | {result['threads']} "
                     f"| {result['passes']:.1f} | {result[clock]:.3g}{certified} "
                     f"| {per_entry:.0f} |")  # fmt: skip
    return "\n".join(lines)


def plot(path: Path, tables: list[tuple[str, str, Any, str]]) -> None:
    """A small picture per table, both axes logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, (len(tables) + 1) // 2, figsize=(14, 7), squeeze=False)
    for axis, (title, field, runs, clock) in zip(axes.flat, tables, strict=False):
        for loss in dict.fromkeys(loss for _, loss, _ in runs):
            points = [(getattr(s, field), r[clock]) for s, name, r in runs if name == loss]
            axis.loglog(*zip(*points, strict=True), marker="o", label=loss)
        axis.set(title=title, xlabel=field, ylabel="seconds")
        axis.grid(True, which="both", alpha=0.3)
        axis.legend()
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Run, print, draw, write."""
    parser = argparse.ArgumentParser(prog="./run bench scaling", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three sizes instead of five")
    parser.add_argument("--loss", nargs="+", default=["logistic", "hinge"])
    parser.add_argument("--clock", choices=["seconds", "seconds_cpu"], default="seconds")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="into this Markdown page")
    parser.add_argument("--spdc", type=Path, default=Path("build/release/spdc"))
    parser.add_argument("--work", type=Path, default=Path("build/bench"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    work = options.work / "scaling"
    work.mkdir(parents=True, exist_ok=True)
    tables = []
    for title, field, sizes in series(1 if options.quick else 2):
        print(title, file=sys.stderr)
        clock = "seconds" if field == "threads" else options.clock
        runs = [
            (size, loss, run(options.spdc, size, loss, size.file(work), clock))
            for loss in options.loss
            for size in sizes
        ]
        tables.append((title, field, runs, clock))
    text = "\n\n".join(table(*entry) for entry in tables)
    print(text)
    if options.plot:
        plot(options.plot, tables)
    if options.write:
        write_between(options.write, "scaling", text)


if __name__ == "__main__":
    main()
