# Predictions and how they are judged.
source "$(dirname "$0")/common.sh"

# Two labels by name, with a blank in one; the larger is the positive one.
awk '{ printf "%s", $1 == "+1" ? "yes please" : "no"; for (j = 1; j <= 5; j++) { v = 0; for (k = 2; k <= NF; k++) { split($k, p, ":"); if (p[1] == j) v = p[2] } printf ",%s", v } print "" }' two >two.csv
expect 0 '' "$SPDC" train --quiet --l2 1e-2 --tolerance 1e-6 two.csv model
expect 0 '^labels no yes%20please$' cat model
expect 0 '' "$SPDC" predict model two.csv labels
check "labels by their names" test "$(sort -u labels | tr '\n' ';')" = "no;yes please;"
expect 0 '' "$SPDC" predict --output score model two.csv scores
expect 0 '' "$SPDC" predict --output probability model two.csv chances
check "label, score and probability agree" bash -c \
    'paste -d, labels scores chances | awk -F, "{ l = \$1 == \"yes please\"; if (l != (\$2 > 0) || l != (\$3 > 0.5)) exit 1; d = \$3 - 1 / (1 + exp(-\$2)); if (d * d > 1e-20) exit 1 }"'
expect 0 '"accuracy": 0\.' "$SPDC" evaluate --json model two.csv
right=$(paste -d, labels two.csv | awk -F, '$1 == $2' | wc -l)
check "accuracy" awk -v a="$(number accuracy out)" -v r="$right" 'BEGIN { exit !(a * 60 - r < 1e-6 && r - a * 60 < 1e-6) }'
pairs=$(paste -d, two.csv scores | awk -F, '{ s[NR] = $NF; p[NR] = $1 == "yes please" } END {
    for (i = 1; i <= NR; i++) for (j = 1; j <= NR; j++) if (p[i] && !p[j]) { n++; w += s[i] > s[j] ? 1 : (s[i] == s[j] ? .5 : 0) }
    printf "%.12f", w / n }')
check "AUC equals the count of pairs" awk -v a="$(number auc out)" -v b="$pairs" 'BEGIN { exit !((a - b) ^ 2 < 1e-20) }'
logs=$(paste -d, two.csv chances | awk -F, '{ s -= log($1 == "yes please" ? $NF : 1 - $NF) } END { printf "%.12f", s / NR }')
check "log loss" awk -v a="$(number log_loss out)" -v b="$logs" 'BEGIN { exit !((a - b) ^ 2 < 1e-20) }'
printf 'maybe,1,1,1,1,1\nno,0,0,0,0,0\n' >other.csv
expect 0 'unknown_labels +1 ' "$SPDC" evaluate model other.csv
expect 0 'auc +undefined' "$SPDC" evaluate model other.csv

# Three labels: one output each, the best score wins, probabilities add up to one.
expect 0 'one against the rest' "$SPDC" train --quiet --l2 1e-2 --tolerance 1e-6 --dual dual three model
check "three outputs" test "$(field outputs model)" = 3
check "a gap for each" test "$(field gap model | wc -w)" = 3
check "three dual variables a row" test "$(awk 'NF == 3' dual | wc -l)" = 60
expect 0 '^certified' "$SPDC" verify model three dual
expect 0 '' "$SPDC" predict model three labels
expect 0 '' "$SPDC" predict --output score model three scores
check "the best score wins" bash -c \
    'paste -d" " labels scores | awk "{ b = 1; for (k = 2; k <= 3; k++) if (\$(k + 1) > \$(b + 1)) b = k; if (b != \$1) exit 1 }"'
expect 0 '' "$SPDC" predict --output probability model three chances
check "probabilities add up to one" awk '{ s = $1 + $2 + $3 - 1; if (NF != 3 || s * s > 1e-20) exit 1 }' chances
expect 0 '"certificates": \[' "$SPDC" train --quiet --json --l2 1e-2 three
check "three outputs in JSON" grep -q '"outputs": 3' out
awk 'NR == 30 { $2 *= 0.9 } { print }' dual >changed
expect 3 'for label 2' "$SPDC" verify model three changed

# Regression and counts.
expect 0 '' "$SPDC" train --quiet --loss squared --l2 1e-2 --intercept free --tolerance 1e-6 counts model
expect 0 '' "$SPDC" predict model counts values
expect 0 '"rmse"' "$SPDC" evaluate --json model counts
rmse=$(paste -d' ' values counts | awk '{ s += ($1 - $2) ^ 2 } END { printf "%.12f", sqrt(s / NR) }')
check "rmse" awk -v a="$(number rmse out)" -v b="$rmse" 'BEGIN { exit !((a - b) ^ 2 < 1e-20) }'
check "r2 is positive" awk -v a="$(number r2 out)" 'BEGIN { exit !(a > 0 && a < 1) }'
expect 0 '' "$SPDC" train --quiet --loss poisson --l2 1e-2 --intercept free --tolerance 1e-5 counts model
expect 0 '"deviance"' "$SPDC" evaluate --json model counts
expect 0 '' "$SPDC" predict model counts rates
check "rates are positive" awk '$1 <= 0 { exit 1 }' rates
deviance=$(paste -d' ' rates counts | awk '{ s += 2 * (($2 > 0 ? $2 * log($2 / $1) : 0) - ($2 - $1)) } END { printf "%.12f", s / NR }')
expect 0 '"deviance"' "$SPDC" evaluate --json model counts
check "deviance" awk -v a="$(number deviance out)" -v b="$deviance" 'BEGIN { exit !((a - b) ^ 2 < 1e-18) }'

# Zero-based data: the base is kept in the model, so that a file without a 0 is read alike.
sed -E 's/ ([0-9]):/ \1@/g; s/ 1@/ 0:/; s/ 2@/ 1:/; s/ 3@/ 2:/; s/ 4@/ 3:/; s/ 5@/ 4:/' two >zero_based
expect 0 '' "$SPDC" train --quiet --tolerance 1e-6 zero_based model
check "the model knows the base" test "$(field index_base model)" = 0
grep -v ' 0:' zero_based | head -n 3 >without_zero
expect 0 '' "$SPDC" predict --output score model without_zero
cp out by_model
expect 0 '' "$SPDC" predict --output score --index-base 0 model without_zero
check "read with the model's base" cmp -s out by_model

# info.
expect 0 '^rows +60$' "$SPDC" info two
expect 0 'row_norms +min .* median .* max ' "$SPDC" info two
expect 0 '"lambda_max": 0\.' "$SPDC" info --json --loss squared counts
expect 0 '^storage +dense' "$SPDC" info two.csv
expect 0 '^relative_gap' "$SPDC" info model
expect 0 '"kind": "model"' "$SPDC" info --json model
finish
