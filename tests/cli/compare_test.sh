# compare: every solver on the same problem; table, JSON, traces and picture; refusals, misses and Ctrl-C.
source "$(dirname "$0")/common.sh"

# Every solver that takes an l2 penalty certifies 1e-6 on the bundled data.
solvers=$("$SPDC" help compare | tr '\n' ' ' | sed 's/  */ /g; s/.*known: //; s/ (default.*//; s/ //g')
check "the help lists the solvers" grep -q 'lbfgs' <<<"$solvers"
expect 0 '^lbfgs ' "$SPDC" compare "$data/a9a.xz" --solvers "$solvers" --loss smoothed_hinge --l2 1e-3 --tolerance 1e-6 --quiet
cp out table
count=$(tr ',' '\n' <<<"$solvers" | grep -c .)
check "a line for each solver" test "$(tail -n +4 table | grep -c .)" = "$count"
check "only working_set refuses" test "$(grep -c 'refused: ' table)" = 1
check "why it refuses" grep -q '^working_set *refused: solver working_set needs an l1 penalty' table
check "every stage is reached" test "$(grep -c ' - ' table)" = 0
check "the stages go down to the tolerance" grep -q 'gap 1e-02 *gap 1e-04 *gap 1e-06$' table

# What can be read back: JSON, one trace for each pair, a picture.
expect 0 '"runs"' "$SPDC" compare two --solvers spdc,spdc:sampling=weighted:step-scale=0.4,lbfgs:memory=5 --l2 1e-1,1e-2 \
    --json --quiet --plot gaps.svg --trace curves/of/two
cp out json
check "six runs" test "$(grep -c '"stop_reason": "gap_reached"' json)" = 6
check "six traces" test "$(ls curves/of/two | wc -l)" = 6
check "the trace has a header" test "$(head -n 1 'curves/of/two/lbfgs,memory=5,l2=0.1.csv' | cut -d, -f1-3)" = output,passes,seconds
check "the JSON names it" grep -q '"trace": "curves/of/two/spdc,sampling=weighted,step-scale=0.4,l2=0.01.csv"' json
check "the picture is one" grep -q '^</svg>$' gaps.svg
check "its legend names every run once" test "$(grep -c '>spdc:sampling=weighted:step-scale=0.4<' gaps.svg)" = 1
check "one colour a method" test "$(grep -o 'stroke="#D55E00"' gaps.svg | wc -l)" = 10
expect 0 '^auto ' "$SPDC" compare three --quiet # several labels, and the default solvers
expect 0 'l2 = 0.0166' "$SPDC" compare two --solvers sdca --quiet --threads 1

# The same problem as train: what both print of it agrees.
expect 0 '' "$SPDC" train two --json --quiet --solver spdc --loss squared_hinge --intercept free --class-weight -1=2 --l2 0.1 --tolerance 1e-6
trained=$(number primal out)
expect 0 '' "$SPDC" compare two --json --quiet --solvers spdc --loss squared_hinge --intercept free --class-weight -1=2 --l2 0.1
compared=$(number primal out)
check "train's objective $trained, compare's $compared" awk "BEGIN {exit !($trained / $compared - 1 < 1e-6 && $compared / $trained - 1 < 1e-6)}"

# A solver that misses the tolerance: a dash, the gap it got, and exit code 3.
expect 3 '^spdc( +- +- +[0-9.]+e[-+][0-9]+)+  pass_limit$' "$SPDC" compare two --solvers lbfgs,spdc --l2 1e-4 --max-passes 3 --tolerance 1e-8 --quiet
expect 0 'pass_limit' "$SPDC" compare two --solvers spdc --l2 1e-4 --max-passes 3 --quiet --best-effort
# A refusal alone is an answer, but not a comparison.
expect 1 'refused: .*l1 penalty' "$SPDC" compare two --solvers working_set --quiet

# Wrong calls say what is wrong before any work.
expect 1 "no solver .?spdk.?|unknown solver" "$SPDC" compare two --solvers spdk
expect 1 'option of the solver spdc' "$SPDC" compare two --solvers spdc:sampel=uniform
expect 1 'memory' "$SPDC" compare two --solvers lbfgs:memory=0
expect 1 "expected option=value after ':', not 'weighted'" "$SPDC" compare two --solvers spdc:weighted
expect 1 'spdc is named twice' "$SPDC" compare two --solvers spdc,spdc
expect 1 'memory is given twice' "$SPDC" compare two --solvers lbfgs:memory=5:memory=6
expect 1 'a name is missing' "$SPDC" compare two --solvers spdc,
expect 1 "expected the name of a folder" "$SPDC" compare two --trace ''
expect 0 '^lbfgs ' "$SPDC" compare two --solvers lbfgs,spdc --l2 1e-1 --tolerance 1e-8 --quiet
check "numbers stay apart" test "$(grep -E '^(lbfgs|spdc) ' out | awk '{print NF}' | sort -u)" = 13
expect 1 '1e-3 is named twice' "$SPDC" compare two --l2 0.001,1e-3
expect 0 'l1 = 0.01, l2 = 0;' "$SPDC" compare two --solvers working_set --l1 0.01 --quiet
expect 1 'ends in .svg' "$SPDC" compare two --plot gaps.png
expect 1 "'x': expected a number" "$SPDC" compare two --l2 1e-1,x
expect 2 'cannot make this folder' "$SPDC" compare two --trace two/curves
expect 2 'no_such_folder' "$SPDC" compare two --plot no_such_folder/gaps.svg
expect 1 'both read and written' "$SPDC" compare two --plot "$(ln -s two two.svg && echo two.svg)"

# Ctrl-C keeps what is finished: the table with the first pair, its files, exit code 3.
if [[ -r /proc/self/status ]]; then
    "$SPDC" compare "$data/a9a.xz" --solvers newton,spdc:theta=0,sdca --l2 1e-9 --tolerance 1e-14 --trace kept --plot kept.svg --quiet >out 2>err &
    run=$!
    for ((i = 0; i < 600; i++)); do
        [[ -e kept/newton,l2=1e-09.csv ]] && break
        sleep 0.05
    done
    kill -INT "$run"
    code=0
    wait "$run" || code=$?
    check "interrupted: exit code $code" test "$code" = 3
    check "the finished pair is in the table" grep -q '^newton ' out
    check "the interrupted one, too" grep -q '^spdc:theta=0 .*interrupted' out
    check "but not the one after it" test "$(grep -c '^sdca' out)" = 0
    check "the picture is written" grep -q '</svg>' kept.svg
    check "it says so" grep -q 'interrupted' err
fi
finish
