#!/usr/bin/env bash
# What threads give on covtype: ./run bench threads DATA_DIR [THREADS...]
# Mini-batches: seconds of eight passes (smoothed hinge, l2 = 1e-4), best of three, certification not counted.
# newton: seconds to a certified gap of 1e-6, best of three, everything after reading counted.
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

printf '\n| newton |'; printf ' %s threads |' "${threads[@]}"; echo
printf '|---|'; printf -- '---:|%.0s' "${threads[@]}"; echo
for problem in 'logistic --l2 1e-4' 'logistic --l2 1e-6' 'logistic --l2 1e-8' 'squared_hinge --l2 1e-6' 'hinge --l2 1e-4'; do
    printf '| %s |' "$problem"
    for count in "${threads[@]}"; do
        for _ in 1 2 3; do
            # shellcheck disable=SC2086 # the problem is several words
            "$spdc" train --solver newton --loss $problem --threads "$count" --tolerance 1e-6 --json --quiet "$work/covtype" |
                sed -n 's/.*"seconds": *\([^,]*\).*/\1/p'
        done | sort -g | head -n 1 | xargs printf ' %.3g |'
    done
    echo
done
