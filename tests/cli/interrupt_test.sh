# Ctrl-C and a polite kill: the run stops, the model is written with its own gap, and the exit code is 3.
source "$(dirname "$0")/common.sh"

# A run that would take for ever; interrupted as soon as it listens.
interrupt() {
    local signal=$1 code=0 mask
    "$SPDC" train --quiet --solver spdc --l2 1e-9 --tolerance 1e-15 --dual dual "$data/a9a.xz" model >out 2>err &
    local run=$!
    for ((i = 0; i < 600; i++)); do
        # The shell that is about to become the program catches signals too, so first who it is, then what it catches: SIGINT
        # and SIGTERM, which are set one after the other.
        if [[ $(cat "/proc/$run/comm" 2>/dev/null) == "$(basename "$SPDC")" ]]; then
            mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$run/status" 2>/dev/null)
            [[ -n $mask ]] && (((0x$mask & 0x4002) == 0x4002)) && break
        fi
        sleep 0.05
    done
    kill "-$signal" "$run"
    wait "$run" || code=$?
    check "$signal: exit code $code" test "$code" = 3
    check "$signal: the model says why" grep -q '^stop_reason interrupted$' model
    check "$signal: the report says it" grep -q 'stopped by interrupted' out
    expect 0 '^certified' "$SPDC" verify --tolerance 1e9 model "$data/a9a.xz" dual
    rm -f model dual
}

[[ -r /proc/self/status ]] || exit 0 # without it there is no way to tell when the run listens
interrupt INT
interrupt TERM
finish
