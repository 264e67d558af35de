"""The comparison: for every cell spdc and each peer in turn, results kept, tables at the end."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from peers import report
from peers.data import Source, sources
from peers.problem import L1_LOSSES, Cell, load, objective
from peers.process import Machine, Worker, cores_for, run_spdc
from peers.registry import PEERS, Peer
from peers.sweep import BARS, SHORT, Limits, Sweep

L2_LOSSES = ("logistic", "squared_hinge", "hinge")
OPTIMUM_TOLERANCE = 1e-9


def parse() -> argparse.Namespace:
    """The options; everything has a default."""
    parser = argparse.ArgumentParser(prog="./run bench peers", description=__doc__)
    add = parser.add_argument
    add("folder", nargs="?", type=Path, metavar="DATA_DIR", help="default: bundled and generated")
    add("--data", nargs="+", default=[], help="only these sets")
    add("--files", nargs="+", type=Path, default=[], metavar="FILE",
        help="LIBSVM text of your own, plain or .xz, in place of the sets")  # fmt: skip
    add("--loss", nargs="+", default=[*L2_LOSSES, *L1_LOSSES])
    add("--l2", nargs="+", type=float, default=[1e-4, 1e-6, 1e-8])
    add("--l1", nargs="+", type=float, default=[0.1, 0.01], help="fractions of lambda_max")
    add("--peers", nargs="+", default=[], help="only these, by name or library")
    add("--cap", type=float, default=30.0, help="seconds after which one fit is killed")
    add("--budget", type=float, default=90.0, help="seconds for one peer on one cell")
    add("--optimum", type=float, default=300.0, help="seconds for the reference optimum")
    add("--full", action="store_true", help="let peers run on that cannot win any more")
    add("--all-cores", action="store_true", help="every core instead of one")
    add("--threads", type=int, default=1)
    add("--clock", choices=["seconds", "cpu"], default="seconds", help="cpu: on a busy machine")
    add("--fresh", action="store_true", help="forget earlier results of the chosen cells")
    add("--table", action="store_true", help="run nothing, print what is stored")
    add("--details", action="store_true", help="print every peer, too")
    add("--write", type=Path, metavar="PAGE", help="put the tables into this Markdown page")
    add("--spdc", type=Path, default=Path("build/release/spdc"))
    add("--work", type=Path, default=Path("build/bench"), help=argparse.SUPPRESS)
    return parser.parse_args()


def say(message: str) -> None:
    """Progress."""
    print(message, file=sys.stderr, flush=True)


class Store:
    """Results as lines of JSON; the last line of a key counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records: dict[tuple[Any, ...], dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                self.records[self.key(record)] = record

    @staticmethod
    def key(record: dict[str, Any]) -> tuple[Any, ...]:
        """What makes two results the same question."""
        return record["cell"], record["peer"], record["threads"], record.get("build")

    def add(self, record: dict[str, Any]) -> None:
        """Keep a result, on disk at once."""
        self.records[self.key(record)] = record
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


class Bench:
    """One run of the whole thing."""

    def __init__(self, options: argparse.Namespace) -> None:
        threads = len(os.sched_getaffinity(0)) if options.all_cores else options.threads
        self.options = options
        work = options.work.resolve()
        spdc = options.spdc.resolve()
        self.machine = Machine(work, spdc, threads, cores_for(threads), options.clock)
        self.store = Store(work / "peers.jsonl")
        self.build = hashlib.sha256(spdc.read_bytes()).hexdigest()[:12]
        self.sources = sources(options.folder, options.data, options.files, work / "data")

    def cells(self) -> list[tuple[Source, Cell]]:
        """l2 losses on tall and text data, l1 on text and on data with many features; on files all."""
        chosen = []
        for source in self.sources:
            rows, features = source.shape
            for loss in self.options.loss:
                l1 = loss in L1_LOSSES
                suits = features >= rows if l1 else rows >= 2000
                if not suits and not self.options.files:
                    continue
                strengths = self.options.l1 if l1 else self.options.l2
                chosen += [(source, Cell(source.name, loss, s)) for s in strengths]
        return chosen

    def peers(self, source: Source, cell: Cell) -> list[Peer]:
        """Those that solve this loss and are installed."""
        names = self.options.peers
        wanted = [p for p in PEERS if not names or p.name in names or p.module in names]
        able = [p for p in wanted if p.accepts(cell.loss, source.shape[1], self.machine.threads)]
        return [p for p in able if self.machine.has(p)]

    def known(self, cell: Cell, peer: str, build: str | None = None) -> dict[str, Any] | None:
        """A stored result."""
        return self.store.records.get((cell.name, peer, self.machine.threads, build))

    def keep(self, cell: Cell, peer: str, runs: list[Any], build: str | None = None) -> None:
        """Store a result."""
        record = {"cell": cell.name, "peer": peer, "threads": self.machine.threads, "runs": runs}
        self.store.add(record | ({"build": build} if build else {}))

    def optimum(self, source: Source, cell: Cell) -> float:
        """P* by spdc, as tight as it gets; our evaluator must agree with its certificate."""
        known = self.known(cell, "optimum")
        if known is None:
            data = load(source.cache)
            penalty = data.penalty(cell.loss, cell.strength)
            model = self.machine.work / "model"
            result = run_spdc(
                self.machine, cell, source.text, penalty, OPTIMUM_TOLERANCE, self.options.optimum, model
            )
            if "error" in result:
                raise SystemExit(result["error"])
            check_evaluator(model, data, cell, result["primal"])
            keys = ("primal", "dual", "relative_gap", "seconds", "solver")
            self.keep(cell, "optimum", [{key: result[key] for key in keys}])
        records = [r for r in self.store.records.values() if r["cell"] == cell.name]
        return report.optimum(records)

    def run(self) -> None:
        """Every cell; a finished pair is not run again."""
        cells = self.cells()
        for number, (source, cell) in enumerate(cells, 1):
            prefix = f"[{number}/{len(cells)}] {cell.name}"
            say(f"{prefix}: optimum")
            optimum = self.optimum(source, cell)
            ours = Ours(self, source, cell)
            ours.sample()
            for peer in self.peers(source, cell):
                if self.known(cell, peer.name) is None or self.options.fresh:
                    say(f"{prefix}: {peer.name}")
                    self.run_peer(source, cell, peer, optimum, ours)
            ours.finish()
            self.say_cell(cell)

    def run_peer(self, source: Source, cell: Cell, peer: Peer, best: float, ours: Ours) -> None:
        """One sweep in a process of its own."""
        options = self.options
        limits = Limits(options.cap, options.budget, None if options.full else self.best(cell))
        with Worker(self.machine, peer, source.cache, cell.loss) as worker:
            runs = Sweep(worker, cell, best, limits).all(peer.start, ours.sample)
        self.keep(cell, peer.name, runs)

    def best(self, cell: Cell) -> float | None:
        """Seconds of the fastest peer to the tightest bar so far."""
        records = [r for r in self.chosen() if r["cell"] == cell.name]
        peers = [r for r in records if r["peer"] not in ("spdc", "optimum")]
        if not peers:
            return None
        entry = report.best_peer(peers, report.optimum(records), BARS[-1], self.machine.clock)
        return entry.seconds if entry and entry.reached else None

    def chosen(self) -> list[dict[str, Any]]:
        """Stored results of this thread count, this spdc and these cells."""
        names = [cell.name for _, cell in self.cells()]
        records = [r for r in self.store.records.values() if r["threads"] == self.machine.threads]
        records = [r for r in records if r.get("build", self.build) == self.build]
        return sorted(
            (r for r in records if r["cell"] in names), key=lambda r: names.index(r["cell"])
        )

    def say_cell(self, cell: Cell) -> None:
        """The cell's rows, as progress."""
        records = [r for r in self.chosen() if r["cell"] == cell.name]
        for outcome in report.outcomes(records, self.options.clock):
            say(f"    {outcome.bar:.0e}: " + " | ".join(outcome.row()))

    def tables(self) -> str:
        """What is printed at the end."""
        records = self.chosen()
        results = report.outcomes(records, self.options.clock)
        parts = [report.main_table(results), report.summary(results)]
        if self.options.details:
            parts.append(report.peer_table(records, self.options.clock))
        return "\n\n".join(parts)


class Ours:
    """spdc on one cell, sampled between the peers."""

    def __init__(self, bench: Bench, source: Source, cell: Cell) -> None:
        self.bench, self.source, self.cell = bench, source, cell
        self.runs: dict[float, dict[str, Any]] = {}
        data = load(source.cache)
        self.penalty = data.penalty(cell.loss, cell.strength)
        known = bench.known(cell, "spdc", bench.build)
        self.done = known is not None and not bench.options.fresh

    def sample(self) -> None:
        """One run per bar: three when short, one when long."""
        if self.done:
            return
        for bar in BARS:
            run = self.runs.get(bar)
            if run is not None and self.enough(run):
                continue
            cap = max(60.0, self.bench.options.cap)
            result = run_spdc(
                self.bench.machine, self.cell, self.source.text, self.penalty, bar, cap
            )
            if "error" in result:
                raise SystemExit(result["error"])
            self.record(bar, result)

    def enough(self, run: dict[str, Any]) -> bool:
        """Whether no more samples are needed."""
        samples = run[self.bench.machine.clock]
        return samples[0] >= SHORT or len(samples) >= 3

    def record(self, bar: float, result: dict[str, Any]) -> None:
        """Add a sample."""
        keys = ("solver", "converged", "relative_gap", "primal", "passes")
        run = self.runs.setdefault(
            bar, {"tolerance": bar, "seconds": [], "cpu": []} | {key: result[key] for key in keys}
        )
        run["seconds"].append(result["seconds"])
        run["cpu"].append(result["cpu"])

    def finish(self) -> None:
        """The samples that are missing, then store."""
        if self.done:
            return
        for _ in range(2):
            self.sample()
        runs = list(self.runs.values())
        self.bench.keep(self.cell, "spdc", runs, self.bench.build)


def check_evaluator(model: Path, data: Any, cell: Cell, primal: float) -> None:
    """The objective the peers are judged by is the one spdc certifies."""
    weights = np.zeros(data.rows.shape[1])
    lines = iter(model.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line.startswith("weights "):
            break
    for line in lines:
        index, value = line.split()
        weights[int(index) - 1] = float(value)
    value = objective(data, cell.loss, cell.strength, weights)
    if not abs(value - primal) <= 1e-9 * abs(primal):
        raise SystemExit(f"{cell.name}: spdc says P = {primal!r}, the evaluator {value!r}.")


def main() -> None:
    """Run, print, write."""
    options = parse()
    bench = Bench(options)
    if not options.table:
        bench.run()
    text = bench.tables()
    print(text)
    if options.write:
        threads = bench.machine.threads
        report.write_between(options.write, f"peers {threads} thread" + "s" * (threads > 1), text)


if __name__ == "__main__":
    main()
