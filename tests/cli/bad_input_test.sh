# Bad files: exit code 2 and where the fault is.
source "$(dirname "$0")/common.sh"

# bad PATTERN NAME [OPTION...]: training on the file fails.
bad() { expect 2 "$1" "$SPDC" train --quiet "${@:3}" "$2"; }

: >empty
bad 'empty:1:1: ' empty
printf '\n   \n\t\n\n' >blanks
bad 'blanks:' blanks
printf '# only\n# comments\n' >comments
bad 'comments:' comments
printf '+1 1:1\n-1 1:nan\n' >nan
bad "nan:2:[0-9]+: .*'nan' is not finite" nan
printf '+1 1:1\n-1 1:-Inf\n' >inf
bad "inf:2:[0-9]+: .*'-Inf' is not finite" inf
printf 'nan 1:1\n-1 1:1\n' >nan_label
bad "nan_label:1:1: .*not finite" nan_label
printf '+1 1:1\n-1 1:1e999\n' >huge
bad "huge:2:[0-9]+: .*'1e999' is too large" huge
printf '+1 0:1\n-1 1:1\n' >zero_index
bad 'zero_index:1:4: ' zero_index --index-base 1
expect 0 '' "$SPDC" train --quiet zero_index
printf '+1 -1:1\n-1 1:1\n' >negative_index
bad 'negative_index:1:4: ' negative_index
printf '+1 1:1 2:1 2:3\n-1 1:1\n' >repeated
bad 'repeated:1:12: ' repeated
printf '+1 3:1 2:1\n-1 1:1\n' >descending
bad 'descending:1:8: ' descending
printf '+1 1:1\n-1 4294967296:1\n' >large_index
bad 'large_index:2:4: ' large_index
printf '+1 1:1\n-1 99999999999999999999999:1\n' >larger_index
bad 'larger_index:2:4: ' larger_index
printf '+1 1:1\n-1 7:1\n' >seven
bad 'seven:2:4: ' seven --features 5
printf '+1 1:\n-1 1:1\n' >no_value
bad 'no_value:1:' no_value
printf '+1 1 2\n-1 1:1\n' >no_colon
bad 'no_colon:1:' no_colon
head -c 10485760 /dev/zero | tr '\0' 'x' >long_line
bad 'long_line:1:1: ' long_line
check "a long line gives a short message" test "$(wc -c <err)" -lt 1000
head -c 4096 "$SPDC" >binary
bad 'binary:[0-9]+:[0-9]+: ' binary
printf '+1 1:1\n\0\0\0\n' >zeros
bad 'zeros:2:1: ' zeros

gzip -c two >whole.gz
head -c 200 whole.gz >cut.gz
bad 'cut.gz: .*(truncated|ends|end)' cut.gz
head -c 20000 "$data/a9a.xz" >cut.xz
bad 'cut.xz: .*(truncated|ends|end)' cut.xz
cp whole.gz damaged.gz
printf 'XXXX' | dd of=damaged.gz bs=1 seek=60 conv=notrunc 2>/dev/null
bad 'damaged.gz: ' damaged.gz

sed 's/^-1/+1/' two >one_class
bad 'one_class: all rows have the label 1, but logistic needs at least two' one_class
awk 'BEGIN { for (i = 0; i < 1200; i++) printf "%g 1:%g\n", i + .5, i }' >measurements
bad 'these look like regression targets' measurements
sed '7s/^[0-9]*/-3/' counts >negative_count
bad 'negative_count: row 7: target -3 is negative, but poisson needs counts' negative_count --loss poisson
bad 'no_such_file: cannot open.*No such file' no_such_file
mkdir directory
bad 'directory: .*[Dd]irectory' directory

printf 'a,b\n1,2\n1\n' >short_row.csv
bad 'short_row.csv:3:1: 1 fields in this row, expected 2' short_row.csv
printf '1,2\n,3\n' >hole.csv
bad 'hole.csv:2:1: label is empty' hole.csv
printf '1,2\n-1,NA\n' >missing.csv
bad "missing.csv:2:4: field 2 'NA' is a missing value" missing.csv
printf 'red,2\nblue,3\n' >text.csv
bad "text.csv: the targets are text" text.csv --loss squared

expect 2 'one_class: all rows have the label' "$SPDC" info --loss logistic one_class
expect 0 'loss +squared' "$SPDC" info one_class

# Files beside the data.
printf '1\n2\n' >short_weights
bad 'short_weights: 2 weights, expected one for each of the 60 rows' two --weights short_weights
yes -- -1 | head -n 60 >negative_weights
bad 'negative_weights: weight -1' two --weights negative_weights
yes 0 | head -n 60 >zero_weights
bad 'zero_weights: all row weights are 0' two --weights zero_weights
printf 'x\n' >text_weights
bad "text_weights:1:1: 'x' is not a number" two --weights text_weights
bad 'short_weights: 2 penalty factors, expected one for each of the 5 features' two --penalty-factors short_weights
printf '1\n1\n-1\n1\n1\n' >negative_factors
bad 'negative_factors: penalty factor -1 of feature 3' two --penalty-factors negative_factors
bad 'none: cannot open' two --weights none

# Nothing to converge to: a clear stop, no loop, and the model is there.
printf '+1 1:1\n-1 1:-1\n+1 1:2\n-1 1:-3\n' >separable
expect 3 'no_minimizer' "$SPDC" train --quiet --l2 0 --max-seconds 20 separable model
check "the model says so" grep -q '^stop_reason no_minimizer$' model

# Models.
expect 0 '' "$SPDC" train --quiet --dual dual two model
bad_model() { expect 2 "$1" "$SPDC" predict bad_model two; }
sed '1s/1/2/' model >bad_model
bad_model "bad_model:1:12: a model of version '2', but this program reads version 1 only"
cp two bad_model
bad_model "bad_model:1:1: not a model, expected the first line 'spdc-model 1'"
: >bad_model
bad_model "bad_model:1:1: not a model"
head -n 10 model >bad_model
bad_model 'the file ends, expected a line .weights K.'
head -n -1 model >bad_model
bad_model 'the file ends after 4 of 5 weights'
sed 's/^weights 5/weights 2000000000/; s/^features 5/features 2147483648/' model >bad_model
bad_model 'the file ends after 5 of 2000000000 weights'
sed 's/^weights 5/weights 99999999999999/' model >bad_model
bad_model 'expected a whole number'
sed 's/^loss logistic/loss lgistic/' model >bad_model
bad_model "bad_model:2:6: unknown loss 'lgistic'; did you mean 'logistic'"
sed '/^l2 /d' model >bad_model
bad_model "no line 'l2' above the weights"
sed 's/^l2 /color red\nl2 /' model >bad_model
bad_model "value of the unknown key 'color'"
sed '$s/ .*/ nan/' model >bad_model
bad_model "'nan', expected a finite number"
cat model two >bad_model
bad_model 'after the last weight'
head -c 3000 "$SPDC" >bad_model
bad_model 'not a model'

# Features: LIBSVM data may have more (they have no weight) or fewer (they are zero); CSV must have the same.
printf '+1 1:1 9:5\n' >more
expect 0 '' "$SPDC" predict --output score model more
cp out with_extra
printf '+1 1:1\n' >fewer
expect 0 '' "$SPDC" predict --output score model fewer
check "features the model does not know have no weight" cmp -s out with_extra
printf '1,1,2,3\n' >columns.csv
expect 2 'columns.csv: 3 columns beside the label, but the model has 5 features' "$SPDC" predict model columns.csv
(cat two; echo '+1 9:1') >more
expect 2 'more: 9 features, but the model was trained on 5' "$SPDC" verify model more dual
(cat two; echo '+1 1:1') >longer
expect 2 'dual: 60 lines, expected one for each of the 61 rows' "$SPDC" verify model longer dual
finish
