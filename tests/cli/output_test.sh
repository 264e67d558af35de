# Where results are written: whole or not at all, never over a device, and found out before the work.
source "$(dirname "$0")/common.sh"
quick=(train --quiet --tolerance 1e-2)

expect 2 'none/model: cannot open for writing: No such file' "$SPDC" "${quick[@]}" two none/model
mkdir folder
expect 2 'folder: cannot open for writing: Is a directory' "$SPDC" "${quick[@]}" two folder
expect 2 'none/y: cannot open' "$SPDC" "${quick[@]}" --dual none/y two model
expect 2 'none/t.csv: cannot open' "$SPDC" "${quick[@]}" --trace none/t.csv two model
check "nothing was written" test ! -e model
expect 2 'none/model: cannot open' "$SPDC" train --max-seconds 100 --tolerance 1e-15 --l2 1e-12 no_such_data none/model
if ((EUID != 0)); then
    echo kept >read_only
    chmod a-w read_only
    expect 2 'read_only: cannot open for writing: Permission denied' "$SPDC" "${quick[@]}" two read_only
    mkdir sealed && chmod a-w sealed
    expect 2 'sealed/model: cannot open for writing: Permission denied' "$SPDC" "${quick[@]}" two sealed/model
fi

# A full disk: the message, the code, and the device is still a device.
if [[ -c /dev/full ]]; then
    expect 2 '/dev/full: cannot write: No space left' "$SPDC" "${quick[@]}" two /dev/full
    expect 2 '/dev/full: cannot write: No space left' "$SPDC" "${quick[@]}" --dual /dev/full two model
    check "the device is still there" test -c /dev/full
    "$SPDC" "${quick[@]}" two >/dev/full 2>err
    check "a full standard output is noticed" test $? = 2
    check "and said" grep -q 'standard output: cannot write: No space left' err
    expect 2 'standard output|/dev/full' bash -c "'$SPDC' info two >/dev/full"
fi

expect 0 '' "$SPDC" "${quick[@]}" two /dev/null
check "/dev/null is still a device" test -c /dev/null
expect 0 '^spdc-model 1$' "$SPDC" "${quick[@]}" two /dev/stdout
expect 0 '^spdc-model 1$' "$SPDC" "${quick[@]}" two -
check "the report makes room for the model" grep -q '^certified' err
mkfifo pipe
cat pipe >through_pipe &
reader=$!
expect 0 '' "$SPDC" "${quick[@]}" two pipe
wait "$reader"
check "a pipe stays a pipe" test -p pipe
check "and carries the whole model" test "$(head -n 1 through_pipe)" = "spdc-model 1"
expect 0 '' "$SPDC" "${quick[@]}" two plain
check "the same as in a file" cmp -s plain through_pipe
check "no temporary files are left" test -z "$(find . -name '.spdc*')"

# An old file is replaced, and a link leads to the new one.
echo old >target
ln -s target link
expect 0 '' "$SPDC" "${quick[@]}" two link
check "the link is still a link" test -L link
check "and its target is the model" cmp -s target plain

# A reader that leaves early: no complaint of ours, no crash.
"$SPDC" predict plain "$data/a9a.t.xz" 2>err | head -n 1 >/dev/null
check "nothing on standard error" test ! -s err

# Trace files.
expect 0 '' "$SPDC" "${quick[@]}" --trace trace.jsonl two
check "one object per line" test "$(grep -c '^{"output": 0, "passes": .*}$' trace.jsonl)" = "$(wc -l <trace.jsonl)"

# Conversions.
expect 0 '' "$SPDC" convert two two.csv
expect 0 '' "$SPDC" convert two.csv back
expect 0 '' "$SPDC" "${quick[@]}" back from_csv
check "the same data, the same weights" test "$(sed '1,/^weights/d' from_csv | cut -c1-12)" = "$(sed '1,/^weights/d' plain | cut -c1-12)"
expect 0 '^1,' "$SPDC" convert --to csv two -
expect 2 'none/out: cannot open' "$SPDC" convert two none/out

# The same bits for any number of threads, on data large enough for owners of features.
awk 'BEGIN { srand(3); for (i = 0; i < 6300; ++i) { printf "%d", i % 3 ? 1 : -1
    for (j = 0; j < 160; ++j) printf " %d:%d", 10 * j + 1 + int(10 * rand()), 1 + int(9 * rand()); print "" } }' >large
for threads in 1 4; do
    expect 0 '' "$SPDC" "${quick[@]}" --l2 1 --threads $threads large model$threads
    expect 0 '' "$SPDC" "${quick[@]}" --l2 1 --solver spdc_fast --owners 16 --threads $threads large owners$threads
done
check "the same bits with 1 and 4 threads" cmp -s model1 model4
check "the same bits with 1 and 4 threads for owners" cmp -s owners1 owners4

finish
