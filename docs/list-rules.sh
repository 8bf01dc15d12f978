#!/usr/bin/env bash
# Lists each rule of docs/rules.md with the tests named for it. A test proves a rule when its name begins with the rule's letter
# and number, as in `fn q3_newcomer_never_passes_a_waiter()`; a name may begin with several (`c9_m1_...`).
# Fails when a rule in force has no test, or when a test is named for a rule that doesn't exist.
# usage: docs/list-rules.sh [--missing]   only the rules in force that have no test
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

only_missing=no
case "${1-}" in
"") ;;
--missing) only_missing=yes ;;
*)
    echo "usage: docs/list-rules.sh [--missing]" >&2
    exit 2
    ;;
esac

# One line a rule: its name and `in force` or `planned`.
rules() {
    sed -nE 's/^\*\*([A-Z][0-9]+)\*\* \*\((in force|planned)\)\*.*/\1\t\2/p' docs/rules.md
}

# One line a rule and test: the rule's name, then the test's with its file. Only functions under a test attribute count, and none
# that is ignored; attributes, comments and blank lines may stand between.
tests() {
    local folders=() folder
    for folder in src tests e2e; do
        [[ -d $folder ]] && folders+=("$folder")
    done
    find "${folders[@]}" -name target -prune -o -name '*.rs' -print | sort | while IFS= read -r file; do
        awk -v file="$file" '
            /^[ \t]*(\/\/|$)/ { next }
            /^[ \t]*#\[/ {
                if ($0 ~ /#\[([a-z_]+::)?(test|rstest|test_case)[](]/) is_test = 1
                if ($0 ~ /#\[ignore/) is_ignored = 1
                if ($0 !~ /fn [a-z]/) next
            }
            /fn [a-z][0-9]+_/ && is_test && !is_ignored {
                name = $0
                sub(/^.*fn /, "", name)
                sub(/[^a-z0-9_].*$/, "", name)
                rest = name
                while (match(rest, /^[a-z][0-9]+_/)) {
                    print toupper(substr(rest, 1, RLENGTH - 1)) "\t" name "  " file
                    rest = substr(rest, RLENGTH + 1)
                }
            }
            { is_test = 0; is_ignored = 0 }
        ' "$file"
    done
}

if [[ -z $(rules) ]]; then
    echo "docs/rules.md lists no rule: one begins with its name and mark, as in **C1** *(in force)*" >&2
    exit 2
fi
awk -F '\t' -v only_missing="$only_missing" '
    FNR == NR { order[++count] = $1; state[$1] = $2; next }
    !($1 in state) { unknown = unknown "\n  " $1 ": " $2; next }
    { tests[$1] = tests[$1] "\n        " $2; found[$1]++ }
    END {
        for (i = 1; i <= count; i++) {
            rule = order[i]
            in_force += state[rule] == "in force"
            if (state[rule] == "in force" && !found[rule]) missing = missing " " rule
            if (only_missing == "yes") continue
            printf "%-4s %-8s  %s%s\n", rule, state[rule], found[rule] ? found[rule] (found[rule] == 1 ? " test" : " tests") : "no test", tests[rule]
        }
        printf "%s%d rules, %d in force\n", (only_missing == "yes" ? "" : "\n"), count, in_force
        if (unknown) print "tests named for a rule that docs/rules.md does not have:" unknown
        if (missing) print "in force without a test:" missing
        exit (missing || unknown) ? 1 : 0
    }
' <(rules) <(tests)
