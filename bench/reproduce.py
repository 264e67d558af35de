"""The paper's experiments again: runs what bench/figures/*.toml declare, and writes docs/reproduce.md.

    reproduce.py run  [--data DIR] [--jobs N] [--seconds S] [--only NAME,...]   needs the program and Python only
    reproduce.py page                                                          needs matplotlib; draws what has been run

Every curve is one file under build/reproduce/results, so a run can be stopped and goes on where it was. A figure is a grid: every value of
every axis in [vary] meets every solver in [solvers]; [problem] holds options of `spdc compare`, with {axis} for the value of an axis.
"""

import argparse
import concurrent.futures
import csv
import itertools
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HOME = pathlib.Path(__file__).resolve().parent.parent
SPDC = pathlib.Path(os.environ.get("SPDC", HOME / "build/release/spdc"))
WORK = pathlib.Path(os.environ.get("REPRODUCE_WORK", HOME / "build/reproduce"))
OPTIMUM = "optimum"  # the label of the run that certifies P*


# --- the declarations -----------------------------------------------------------------------------------------------------------------


def read_toml(path):
    try:
        import tomllib

        return tomllib.loads(path.read_text())
    except ImportError:  # Python before 3.11
        return read_simple_toml(path.read_text())


def read_simple_toml(text):
    """What the figures use of TOML: tables, arrays of tables, and values that are also JSON, each on one line."""
    root = {}
    table = root
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[["):
            table = {}
            root.setdefault(line.strip("[]"), []).append(table)
        elif line.startswith("["):
            table = root.setdefault(line.strip("[]"), {})
        elif line.startswith('"'):
            key, value = line[1:].split('" = ', 1)
            table[key] = json.loads(value)
        else:
            key, value = line.split(" = ", 1)
            table[key] = json.loads(value)
    return root


class Figure:
    def __init__(self, path):
        self.name = path.stem
        declared = read_toml(path)
        self.title = declared["title"]
        self.text = declared.get("text", "")
        self.show = declared["show"]  # "curves" or "sweep"
        self.problem = declared["problem"]
        self.vary = {axis: values if isinstance(values, list) else [values] for axis, values in declared["vary"].items()}
        self.solvers = declared["solvers"]
        self.claims = declared.get("claims", [])
        self.axes = declared.get("axes", {})
        self.predicted = declared.get("predicted", {})

    def cells(self):
        """The grid without the solvers, as dictionaries axis -> value."""
        for values in itertools.product(*self.vary.values()):
            yield dict(zip(self.vary, values))

    def curves(self):
        for cell in self.cells():
            if self.show == "curves":
                yield Curve(self, cell, OPTIMUM, "auto")
            for label, solver in self.solvers.items():
                yield Curve(self, cell, label, solver)


def figures(only=None):
    found = [Figure(path) for path in sorted((HOME / "bench/figures").glob("*.toml"))]
    return [figure for figure in found if not only or figure.name in only]


class Curve:
    """One run of one solver."""

    def __init__(self, figure, cell, label, solver):
        self.figure, self.cell, self.label = figure, cell, label
        self.solvers = ["auto", "spdc_fast"] if label == OPTIMUM else [fill(solver, cell)]  # until one gets there
        self.options = {key: fill(str(value), cell) for key, value in figure.problem.items()}
        if label == OPTIMUM:
            self.options.update({"tolerance": "1e-10", "max-passes": "3000"})
        where = "_".join(slug(f"{axis}={data_name(value) if axis == 'data' else value}") for axis, value in cell.items())
        self.path = WORK / "results" / figure.name / where / f"{slug(label)}.json"

    def result(self):
        return json.loads(self.path.read_text()) if self.path.exists() else None


def fill(text, cell):
    """{axis}, or an expression of axes: {0.3*eps}."""
    return re.sub(r"\{([^}]*)\}", lambda found: f"{eval(found[1], {}, dict(cell))}", text)


def slug(text):
    return "".join(c if c.isalnum() or c in "=.-" else "-" for c in str(text))


# --- data -----------------------------------------------------------------------------------------------------------------------------
# "RCV1 = rcv1v2_subsets.binary" is a file of the folder that was given, called RCV1; "bundled a9a" comes with the repository;
# "synthetic rows=500 features=500 decay=1" is made here.


def data_name(source):
    return source.split(" = ")[0]


def normal(generator):
    """Box and Muller's, because random.gauss is not promised to stay the same."""
    return math.sqrt(-2 * math.log(1 - generator.random())) * math.cos(2 * math.pi * generator.random())


def synthetic(path, rows, features, decay=1.0, spread=0.0, classes=0, seed=1):
    """Rows with covariance diag(j^-2 decay), each times exp(spread * normal); b = <a, 1> + noise, or its sign."""
    generator = random.Random(int(seed))
    scales = [(j + 1) ** -decay for j in range(int(features))]
    with open(path, "w") as out:
        for _ in range(int(rows)):
            size = math.exp(spread * normal(generator))
            row = [size * scale * normal(generator) for scale in scales]
            target = sum(row) + normal(generator)
            target = ("+1" if target > 0 else "-1") if classes else f"{target:.9g}"
            out.write(f"{target} {' '.join(f'{j + 1}:{value:.9g}' for j, value in enumerate(row))}\n")


def find_in(folder, name):
    for ending in (".spdc", "", ".xz"):
        if folder and (folder / (name + ending)).exists():
            return folder / (name + ending)
    return None


def unpack(packed, plain):
    try:
        import lzma
    except ImportError:  # a Python without it
        with open(plain, "wb") as out:
            subprocess.run(["xz", "-dc", packed], stdout=out, check=True)
        return
    with lzma.open(packed) as text, open(plain, "wb") as out:
        shutil.copyfileobj(text, out)


def prepared(source, folder):
    """The data as a .spdc file, which opens in no time; None when they are not there."""
    source = source.split(" = ")[-1]
    target = WORK / "data" / f"{slug(source)}.spdc"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    words = source.split()
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        text = pathlib.Path(scratch) / "data"
        if words[0] == "synthetic":
            synthetic(text, **{key: float(value) for key, value in (word.split("=") for word in words[1:])})
        else:
            found = HOME / "data" / f"{words[1]}.xz" if words[0] == "bundled" else find_in(folder, source)
            if found is None:
                return None
            if found.suffix == ".xz":  # here, because the program may have been built without liblzma
                unpack(found, text)
            else:
                text = found
        made = pathlib.Path(scratch) / "made.spdc"
        subprocess.run([SPDC, "convert", text, made], check=True)
        made.rename(target)
    return target


# --- running --------------------------------------------------------------------------------------------------------------------------


def command(curve, solver, data, traces):
    line = [SPDC, "compare", data, "--solvers", solver, "--json", "--quiet", "--best-effort", "--trace", traces]
    options = {"threads": "1", **curve.options}
    if "l2" in curve.cell:
        options["l2"] = str(curve.cell["l2"])
    options.pop("data", None)
    return line + [word for key, value in options.items() for word in (f"--{key}", value)]


class Runner:
    def __init__(self, folder, seconds):
        self.folder = folder
        self.end = time.monotonic() + seconds if seconds else math.inf
        self.lock = threading.Lock()
        self.done = 0

    def run(self, curve, data, total):
        """False when time is up."""
        start = time.monotonic()
        for solver in curve.solvers:
            with tempfile.TemporaryDirectory() as traces:
                out = self.output(command(curve, solver, data, traces))
                if out is None:
                    return False
                run = json.loads(out)["runs"][0]
                if run.get("converged") or solver == curve.solvers[-1]:
                    self.store(curve, run, traces)
                    break
        with self.lock:
            self.done += 1
            spent = time.monotonic() - start
            print(f"[{self.done}/{total}] {curve.figure.name} {curve.cell} {curve.label}: {spent:.1f} s", flush=True)
        return True

    def output(self, line):
        """What the program prints, or None when time is up."""
        if time.monotonic() >= self.end:
            return None
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            limit = None if self.end == math.inf else max(self.end - time.monotonic(), 0.1)
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None
        if not out:
            raise RuntimeError(f"{' '.join(map(str, line))}: {err.strip()}")
        return out

    @staticmethod
    def store(curve, run, traces):
        points = []
        for path in pathlib.Path(traces).glob("*.csv"):
            with open(path) as lines:
                for row in csv.DictReader(lines):
                    points.append([float(row[key]) for key in ("passes", "seconds_solver", "primal", "dual", "relative_gap")])
        run["trace"] = None
        curve.path.parent.mkdir(parents=True, exist_ok=True)
        partial = curve.path.with_suffix(".partial")
        partial.write_text(json.dumps({"run": run, "points": points}))
        partial.rename(curve.path)


def run_all(options):
    chosen = figures(options.only.split(",") if options.only else None)
    waiting, missing = [], set()
    for figure in chosen:
        for curve in figure.curves():
            if curve.path.exists():
                continue
            source = fill(curve.cell.get("data", figure.problem.get("data", "")), curve.cell)
            data = prepared(source, options.data)
            if data is None:
                missing.add(source)
                continue
            waiting.append((curve, data))
    for source in sorted(missing):
        print(f"no data for {source}: give their folder", file=sys.stderr)
    timed = [pair for pair in waiting if pair[0].figure.axes.get("y") == "seconds"]  # alone, so that nothing disturbs the clock
    others = [pair for pair in waiting if pair not in timed]
    others.sort(key=lambda pair: -pair[1].stat().st_size)  # the longest first
    print(f"{len(waiting)} curves to run", flush=True)
    runner = Runner(options.data, options.seconds)
    finished = True
    for pairs, jobs in ((others, options.jobs), (timed, 1)):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            results = [pool.submit(runner.run, curve, data, len(waiting)) for curve, data in pairs]
            finished = all([result.result() for result in results]) and finished
    print("all curves are there" if finished else "time is up: the same command goes on from here")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--data", type=pathlib.Path, help="folder with the data sets of figures 2 and 3")
    running.add_argument("--jobs", type=int, default=os.cpu_count(), help="curves at a time")
    running.add_argument("--seconds", type=float, help="stop after so long; the next call goes on")
    running.add_argument("--only", help="names of figures, with commas")
    commands.add_parser("page")
    options = parser.parse_args()
    if options.command == "run":
        return run_all(options)
    import reproduce_page

    return reproduce_page.write(figures())


if __name__ == "__main__":
    sys.exit(main())
