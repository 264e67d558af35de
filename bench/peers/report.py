"""Tables in Markdown from the stored results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from peers.sweep import BARS

Record = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """Who reached a bar, and when; or how far the best one came."""

    name: str
    seconds: float
    reached: bool
    gap: float


@dataclass(frozen=True)
class Outcome:
    """One cell at one bar."""

    cell: str
    bar: float
    ours: Entry
    peer: Entry | None

    @property
    def ratio(self) -> float:
        """Best peer's time over ours; a lower bound when no peer reached the bar."""
        if not self.ours.reached:
            return 0.0 if self.peer and self.peer.reached else float("nan")
        return self.peer.seconds / self.ours.seconds if self.peer else float("nan")

    def row(self) -> list[str]:
        """Cells of the table: spdc, best peer, ratio."""
        ours = f"{seconds(self.ours.seconds)} ({self.ours.name})"
        if not self.ours.reached:
            ours = f"gap {self.ours.gap:.0e} after {ours}"
        if self.peer is None:
            return [ours, "not run", "-"]
        if self.peer.reached:
            ratio = f"**{self.ratio:.2f}**" if self.ratio < 1.5 else f"{self.ratio:.2f}"
            return [ours, f"{seconds(self.peer.seconds)} ({self.peer.name})", ratio]
        stops = f"none; {self.peer.name} stops at {self.peer.gap:.0e}"
        return [ours, stops, f"> {self.ratio:.1f}" if self.ratio == self.ratio else "-"]


def seconds(value: float) -> str:
    """Three digits."""
    return f"{value:.3g}"


def optimum(records: Iterable[Record]) -> float:
    """The lowest value anybody found; spdc's certificate bounds it from below."""
    values = []
    for record in records:
        values += [run["primal"] for run in record["runs"] if "primal" in run]
    return min(values)


def peer_entries(record: Record, best: float, bar: float, clock: str) -> list[Entry]:
    """Every run of a peer, seen from one bar."""
    entries = []
    for run in record["runs"]:
        if "primal" not in run:
            continue
        gap = (run["primal"] - best) / abs(best)
        entries.append(Entry(record["peer"], median(run[clock]), gap <= bar, gap))
    return entries


def best_peer(records: list[Record], best: float, bar: float, clock: str) -> Entry | None:
    """The fastest that reached the bar, else the one that came nearest, with the longest cap."""
    entries = [e for record in records for e in peer_entries(record, best, bar, clock)]
    reached = [entry for entry in entries if entry.reached]
    if reached:
        return min(reached, key=lambda entry: entry.seconds)
    waited = [run["killed"] for record in records for run in record["runs"] if "killed" in run]
    if not entries:
        return Entry("nobody", max(waited), False, float("inf")) if waited else None
    nearest = min(entries, key=lambda entry: entry.gap)
    longest = max([entry.seconds for entry in entries] + waited)
    return Entry(nearest.name, longest, False, nearest.gap)


def our_entry(record: Record, bar: float, clock: str) -> Entry | None:
    """spdc at one bar: certified, or how far it came."""
    runs = [run for run in record["runs"] if run["tolerance"] == bar]
    if not runs:
        return None
    run = runs[0]
    return Entry(run["solver"], median(run[clock]), run["converged"], run["relative_gap"])


def outcomes(records: list[Record], clock: str) -> list[Outcome]:
    """Cells in the order they were run, both bars."""
    cells: dict[str, list[Record]] = {}
    for record in records:
        cells.setdefault(record["cell"], []).append(record)
    result = []
    for cell, of_cell in cells.items():
        ours = [record for record in of_cell if record["peer"] == "spdc"]
        if not ours:
            continue
        best = optimum(of_cell)
        peers = [record for record in of_cell if record["peer"] not in ("spdc", "optimum")]
        for bar in BARS:
            entry = our_entry(ours[-1], bar, clock)
            if entry is not None:
                result.append(Outcome(cell, bar, entry, best_peer(peers, best, bar, clock)))
    return result


def main_table(results: list[Outcome]) -> str:
    """One row per cell, both bars side by side."""
    lines = ["| cell | spdc, certified 1e-3 | best peer to 1e-3 | ratio "
             "| spdc, certified 1e-6 | best peer to 1e-6 | ratio |",
             "|---|---|---|---:|---|---|---:|"]
    cells = list(dict.fromkeys(outcome.cell for outcome in results))
    for cell in cells:
        columns = [cell]
        for bar in BARS:
            found = [o for o in results if o.cell == cell and o.bar == bar]
            columns += found[0].row() if found else ["", "", ""]
        lines.append("| " + " | ".join(columns) + " |")
    return "\n".join(lines)


def summary(results: list[Outcome]) -> str:
    """Median, worst, and the shares that the goals speak of."""
    lines = ["| bar | cells | median ratio | worst | share >= 1 | share >= 1.5 | share >= 3 |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    for bar in BARS:
        judged = [o for o in results if o.bar == bar and o.ratio == o.ratio]
        if not judged:
            continue
        ratios = [o.ratio for o in judged]
        worst = min(judged, key=lambda o: o.ratio)
        shares = [f"{sum(r >= goal for r in ratios) / len(ratios):.0%}" for goal in (1, 1.5, 3)]
        lines.append(f"| {bar:.0e} | {len(ratios)} | {median(ratios):.2f} | {worst.ratio:.2f} "
                     f"({worst.cell}) | " + " | ".join(shares) + " |")
    return "\n".join(lines)


def peer_table(records: list[Record], clock: str) -> str:
    """Every peer in every cell: seconds to 1e-3 / 1e-6."""
    lines = ["| cell | peer | to 1e-3 | to 1e-6 | nearest |", "|---|---|---:|---:|---:|"]
    for record in records:
        if record["peer"] in ("spdc", "optimum"):
            continue
        best = optimum(r for r in records if r["cell"] == record["cell"])
        columns = [record["cell"], record["peer"]]
        for bar in BARS:
            entry = best_peer([record], best, bar, clock)
            columns.append(seconds(entry.seconds) if entry and entry.reached else status(record))
        gaps = [entry.gap for entry in peer_entries(record, best, BARS[0], clock)]
        columns.append(f"{max(min(gaps), 0):.0e}" if gaps else "-")
        lines.append("| " + " | ".join(columns) + " |")
    return "\n".join(lines)


def status(record: Record) -> str:
    """Why a bar was not reached."""
    last = record["runs"][-1] if record["runs"] else {}
    if "killed" in last:
        return f"> {last['killed']:.0f} s"
    return "error" if "error" in last else "stops"


def write_between(path: Path, marker: str, text: str) -> None:
    """Replace what stands between <!-- marker --> and <!-- end marker -->."""
    page = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {marker} -->\n", f"<!-- end {marker} -->"
    if begin not in page or end not in page:
        raise SystemExit(f"{path} has no section between {begin.strip()} and {end}.")
    head, rest = page.split(begin, 1)
    tail = rest.split(end, 1)[1]
    path.write_text(f"{head}{begin}{text.strip()}\n{end}{tail}", encoding="utf-8")
