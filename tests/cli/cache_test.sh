# The binary format .spdc by convert, and --cache: the same results as from the text, and no stale or foreign file believed.
source "$(dirname "$0")/common.sh"

# convert: everything comes back, in the user's order.
expect 0 '' "$SPDC" convert two two.spdc
expect 0 '' "$SPDC" convert two.spdc back.svm
expect 0 '' "$SPDC" convert two direct.svm
check "the rows come back in their order" cmp -s back.svm direct.svm
expect 0 '' "$SPDC" convert two.spdc again.spdc
check "the same file every time" cmp -s two.spdc again.spdc
expect 0 '' "$SPDC" convert --to spdc three -
cp out three_file
expect 0 '"rows": 60' "$SPDC" info --json three_file
expect 0 '"rows": 60' bash -c "'$SPDC' info --json - <three_file"
expect 0 '"rows": 60' bash -c "cat three_file | xz | '$SPDC' info --json -"
expect 1 "unknown format 'spcd'.*did you mean 'spdc'" "$SPDC" convert --to spcd two x

# Files per row are in the user's order: weights, dual variables, predictions.
awk '{ print NR % 7 }' two >weights
for solver in auto spdc_fast; do # the second works on the mapped rows themselves
    expect 0 '' "$SPDC" train --quiet --solver $solver --tolerance 1e-7 --weights weights --dual y two.spdc model
    expect 0 '^certified' "$SPDC" verify --weights weights model two y
    expect 0 '^certified' "$SPDC" verify --weights weights model two.spdc y
done
expect 0 '' "$SPDC" convert three three.spdc
expect 0 '' "$SPDC" train --quiet --tolerance 1e-9 --dual y three.spdc three_model
expect 0 '^certified' "$SPDC" verify three_model three y
expect 0 '' "$SPDC" predict --output score three_model three from_text
expect 0 '' "$SPDC" predict --output score three_model three.spdc from_binary
check "predictions are in the order of the text" cmp -s from_text from_binary
awk '{ $1 = NR == 3 ? -1 : 1; print }' counts >negative
expect 0 '' "$SPDC" convert negative negative.spdc
expect 2 'row 3: target -1 is negative' "$SPDC" train --loss poisson negative.spdc
expect 2 'made with index base 1, but 0 is asked for' "$SPDC" info --index-base 0 two.spdc
expect 2 '5 features, expected at most the 2 asked for' "$SPDC" train --features 2 two.spdc

# Damage is found before it is used.
head -c 1000 two.spdc >cut.spdc
expect 2 'cut.spdc: damaged: 1000 bytes' "$SPDC" train cut.spdc
cp two.spdc flipped.spdc
size=$(stat -c %s two.spdc)
printf '\377' | dd of=flipped.spdc bs=1 seek=$((size - 400)) conv=notrunc status=none
expect 2 '^spdc: flipped.spdc: damaged' "$SPDC" train flipped.spdc
expect 2 '^spdc: flipped.spdc: damaged' "$SPDC" info flipped.spdc
expect 2 '^spdc: flipped.spdc: damaged' "$SPDC" predict model flipped.spdc

# --cache: made once, used while the text is the same.
cached=(train --quiet --json --cache --tolerance 1e-8)
rm two.spdc three.spdc
expect 0 '' "$SPDC" "${cached[@]}" two
check "the cache is two.spdc" test -s two.spdc
grep -v seconds out >first
inode=$(stat -c %i two.spdc)
expect 0 '' "$SPDC" "${cached[@]}" two
grep -v seconds out >second
check "the same numbers with the cache as when it was made" cmp -s first second
expect 0 '' "$SPDC" info --cache two
expect 0 '' "$SPDC" train --quiet --cache two model
expect 0 '' "$SPDC" evaluate --cache model two
expect 0 '' "$SPDC" predict --cache model two
check "nobody made it again" test "$inode" = "$(stat -c %i two.spdc)"
expect 2 'two:1:[0-9]*: index [0-9] is beyond the 2 features' "$SPDC" info --cache --features 2 two
expect 0 '"features": 9' "$SPDC" info --json --cache --features 9 two
check "the features asked for are not in it" test "$inode" = "$(stat -c %i two.spdc)"

touch two
expect 0 '' "$SPDC" info --cache two
check "a touched text makes it anew" test "$inode" != "$(stat -c %i two.spdc)"
echo '+1 1:1 6:1' >>two
expect 0 '"rows": 61' "$SPDC" info --json --cache two
expect 0 '"rows": 61' "$SPDC" info --json --cache two
cp -p two same && mv same two # another inode
inode=$(stat -c %i two.spdc)
expect 0 '' "$SPDC" info --cache two
check "so does another file of the name" test "$inode" != "$(stat -c %i two.spdc)"
expect 0 '"features": 7' "$SPDC" info --json --cache --index-base 0 two
expect 0 '"features": 6' "$SPDC" info --json --cache two

# A cache of another text is replaced; what is no cache is left alone.
cp two.spdc three.spdc
expect 0 '"different_targets": 3' "$SPDC" info --json --cache three
for foreign in text convert damaged; do
    case $foreign in
        text) echo 'my notes' >counts.spdc ;;
        convert) "$SPDC" convert counts counts.spdc ;;
        damaged) "$SPDC" convert counts c.spdc && head -c 500 c.spdc >counts.spdc ;;
    esac
    cp counts.spdc kept
    expect 2 'counts.spdc: exists and is no cache that --cache made' "$SPDC" info --cache counts
    check "$foreign is kept" cmp -s kept counts.spdc
done
printf '\001' | dd of=two.spdc bs=1 seek=12 conv=notrunc status=none
expect 2 'two.spdc: version 1 of the format.*make the file again, with spdc convert' "$SPDC" info two.spdc
expect 0 '"rows": 61' "$SPDC" info --json --cache two
expect 0 '"rows": 61' "$SPDC" info --json two.spdc # made again: a cache of another version is one of ours
expect 0 '' "$SPDC" convert counts counts.spdc
printf '\001' | dd of=counts.spdc bs=1 seek=12 conv=notrunc status=none
expect 2 'counts.spdc: exists and is no cache that --cache made' "$SPDC" info --cache counts
printf '\377' | dd of=two.spdc bs=1 seek=$(($(stat -c %s two.spdc) - 400)) conv=notrunc status=none
expect 2 'two.spdc: damaged' "$SPDC" train --cache two

# Cut short while it is in use: the program has mapped it when it opens the weights.
for ((k = 0; k < 100; k++)); do cat two; done >many
"$SPDC" convert many many.spdc && mkfifo slow_weights
{ truncate -s 4096 many.spdc; yes 1 | head -n "$(wc -l <many)"; } >slow_weights &
writer=$!
expect 2 '^spdc: many.spdc: became shorter' "$SPDC" train --quiet --weights slow_weights many.spdc model_of_many
kill "$writer" 2>/dev/null
check "cut short: no model" test ! -e model_of_many

# No cache can be written: a warning, and the work is done.
long=$(printf 'n%.0s' {1..252}) # with .spdc longer than a name can be
cp three "$long"
expect 0 'warning: no cache is made: .*File name too long' "$SPDC" info --cache "$long"
check "the result is there" grep -q '^rows' out
if ((EUID != 0)); then
    mkdir sealed && cp three sealed && chmod a-w sealed
    expect 0 'warning: no cache is made: .*Permission denied' "$SPDC" info --cache sealed/three
fi
expect 1 'cache needs a file, not standard input' "$SPDC" info --cache -
expect 2 'none: cannot open' "$SPDC" info --cache none
xz -k three
expect 0 '' "$SPDC" info --cache three.xz
check "compressed texts have one, too" test -s three.xz.spdc
check "no temporary files" test -z "$(find . -name '.spdc-*')"
finish
