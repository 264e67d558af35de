# The page of the command line knows every option that the program has.
source "$(dirname "$0")/common.sh"
page=$repository/docs/command_line.md

for command in train compare predict evaluate info convert verify; do
    check "$command is in the docs" grep -q "^## $command\$" "$page"
    "$SPDC" help "$command" >help
    for option in $(grep -oE '^  (-.,)?--[A-Za-z0-9-]+' help | grep -oE -- '--[A-Za-z0-9-]+'); do
        check "$command $option is in the docs" grep -qE -- "$option[\` ]" "$page"
    done
done
for loss in $(tr '\n' ' ' <"$repository/include/spdc/losses.h" | grep -oE 'std::string_view name = "[a-z_]+"' | grep -oE '"[a-z_]+"' | tr -d '"'); do
    check "the loss $loss is in the docs" grep -q "\`$loss\`" "$page"
done
finish
