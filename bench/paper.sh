#!/usr/bin/env bash
# What the paper's method needs on real data: ./run bench paper DATA_DIR
# Prints one row per run (a Markdown table): passes and seconds to the certified gap, and whether `spdc verify` agrees.
set -euo pipefail
[[ $# == 1 && -d $1 ]] || { echo "usage: ./run bench paper DATA_DIR   (with rcv1v2_subsets.binary.xz, cadata.xz, ...)" >&2; exit 1; }
data=$1
spdc=build/release/spdc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

field() { sed -n 's/.*"'"$1"'": *"\{0,1\}\([^",}]*\).*/\1/p' "$work/json" | head -n 1; }

# cell NAME FILE OPTIONS...
cell() {
    local name=$1 file=$2 agrees=no
    shift 2
    "$spdc" train --solver spdc --quiet --json --dual "$work/dual" "$@" "$file" "$work/model" >"$work/json" || true
    if "$spdc" verify "$work/model" "$file" "$work/dual" >/dev/null; then agrees=yes; fi
    printf '| %s | `%s` | %.4g | %.3g | %.2e | %s |\n' "$name" "$*" "$(field passes)" "$(field seconds)" "$(field relative_gap)" $agrees
}

rcv1=$data/rcv1v2_subsets.binary.xz
# every column divided by its largest value
xz -dc "$data/cadata.xz" >"$work/raw"
awk 'NR == FNR { for (f = 2; f <= NF; ++f) { split($f, a, ":"); v = a[2] < 0 ? -a[2] : a[2]; if (v > m[a[1]]) m[a[1]] = v } next }
     { printf "%s", $1; for (f = 2; f <= NF; ++f) { split($f, a, ":"); printf " %s:%.9g", a[1], a[2] / m[a[1]] } print "" }' \
    "$work/raw" "$work/raw" >"$work/cadata"

echo "| data | options | passes | seconds | relative gap | verified |"
echo "|---|---|---:|---:|---:|---|"
for l2 in 1e-4 1e-6 1e-8; do cell rcv1 "$rcv1" --loss smoothed_hinge --l2 $l2 --tolerance 1e-6; done
cell rcv1 "$rcv1" --loss hinge --l2 1e-4 --tolerance 1e-4
cell rcv1 "$rcv1" --loss logistic --l2 1e-4 --tolerance 1e-4
cell rcv1 "$rcv1" --loss logistic --l1 0.1max --tolerance 1e-4
cell "cadata, scaled" "$work/cadata" --loss quantile --intercept free --tolerance 1e-4
cell "cadata, scaled" "$work/cadata" --loss quantile --l2 1e-8 --intercept free --tolerance 1e-4
cell rcv1 "$rcv1" --loss smoothed_hinge --l2 1e-4 --sampling weighted --tolerance 1e-4
cell rcv1 "$rcv1" --loss smoothed_hinge --l2 1e-4 --batch-size 64 --tolerance 1e-4
cell rcv1 "$rcv1" --loss smoothed_hinge --l2 1e-4 --sampling weighted --batch-size 64 --tolerance 1e-4
cell rcv1 "$rcv1" --loss smoothed_hinge --l2 1e-4 --sampling permutation --tolerance 1e-6
