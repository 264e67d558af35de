#!/usr/bin/env bash
# Mini-batches on a team of threads: ./run bench threads DATA_DIR [THREADS...]
# Seconds of eight passes over covtype (smoothed hinge, l2 = 1e-4), best of three, certification not counted.
set -euo pipefail
[[ $# -ge 1 && -d $1 ]] || { echo "usage: ./run bench threads DATA_DIR [THREADS...]   (with covtype.libsvm.binary.scale.xz)" >&2; exit 1; }
data=$1
shift
threads=("${@:-1}")
[[ $# -gt 0 ]] || threads=(1 2)
spdc=${SPDC:-build/release/spdc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
xz -dc "$data/covtype.libsvm.binary.scale.xz" >"$work/covtype"

printf '| batch size |'; printf ' %s threads |' "${threads[@]}"; echo
printf '|---:|'; printf -- '---:|%.0s' "${threads[@]}"; echo
for size in 64 256 1024 4096; do
    printf '| %s |' $size
    for count in "${threads[@]}"; do
        for _ in 1 2 3; do
            "$spdc" train --solver spdc --loss smoothed_hinge --l2 1e-4 --batch-size $size --threads "$count" --max-passes 8 \
                --tolerance 1e-9 --best-effort --json --quiet "$work/covtype" | sed -n 's/.*"seconds_solver": *\([^,]*\).*/\1/p'
        done | sort -g | head -n 1 | xargs printf ' %.3g |'
    done
    echo
done
