#!/usr/bin/env bash
# Seconds of solving to a relative gap of 1e-6, everything after reading included, by spdc_fast on one thread (its serial kernel) and
# with feature owners on 2, 4, ... threads: best of three. The passes stand beside the first.
#   ./run bench owners FILE [OWNERS [THREADS...]]      OWNERS: auto (default) or a number, as --owners takes it
#   LOSSES="smoothed_hinge logistic" L2="1e-4 1e-6 1e-8" REPEATS=3 choose the cells; SPDC the program.
set -euo pipefail
[[ $# -ge 1 && -f $1 ]] || { echo "usage: ./run bench owners FILE [OWNERS [THREADS...]]" >&2; exit 1; }
data=$1 owners=${2:-auto}
shift $(($# < 2 ? $# : 2))
threads=("$@")
[[ $# -gt 0 ]] || threads=(2 4 8 16)
spdc=${SPDC:-build/release/spdc}

# seconds passes threads-used of the best run
best() {
    for ((k = 0; k < ${REPEATS:-3}; ++k)); do
        "$spdc" train --solver spdc_fast --loss "$1" --l2 "$2" --tolerance 1e-6 --json --quiet --best-effort "${@:3}" "$data" |
            sed -n 's/^ *"\(seconds\|passes\|threads\)": *\([^,]*\),*$/\1 \2/p' | sort | xargs
    done | sort -g -k4 | head -n 1
}

printf '| loss | l2 | passes | serial |'; printf ' %s threads |' "${threads[@]}"; echo
printf '|---|---|---:|---:|'; printf -- '---:|%.0s' "${threads[@]}"; echo
for loss in ${LOSSES:-smoothed_hinge logistic}; do
    for l2 in ${L2:-1e-4 1e-6 1e-8}; do
        read -r _ passes _ serial _ _ < <(best "$loss" "$l2" --owners 1 --threads 1)
        printf '| %s | %s | %.4g | %.3g |' "$loss" "$l2" "$passes" "$serial"
        for count in "${threads[@]}"; do
            option=(--threads "$count")
            [[ $owners == auto ]] || option+=(--owners "$owners")
            read -r _ passes _ seconds _ used < <(best "$loss" "$l2" "${option[@]}")
            printf ' %.3g (%.2gx, %s used, %.4g p) |' "$seconds" "$(awk "BEGIN { print $serial / $seconds }")" "$used" "$passes"
        done
        echo
    done
done
