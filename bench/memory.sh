#!/usr/bin/env bash
# Peak memory of training against what it may be, on generated data: ./run bench memory
#   limit = copies x (the matrix as stored, with its offsets) + 48 bytes a feature + 64 bytes a row, and for newton 8 d^2;
#   copies = 2.1 for text (one shuffled copy), 1.1 for a .spdc file. What the program takes for a few rows is not counted.
#   SPDC names the program, THREADS how many threads (default 1).
set -euo pipefail
export SPDC=${SPDC:-build/release/spdc} THREADS=${THREADS:-1}
[[ -x $SPDC ]] || { echo "bench memory: no program $SPDC; build it, or name one in SPDC" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exec python3 - "$work" <<'PYTHON'
import os
import random
import subprocess
import sys

work, spdc, threads = sys.argv[1], os.environ["SPDC"], os.environ["THREADS"]


def write(name, rows, features, entries):
    """Rows with this many entries, numbers of six digits (stored as 8 bytes), labels that a model can half guess."""
    path, draw = os.path.join(work, name), random.Random(1)
    step = features // entries
    with open(path, "w") as out:
        for _ in range(rows):
            values = [draw.random() for _ in range(entries)]
            label = "+1" if values[0] + draw.random() > 1 else "-1"
            pairs = " ".join(f"{1 + k * step + draw.randrange(step)}:{v:.6f}" for k, v in enumerate(values))
            out.write(f"{label} {pairs}\n")
    return path


def peak(path, solver, loss="logistic"):
    arguments = ["train", "--solver", solver, "--loss", loss, "--l2", "1e-4", "--tolerance", "1e-3", "--quiet", "--best-effort"]
    process = subprocess.Popen([spdc, *arguments, "--threads", threads, path], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"bench memory: {solver} on {path} failed")
    return usage.ru_maxrss * 1024


few = peak(write("few", 10, 4, 2), "spdc_fast")
print("| data | solver | input | peak, MB | limit, MB | peak / limit |\n|---|---|---|---:|---:|---:|")
shapes = {"short rows": (400000, 60, 10), "long rows": (20000, 200000, 200), "wide rows": (4000, 500000, 1000)}
for name, (rows, features, entries) in shapes.items():
    text = write(name.replace(" ", "_"), rows, features, entries)
    binary = text + ".spdc"
    subprocess.run([spdc, "convert", text, binary], check=True)
    stored = rows * entries * 12 + 8 * rows
    for solver, loss in [("spdc_fast", "logistic")] + (
        [("newton", "logistic"), ("newton", "hinge")] if features <= 2000 else []
    ):
        for kind, path, copies in [("text", text, 2.1), (".spdc", binary, 1.1)]:
            limit = copies * stored + 48 * features + 64 * rows + (8 * features**2 if solver == "newton" else 0)
            used = peak(path, solver, loss) - few
            print(f"| {name} | {solver}, {loss} | {kind} | {used / 1e6:.1f} | {limit / 1e6:.1f} | {used / limit:.2f} |", flush=True)
PYTHON
