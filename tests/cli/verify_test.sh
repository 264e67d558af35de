# The independent check: accepts what train certified, and notices every change.
source "$(dirname "$0")/common.sh"

yes '1
2
0' | head -n 60 >weights
printf '1\n0\n2\n1\n0.5\n' >factors

# accepted DATA TRAIN_OPTION... : certified by train, and by verify.
accepted() {
    local file=$1 extra=()
    shift
    [[ " $* " == *" --weights "* ]] && extra+=(--weights weights)
    [[ " $* " == *" --penalty-factors "* ]] && extra+=(--penalty-factors factors)
    expect 0 '' "$SPDC" train --quiet --tolerance 1e-5 "$@" --dual dual "$file" model
    expect 0 '^certified' "$SPDC" verify "${extra[@]}" model "$file" dual
}

for loss in logistic smoothed_hinge hinge squared_hinge; do
    accepted two --loss "$loss" --l2 1e-2
done
accepted two --loss smoothed_hinge --gamma 0.3 --l2 1e-2
for loss in squared absolute huber epsilon_insensitive squared_epsilon_insensitive quantile poisson; do
    accepted counts --loss "$loss" --l2 1e-1
done
accepted counts --loss huber --delta 0.5 --l2 1e-1
accepted counts --loss epsilon_insensitive --epsilon 0.5 --l2 1e-1
accepted counts --loss quantile --quantile 0.8 --l2 1e-1
accepted two --l1 1e-2
accepted two --l1 1e-2 --l2 1e-2 --class-weight balanced
accepted two --l2 1e-2 --class-weight 1=3,-1=0.5
accepted two --l2 1e-2 --lower -0.1 --upper 0.2
accepted two --l2 1e-2 --nonnegative
accepted two --l2 1e-2 --intercept free
accepted two --l2 1e-2 --intercept penalized
accepted two --l2 1e-2 --weights weights
accepted two --l2 1e-2 --weights weights --class-weight balanced --intercept free
accepted two --l2 1e-2 --penalty-factors factors
accepted three --l2 1e-2

# An objective of 0, where only rounding is left.
printf '+1 1:1 2:0.3\n-1 1:-1 2:0.1\n+1 1:2 2:-0.7\n-1 1:-3 2:0.2\n' >separable
accepted separable --loss squared_hinge --l2 0

# One weight, one dual variable, one row: each is noticed. With spdc, which stops at a gap of about the tolerance.
expect 0 '' "$SPDC" train --quiet --solver spdc --tolerance 1e-6 --l2 1e-2 --dual dual two model
expect 0 '"certified": true' "$SPDC" verify --json model two dual
awk '/^weights/ { w = NR } w && NR == w + 2 { $2 += 0.001 } { print }' model >changed
expect 3 'NOT CERTIFIED: the model states a primal of' "$SPDC" verify changed two dual
awk 'NR == 17 { $1 *= 0.99 } { print }' dual >changed
expect 3 'NOT CERTIFIED: the model states a dual of' "$SPDC" verify model two changed
awk 'NR == 5 { $1 = 3 } { print }' dual >changed
expect 3 'NOT CERTIFIED: 1 dual variables lie outside the domain' "$SPDC" verify model two changed
awk 'NR == 9 { $2 = $2 "1" } { print }' two >changed
expect 3 'NOT CERTIFIED: the model states a' "$SPDC" verify model changed dual
awk 'NR == 9 { $1 = -$1 } { print }' two >changed
expect 3 'NOT CERTIFIED' "$SPDC" verify model changed dual
sed 's/^gap .*/gap 1e-12/' model >changed
expect 3 'NOT CERTIFIED: the model states a gap of 1e-12' "$SPDC" verify changed two dual
sed 's/^l2 .*/l2 0.011/' model >changed
expect 3 'NOT CERTIFIED' "$SPDC" verify changed two dual
expect 3 '"certified": false' "$SPDC" verify --json --tolerance 1e-11 model two dual

expect 0 '' "$SPDC" train --quiet --l2 1e-2 --lower -0.1 --upper 0.2 --dual dual two model
awk '/^weights/ { w = NR } w && NR == w + 1 { $2 = 7 } { print }' model >changed
expect 3 'lies outside its bounds' "$SPDC" verify changed two dual

# The files of the training are needed again, and only then.
expect 1 'the model was trained without --weights' "$SPDC" verify --weights weights model two dual
expect 0 '' "$SPDC" train --quiet --l2 1e-2 --weights weights --dual dual two model
expect 1 'the model was trained with --weights: give the same file' "$SPDC" verify model two dual
head -n 59 dual >short
expect 2 'short: 59 lines, expected one for each of the 60 rows' "$SPDC" verify --weights weights model two short
sed 's/$/ 1/' dual >wide
expect 2 "wide:1:[0-9]+: '1' after the last number, expected 1 a line" "$SPDC" verify --weights weights model two wide
finish
