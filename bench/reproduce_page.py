"""Draws what reproduce.py has run and writes docs/reproduce.md: figures, and a verdict for each claim with the number that decides it."""

import itertools
import json
import math
import subprocess

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from reproduce import HOME, OPTIMUM, SPDC, Curve, data_name, fill, prepared

FLOOR = 1e-9  # of P - P* in the pictures
PICTURES = HOME / "docs/reproduce"
DASHES = ["-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2))]
plt.rcParams.update({"font.size": 9, "axes.grid": True, "grid.color": "#dddddd", "legend.frameon": False, "svg.fonttype": "none"})


# --- what was measured ----------------------------------------------------------------------------------------------------------------


class Cell:
    """One place of the grid: the curves of all solvers there, and how far above the optimum they are."""

    def __init__(self, figure, cell):
        self.figure, self.cell = figure, cell
        self.results = {}
        for label, solver in figure.solvers.items():
            result = Curve(figure, cell, label, solver).result()
            if result and "refused" not in result["run"]:
                self.results[label] = result
        optimum = Curve(figure, cell, OPTIMUM, "auto").result() if figure.show == "curves" else None
        # the certified lower bound, so that the distance is never flattered
        self.bound = max([optimum["run"]["dual"]] + [r["run"]["dual"] for r in self.results.values()]) if optimum else None

    def name(self):
        return ", ".join(data_name(v) if a == "data" and " = " in v else f"{a} = {v:g}" for a, v in self.cell.items() if a != "data" or " = " in v)

    def course(self, label):
        """Passes and P - P*."""
        points = self.results[label]["points"]
        return [p[0] for p in points], [max(p[2] - self.bound, 0) for p in points]

    def passes_to(self, label, gap):
        """Passes until P - P* <= gap (infinity: never), and the last distance."""
        passes, distances = self.course(label)
        reached = [p for p, distance in zip(passes, distances) if distance <= gap]
        return (reached[0] if reached else math.inf), distances[-1]

    def numbers(self):
        """What the formulas of a sweep may use."""
        source = fill(self.cell.get("data", self.figure.problem.get("data", "")), self.cell)
        info = json.loads(subprocess.run([SPDC, "info", "--json", prepared(source, None)], check=True, capture_output=True).stdout)
        norms, l2 = info["row_norms"], self.cell.get("l2", self.figure.problem.get("l2"))
        found = {"n": info["rows"], "R": norms["max"], "mean_norm": norms["mean"], "sqrt": math.sqrt, "log": math.log}
        if isinstance(l2, (int, float)):
            found["kappa"] = norms["max"] ** 2 / l2  # gamma = 1 in all of them
        return {**found, **self.cell}

    def series(self, label):
        """The label, with the axes that are not on the x axis."""
        rest = [f"{axis} = {value:g}" for axis, value in self.cell.items() if axis not in self.figure.axes["x"] and len(self.figure.vary[axis]) > 1]
        on_x = {"kappa": "l2", "R / mean_norm": "s"}.get(self.figure.axes["x"])
        rest = [text for text in rest if not text.startswith(f"{on_x} = ")]
        return ", ".join([label, *rest])


def styles(results):
    """Colour by solver, the same as spdc compare has; dashes by variant."""
    found, variants = {}, {}
    for label, run in results.items():
        solver = run["solver"].split(":")[0]
        order = variants.setdefault(solver, [])
        order.append(label)
        found[label] = {"color": run["colour"], "linestyle": DASHES[(len(order) - 1) % len(DASHES)]}
    return found


def some_runs(figure, cells):
    runs = {}
    for label in figure.solvers:
        for cell in cells:
            if label in cell.results:
                runs[label] = cell.results[label]["run"]
    return runs


# --- pictures -------------------------------------------------------------------------------------------------------------------------


def save(picture, figure, legend):
    handles, labels = legend
    columns = min(4, max(1, len(labels)))
    picture.legend(handles, labels, loc="lower center", ncol=columns, fontsize=9, handlelength=3)
    lines = math.ceil(len(labels) / columns)
    picture.tight_layout(rect=(0, (0.22 * lines + 0.1) / picture.get_figheight(), 1, 1))
    PICTURES.mkdir(parents=True, exist_ok=True)
    picture.savefig(PICTURES / f"{figure.name}.png", dpi=85)
    plt.close(picture)


def draw_curves(figure, cells):
    columns = figure.axes["columns"]
    order = cells
    if len(figure.vary["data"]) > 1:  # a row for each l2, a column for each data set
        order = [cell for l2 in figure.vary["l2"] for cell in cells if cell.cell["l2"] == l2]
    rows = math.ceil(len(order) / columns)
    picture, panels = plt.subplots(rows, columns, figsize=(4.1 * columns, 2.9 * rows), squeeze=False)
    style = styles(some_runs(figure, cells))
    seen = {}
    for cell, panel in zip(order, panels.flat):
        panel.set_title(cell.name(), fontsize=10)
        if cell.bound is None:
            panel.text(0.5, 0.5, "not run", transform=panel.transAxes, ha="center")
            continue
        for label in cell.results:
            passes, distances = cell.course(label)
            shown = [(p, max(d, FLOOR)) for p, d in zip(passes, distances) if p > 0]
            shown = shown[: 1 + next((k for k, (_, d) in enumerate(shown) if d == FLOOR), len(shown))]
            if not shown:
                continue
            (line,) = panel.plot(*zip(*shown), linewidth=1.5, **style[label])
            panel.plot(*shown[-1], marker="o", markersize=3, color=style[label]["color"])
            seen.setdefault(label, line)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_ylim(bottom=max(0.7 * FLOOR, panel.get_ylim()[0]))
    for row in panels:
        row[0].set_ylabel("P(x) - P*")
    for panel in panels[-1]:
        panel.set_xlabel("passes over the data")
    save(picture, figure, (list(seen.values()), list(seen)))


def sweep_points(figure, cells):
    """For each series the points (x, y, logarithm or 0 outside the fit), and the predictions of those that have one."""
    measured, predicted = {}, {}
    for cell in cells:
        if not cell.results:
            continue
        numbers = cell.numbers()
        x = eval(figure.axes["x"], {}, numbers)
        for label, result in cell.results.items():
            series = cell.series(label)
            run = result["run"]
            if run["converged"]:
                y = run["seconds"] if figure.axes["y"] == "seconds" else run["passes"]
                logarithm = eval(figure.axes.get("logarithm", "1"), {}, numbers)  # slopes are those of y without it
                measured.setdefault(series, []).append((x, y, logarithm if eval(figure.axes["fit"], {}, numbers) else 0))
            if label in figure.predicted:
                predicted.setdefault(series, []).append((x, eval(figure.predicted[label], {}, numbers)))
    return measured, predicted


def slope(points):
    """Of log y against log x, by least squares over the points of the fit."""
    logs = [(math.log(x), math.log(y / logarithm)) for x, y, logarithm in points if logarithm and y > 0]
    if len(logs) < 3:
        return None
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, y in logs)


def draw_sweep(figure, cells):
    measured, predicted = sweep_points(figure, cells)
    picture, panel = plt.subplots(figsize=(6.2, 4.4))
    style = styles(some_runs(figure, cells))
    lines = {}
    for k, (series, points) in enumerate(sorted(measured.items())):
        label = next(label for label in sorted(style, key=len, reverse=True) if series.startswith(label))
        own = dict(style[label])
        if series != label:
            own["linestyle"] = DASHES[k % len(DASHES)]
        points = sorted(points)
        steepness = slope(points)
        (line,) = panel.plot([p[0] for p in points], [p[1] for p in points], marker="o", markersize=3.5, linewidth=1.5, **own)
        name = series if steepness is None or figure.axes["y"] == "seconds" else f"{series}: slope {steepness:.2f}"
        lines[name] = line
        if series in predicted:
            panel.plot(*zip(*sorted(predicted[series])), linestyle=":", linewidth=1.1, color=own["color"])
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel(figure.axes["x_label"])
    panel.set_ylabel("seconds without certification" if figure.axes["y"] == "seconds" else "passes over the data")
    handles, labels = list(lines.values()), list(lines)
    picture.legend(handles, labels, loc="lower center", ncol=2, fontsize=8, handlelength=3.5)
    picture.tight_layout(rect=(0, (0.2 * math.ceil(len(labels) / 2) + 0.1) / picture.get_figheight(), 1, 1))
    PICTURES.mkdir(parents=True, exist_ok=True)
    picture.savefig(PICTURES / f"{figure.name}.png", dpi=85)
    plt.close(picture)


# --- verdicts -------------------------------------------------------------------------------------------------------------------------
# A claim holds in some of its cases: all of them is "reproduced", some "only under a condition", none "not reproduced".


def listed(value):
    return value if isinstance(value, list) else [value]


def all_places(cells, claim):
    """The places of the grid that a claim speaks of."""
    for cell in cells:
        at_l2 = "l2" not in claim or cell.cell.get("l2") in claim["l2"]
        at_data = "data" not in claim or data_name(cell.cell["data"]) in claim["data"]
        if at_l2 and at_data:
            yield cell


def places(cells, claim):
    return [cell for cell in all_places(cells, claim) if cell.bound is not None]


def is_complete(cell):
    return set(cell.results) == set(cell.figure.solvers)  # a refusal would be news


def text_of(ratio):
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


def judge_faster(figure, cells, claim):
    """Passes of `than` over passes of `faster` to the gap; where neither gets there, who is nearer at the end."""
    least, gap = claim.get("least", 1.0), claim.get("gap", 1e-6)
    held, failed, ratios, ends, open_cases = [], [], [], 0, 0
    for cell in places(cells, claim):
        for one, other in itertools.product(listed(claim["faster"]), listed(claim["than"])):
            if one not in cell.results or other not in cell.results:
                continue
            (passes, distance), (other_passes, other_distance) = cell.passes_to(one, gap), cell.passes_to(other, gap)
            ratio = None
            if math.isinf(passes) and math.isinf(other_passes):
                ends += 1
                holds = distance * least <= other_distance
            elif math.isinf(passes):
                ratio, holds = other_passes / cell.results[one]["run"]["passes"], False  # at most this
                if ratio >= least:
                    open_cases += 1
                    continue
            elif math.isinf(other_passes):
                ratio, holds = cell.results[other]["run"]["passes"] / max(passes, 1), True  # at least this
            else:
                ratio = max(other_passes, 1) / max(passes, 1)
                holds = ratio >= least
            ratios += [ratio] if ratio is not None else []
            (held if holds else failed).append((f"{one} / {other} at {cell.name()}", ratio))
    number = f"ratio of passes {text_of(min(ratios))} to {text_of(max(ratios))}" if ratios else ""
    if ends:
        number += f"{'; ' if number else ''}{ends} of {len(held) + len(failed)} by the distance after the last pass"
    if open_cases:
        number += f"; {open_cases} left open by the limit of passes"
    return held, failed, number


def judge_slope(figure, cells, claim):
    measured, _ = sweep_points(figure, cells)
    steepness = slope(measured.get(claim["slope"], []))
    if steepness is None:
        return [], [], ""
    low, high = claim["between"]
    case = [(claim["slope"], steepness)]
    return (case, [], f"slope {steepness:.2f}") if low <= steepness <= high else ([], case, f"slope {steepness:.2f}")


def judge_gains(figure, cells, claim):
    """Passes of one series over those of the other, against the largest factor that theory allows: the x axis."""
    measured, _ = sweep_points(figure, cells)
    mine, theirs = ({x: y for x, y, _ in measured.get(claim[key], [])} for key in ("gains", "over"))
    both = sorted(set(mine) & set(theirs))
    if not both:
        return [], [], ""
    gains = [(x, theirs[x] / mine[x]) for x in both]
    held = [(f"{x:.2g}", g) for x, g in gains if g >= claim["least"] * x]
    failed = [(f"{x:.2g}", g) for x, g in gains if g < claim["least"] * x]
    return held, failed, "gain " + ", ".join(f"{g:.2g} at {x:.2g}" for x, g in gains)


def judge_straight(figure, cells, claim):
    """R^2 of a straight line through log(P - P*) against passes, down to the gap."""
    held, failed, squares = [], [], []
    for cell in places(cells, claim):
        passes, distances = cell.course(claim["straight"])
        points = [(p, math.log(d)) for p, d in zip(passes, distances) if d > claim.get("gap", 1e-9)]
        if len(points) < 5:
            continue
        mean_p, mean_d = (sum(v) / len(points) for v in zip(*points))
        pd = sum((p - mean_p) * (d - mean_d) for p, d in points)
        square = pd**2 / (sum((p - mean_p) ** 2 for p, _ in points) * sum((d - mean_d) ** 2 for _, d in points))
        squares.append(square)
        (held if square >= claim["least"] else failed).append((cell.name(), square))
    return held, failed, f"R^2 of log(P - P*) against passes {min(squares):.2f} to {max(squares):.2f}" if squares else ""


def judge(figure, cells, claim):
    kinds = {"faster": judge_faster, "slope": judge_slope, "gains": judge_gains, "straight": judge_straight}
    held, failed, number = next(kinds[kind] for kind in kinds if kind in claim)(figure, cells, claim)
    if not held and not failed:
        return "not run", "", ""
    if figure.show == "curves":
        wanted = list(all_places(cells, claim))
        missing = sum(not is_complete(cell) for cell in wanted)
        number += f"; so far without {missing} of {len(wanted)} problems" if missing else ""
    if not failed:
        return "**reproduced**", number, ""
    shown = ", ".join(case if ratio is None else f"{case} ({text_of(ratio)})" for case, ratio in failed[:6])
    if len(failed) > 6:
        shown += f" and {len(failed) - 6} more"
    if not held:
        return "**not reproduced**", number, ""
    return "**only under a condition**", number, f"{len(held)} of {len(held) + len(failed)} cases; not: {shown}"


# --- the page -------------------------------------------------------------------------------------------------------------------------


def stages_table(figure, cells, gap):
    """Passes to the gap, solvers by places."""
    cells = [cell for cell in cells if cell.bound is not None]
    lines = [f"Passes to P - P* = {gap:g}; in brackets the distance at the end where that was not reached:", ""]
    lines.append("| | " + " | ".join(cell.name() for cell in cells) + " |")
    lines.append("|---|" + "---:|" * len(cells))
    for label in figure.solvers:
        row = []
        for cell in cells:
            if label not in cell.results:
                row.append("")
                continue
            passes, distance = cell.passes_to(label, gap)
            row.append(f"{passes:.4g}" if math.isfinite(passes) else f"({distance:.0e})")
        lines.append(f"| {label} | " + " | ".join(row) + " |")
    return lines


def write(figures):
    head = (HOME / "bench/figures/head.md").read_text().rstrip().splitlines()
    verdicts = ["## Verdicts", "", "Ratios of passes are those to P - P* = 1e-6.", "", "| claim of the paper | verdict | the number that decides | where not |", "|---|---|---|---|"]
    body = []
    for figure in figures:
        cells = [Cell(figure, cell) for cell in figure.cells()]
        if not any(cell.results for cell in cells):
            continue
        (draw_curves if figure.show == "curves" else draw_sweep)(figure, cells)
        body += ["", f"## {figure.title}", "", figure.text, "", f"![{figure.title}](reproduce/{figure.name}.png)"]
        if figure.show == "curves":
            for data in figure.vary["data"]:
                body += ["", *([f"**{data_name(data)}**", ""] if " = " in data else [])]
                body += stages_table(figure, [cell for cell in cells if cell.cell["data"] == data], 1e-6)
        for claim in figure.claims:
            verdict, number, where = judge(figure, cells, claim)
            verdicts.append(f"| {claim['text']} | {verdict} | {number} | {where} |")
    path = HOME / "docs/reproduce.md"
    path.write_text("\n".join([*head, "", *verdicts, *body]) + "\n")
    print(f"{path} and the pictures in {PICTURES}")
    return 0
