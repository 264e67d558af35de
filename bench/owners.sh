#!/usr/bin/env bash
# Seconds of solving to a relative gap of 1e-6, everything after reading included, by spdc_fast on one thread (its serial kernel) and
# with feature owners on 2, 4, ... threads: the median run of seven, each with a seed of its own, since passes differ by a tenth from
# seed to seed. Its passes stand beside it.
#   ./run bench owners FILE [OWNERS [THREADS...]]      OWNERS: auto (default) or a number, as --owners takes it
#   LOSSES="smoothed_hinge logistic" L2="1e-4 1e-6 1e-8" REPEATS=7 choose the cells; SPDC the program.
set -euo pipefail
[[ $# -ge 1 && -f $1 ]] || { echo "usage: ./run bench owners FILE [OWNERS [THREADS...]]" >&2; exit 1; }
data=$1 owners=${2:-auto}
shift $(($# < 2 ? $# : 2))
threads=("$@")
[[ $# -gt 0 ]] || threads=(2 4 8 16)
spdc=${SPDC:-build/release/spdc}
[[ -x $spdc ]] || { echo "bench owners: no program $spdc; build it, or name one in SPDC" >&2; exit 1; }

repeats=${REPEATS:-7}

# passes, seconds and threads of the median run
median() {
    for ((seed = 1; seed <= repeats; ++seed)); do
        "$spdc" train --solver spdc_fast --loss "$1" --l2 "$2" --tolerance 1e-6 --seed $seed --json --quiet --best-effort "${@:3}" "$data" |
            sed -n 's/^ *"\(seconds\|passes\|threads\)": *\([^,]*\),*$/\1 \2/p' | sort | xargs
    done | sort -g -k4 | sed -n "$(((repeats + 1) / 2))p"
}

printf '| loss | l2 | passes | serial |'; printf ' %s threads |' "${threads[@]}"; echo
printf '|---|---|---:|---:|'; printf -- '---:|%.0s' "${threads[@]}"; echo
for loss in ${LOSSES:-smoothed_hinge logistic}; do
    for l2 in ${L2:-1e-4 1e-6 1e-8}; do
        read -r _ passes _ serial _ _ < <(median "$loss" "$l2" --owners 1 --threads 1)
        printf '| %s | %s | %.4g | %.3g |' "$loss" "$l2" "$passes" "$serial"
        for count in "${threads[@]}"; do
            option=(--threads "$count")
            [[ $owners == auto ]] || option+=(--owners "$owners")
            read -r _ passes _ seconds _ used < <(median "$loss" "$l2" "${option[@]}")
            printf ' %.3g (%.2gx, %s used, %.4g p) |' "$seconds" "$(awk "BEGIN { print $serial / $seconds }")" "$used" "$passes"
        done
        echo
    done
done
