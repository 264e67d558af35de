# What the tests of the program share. Source it; SPDC names the program, or the release build is taken.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
SPDC=${SPDC:-$repository/build/release/spdc}
data=${SPDC_DATA:-$repository/data}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() {
    printf 'FAILED: %s\n' "$*"
    failures=$((failures + 1))
}

# expect CODE PATTERN COMMAND...: the exit code, and an extended regular expression in what was printed ("": anything).
# Standard output is left in $work/out, standard error in $work/err.
expect() {
    local code=$1 pattern=$2 found=0
    shift 2
    timeout 120 "$@" >"$work/out" 2>"$work/err" </dev/null || found=$?
    [[ $found == "$code" ]] || fail "exit code $found, expected $code: $* ($(tail -n 1 "$work/err" | cut -c1-200))"
    [[ -z $pattern ]] || cat "$work/out" "$work/err" | grep -aqE -- "$pattern" ||
        fail "no '$pattern' in what was printed by: $* ($(tail -n 1 "$work/err" | cut -c1-300))"
}

# check DESCRIPTION COMMAND...: the command succeeds.
check() {
    local description=$1
    shift
    "$@" || fail "$description"
}

# number KEY FILE: a number of a JSON file.
number() { sed -n "s/^ *\"$1\": \([-0-9.e+]*\),\{0,1\}$/\1/p" "$2" | head -n 1; }

# field KEY FILE: the value of a line "key value" of a model.
field() { sed -n "s/^$1 //p" "$2" | head -n 1; }

finish() {
    ((failures == 0)) || { printf '%d checks failed\n' "$failures"; exit 1; }
    exit 0
}

# Sixty rows of five features: two overlapping classes, three classes, counts.
random_rows() {
    awk -v seed="$1" -v kind="$2" 'BEGIN {
        srand(seed)
        for (i = 0; i < 60; i++) {
            if (kind == "two") { l = rand() < .5 ? -1 : 1; printf "%+d", l; lean = l * .2 }
            if (kind == "three") { l = int(3 * rand()) + 1; printf "%d", l; lean = 0 }
            if (kind == "counts") { l = int(5 * rand()); printf "%d", l; lean = l * .1 }
            for (j = 1; j <= 5; j++) if (rand() < .7 || j == 5) printf " %d:%.4f", j, rand() - .5 + lean + (l == j ? .3 : 0)
            print ""
        }
    }'
}
random_rows 3 two >two
random_rows 5 three >three
random_rows 7 counts >counts
