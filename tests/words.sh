#!/bin/sh
# Checks that the comments of the Rust sources are in plain engineering English: of 10,000 words at most 15 may be one of the
# words below, which standard terms replace (CONTRIBUTING.md, "Language"). Prints each place and fails above the limit.
#   tests/words.sh             checks src/, crates/, tests/ and benches/; then itself, on a made-up file
#   tests/words.sh FOLDER...   checks others
set -eu

LC_ALL=C
export LC_ALL

# shellcheck disable=SC2016 # $0 and the like are awk's
PROGRAM='
BEGIN {
    split("what who whoever whom whose say says said tell tells told nobody somebody beside stand stands whatever anew", list, " ")
    for (i in list) banned[list[i]] = 1
}
/^[ \t]*\/\// {
    line = tolower($0)
    gsub(/[^a-z\047]+/, " ", line)
    n = split(line, word, " ")
    words += n
    for (i = 1; i <= n; i++)
        if (word[i] in banned || (word[i] == "of" && word[i + 1] ~ /^(its|their|his)$/ && word[i + 2] == "own")) {
            found++
            if (found <= 200) places = places sprintf("%s:%d: %s\n", FILENAME, FNR, word[i])
        }
}
END {
    rate = words ? found * 10000 / words : 0
    printf "%d words of comments, %.1f of 10,000 to be replaced (at most 15)\n", words, rate
    if (rate > 15) { printf "%s", places; exit 1 }
}'

check() { # FOLDER...
    find "$@" -name target -prune -o -name '*.rs' -type f -print | sort | xargs awk "$PROGRAM"
}

if [ $# -gt 0 ]; then
    check "$@"
    exit
fi

cd "$(dirname "$0")/.."
check src crates tests benches

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
printf '//! Returns the offset of a record.\nlet what = "said"; // who\n' >"$made/plain.rs"
check "$made" >/dev/null || { echo "words.sh refuses a plain file"; exit 1; }
printf '/// What a record says of its own.\n' >"$made/odd.rs"
if check "$made" >/dev/null; then
    echo "words.sh accepts a file with words to be replaced"
    exit 1
fi
