# Wrong calls: exit code 1 and a sentence, before any file is looked at.
source "$(dirname "$0")/common.sh"

train() { expect 1 "$1" "$SPDC" train "${@:2}" no_such_file; }

train "unknown loss 'lgistic'; did you mean 'logistic'\?" --loss lgistic
train "unknown solver 'spcd'; did you mean 'spdc'\?" --solver spcd
train "unknown option '--losss'; did you mean '--loss'\?" --losss hinge
train "unknown option '--tolerence'; did you mean '--tolerance'\?" --tolerence=1
train "unknown intercept 'fre'; did you mean 'free'\?" --intercept fre
train "unknown format 'cvs'; did you mean 'csv'\?" --format cvs
train "unknown sampling 'unifrom'; did you mean 'uniform'\?" --solver spdc --sampling unifrom
expect 1 "unknown command 'trian'; did you mean 'train'\?" "$SPDC" trian
expect 1 "unknown command" "$SPDC" help trian
expect 1 "unknown output 'labels'; did you mean 'label'\?" "$SPDC" predict --output labels model two

train 'l2 = -1: must be at least 0' --l2 -1
train 'l1 = -0.5: must be at least 0' --l1 -0.5
train 'l1 = -0.5: must be at least 0' --l1 -0.5max
train 'C = 0: must be greater than 0' -c 0
train 'tolerance = 0: must be greater than 0' --tolerance 0
train 'tolerance = -1' --tolerance -1
train "tolerance 'nan': expected a number" --tolerance nan
train "l2 'abc': expected a number" --l2 abc
train "l2 '1e999': too large" --l2 1e999
train "l2 'inf': expected a finite number" --l2 inf
train "l1 '0.1maxx': expected a number" --l1 0.1maxx
train 'max-passes = 0' --max-passes 0
train 'quantile = 1: must be between 0 and 1, both excluded' --loss quantile --quantile 1
train 'gamma = 0: must be (finite and )?greater than 0' --loss smoothed_hinge --gamma 0
train "batch-size '0'" --solver spdc --batch-size 0
train "batch-size '1.5': expected a whole number" --solver spdc --batch-size 1.5
train "threads '0': expected a whole number from 1" --threads 0
train "seed '-1'" --seed -1
train "index-base '2'" --index-base 2
train "features '0'" --features 0
train 'lower = 1, upper = inf: need lower <= 0' --lower 1

train '--epsilon is no option of the loss logistic; it belongs to --loss epsilon_insensitive or squared_epsilon' --epsilon 1
train '--gamma is no option of the loss hinge; it belongs to --loss smoothed_hinge' --loss hinge --gamma 1
train '--tau is no option of the solver auto; it belongs to --solver spdc' --tau 1
train '--C and --l2 exclude each other' --C 1 --l2 1
train '--nonnegative and --lower exclude each other' --nonnegative --lower -1
train 'expected balanced or label=weight' --class-weight 3
train 'either balanced or label=weight' --class-weight balanced --class-weight 1=2
train 'two weights for the label 1' --class-weight 1=2,1=3
train 'class-weight = -1' --class-weight 1=-1
train "trace 'trace.txt': expected a name that ends in .csv or .jsonl" --trace trace.txt
expect 1 '--l2: 1 required L2 missing' "$SPDC" train data --l2
expect 1 'DATA is required' "$SPDC" train
expect 1 "unexpected argument 'c'" "$SPDC" train a b c
expect 1 'two inputs are -' "$SPDC" train --weights - -
expect 1 'both write to standard output' "$SPDC" train --json two -
expect 1 'two is both read and written' "$SPDC" train two two
expect 1 'x is named for two outputs' "$SPDC" train --dual x two x
check "the data are untouched" test "$(wc -l <two)" = 60

# What only the data can tell.
expect 1 "unknown label in class weights '7'" "$SPDC" train --class-weight 7=2 two
expect 1 'class weights need a classification loss' "$SPDC" train --loss squared --class-weight balanced two
printf 'label,a\n1,2\n-1,3\n' >small.csv
expect 1 "label_column 9" "$SPDC" train --label-column 9 small.csv
expect 1 "unknown label column .*'lable'; did you mean 'label'" "$SPDC" train --label-column lable small.csv
expect 0 '' "$SPDC" train --quiet --loss squared two model
expect 1 'probabilities need a model of the loss logistic' "$SPDC" predict --output probability model two
expect 1 'unknown format' "$SPDC" convert --to svmlite two out.csv
finish
