# What scripts rely on: JSON keys, file formats, exit codes, nothing on standard error when quiet.
source "$(dirname "$0")/common.sh"

expect 0 '"converged": true' "$SPDC" train --loss smoothed_hinge --l2 1e-2 --tolerance 1e-6 --json --quiet \
    --dual dual --trace trace.csv two model
check "quiet means silent" test ! -s err
for key in solver solver_reason loss l1 l2 rows features nonzeros outputs primal dual gap relative_gap converged \
    stop_reason passes seconds seconds_cpu seconds_solver seconds_loading threads seed certificate_radius certificates message \
    tolerance model_nonzeros intercept solver_options loss_parameters; do
    check "--json has $key" grep -q "\"$key\":" out
done
cp out result.json
if command -v python3 >/dev/null; then
    check "--json prints one JSON object" python3 -c 'import json, sys; assert isinstance(json.load(open("result.json")), dict)'
fi
check "an infinite radius is null" grep -q '"certificate_radius": null' result.json
check "rows" test "$(number rows result.json)" = 60
check "features" test "$(number features result.json)" = 5

check "first line of a model" test "$(head -n 1 model)" = "spdc-model 1"
for key in loss gamma labels features index_base outputs intercept_kind intercept l1 l2 lower upper row_weights \
    penalty_factors primal dual gap relative_gap certificate_radius tolerance stop_reason solver weights; do
    check "the model has $key" grep -q "^$key " model
done
check "K weights follow" test "$(sed '1,/^weights/d' model | wc -l)" = "$(field weights model)"
check "one dual variable per row" test "$(wc -l <dual)" = 60
check "the model's primal is that of --json" test "$(field primal model)" = "$(number primal result.json)"
check "the trace has a header" grep -q '^output,passes,seconds,seconds_solver,primal,dual,gap,relative_gap,nonzeros,omega,solver$' trace.csv
expect 0 '^certified' "$SPDC" verify model two dual

# The same model twice.
expect 0 certified "$SPDC" train --loss smoothed_hinge --l2 1e-2 --tolerance 1e-6 two again
check "same seed, same model" cmp -s model again
expect 0 'nothing|not saved' "$SPDC" train --quiet two

# Stopped early: exit 3, the model is written and says its gap; --best-effort: 0.
expect 3 'NOT CERTIFIED' "$SPDC" train --l2 1e-9 --tolerance 1e-12 --max-passes 1 --quiet --dual dual two early
check "the model is written" grep -q '^stop_reason pass_limit$' early
expect 3 'above the tolerance' "$SPDC" verify early two dual
expect 0 'certified' "$SPDC" verify --tolerance 10 early two dual
expect 0 'NOT CERTIFIED' "$SPDC" train --l2 1e-9 --tolerance 1e-12 --max-passes 1 --quiet --best-effort two early
expect 3 '"converged": false' "$SPDC" train --l2 1e-9 --tolerance 1e-12 --max-passes 1 --quiet --json two
expect 3 'time_limit' "$SPDC" train --l2 1e-12 --tolerance 1e-15 --max-seconds 1e-9 --quiet two

# l2 = 1/W by default, 0 beside l1, 1/(C W) with C.
expect 0 '' "$SPDC" train --quiet --json two
check "l2 is 1/W" awk -v l2="$(number l2 out)" 'BEGIN { exit !(l2 * 60 > 0.999999 && l2 * 60 < 1.000001) }'
expect 0 '' "$SPDC" train --quiet --json -c 4 two
check "l2 is 1/(C W)" awk -v l2="$(number l2 out)" 'BEGIN { exit !(l2 * 240 > 0.999999 && l2 * 240 < 1.000001) }'
expect 0 '"l2": 0.0,' "$SPDC" train --quiet --json --l1 0.5max two
expect 0 '^lambda_max' "$SPDC" info two
expect 0 'weights +0 of 5' "$SPDC" train --quiet --l1 max --tolerance 1e-3 two
yes 2 | head -n 60 >twos
expect 0 '' "$SPDC" train --quiet --json --weights twos two
check "W is the sum of the weights" awk -v l2="$(number l2 out)" 'BEGIN { exit !(l2 * 120 > 0.999999 && l2 * 120 < 1.000001) }'

# Standard input and every front door.
"$SPDC" train --quiet --loss smoothed_hinge --l2 1e-2 --tolerance 1e-6 - stdin_model <two >/dev/null || fail "train -"
check "standard input gives the same model" cmp -s model stdin_model
expect 0 'spdc [0-9]+\.[0-9]+' "$SPDC" --version
expect 0 'Commands:' "$SPDC" help
expect 0 'Commands:' "$SPDC" --help
expect 1 'Commands:' "$SPDC"
for command in train predict evaluate info convert verify; do
    expect 0 "Usage: spdc $command" "$SPDC" help "$command"
    expect 0 "Examples:" "$SPDC" "$command" --help
done
expect 0 '\[epsilon_insensitive, *$|squared_epsilon_insensitive\]' "$SPDC" help train

# The bundled data, end to end.
expect 0 'certified' "$SPDC" train --l2 1e-3 "$data/a9a.xz" a9a.model
expect 0 '^accuracy +0\.8' "$SPDC" evaluate a9a.model "$data/a9a.t.xz"
finish
