#!/bin/sh
# The documents link to what is there: every local link of README.md, CONTRIBUTING.md, CHANGELOG.md and docs/ leads to a file,
# and every anchor to a heading; every page of docs/ stands in docs/SUMMARY.md once, and links to nothing outside of docs/,
# which the book would not have. Needs no network: links to the web are not followed.
#   tests/links.sh             checks this repository; then itself, on a made-up one
#   tests/links.sh FOLDER      checks another one
set -eu

LC_ALL=C
export LC_ALL

# Prints a complaint a line, in the order of the documents; ends with 1 where there is one.
check() { # FOLDER
    (
        cd "$1"
        # shellcheck disable=SC2046 # names of documents have no white space; one that has is complained of
        set -- $(find docs -name '*.md' | sort)
        for file in README.md CONTRIBUTING.md CHANGELOG.md; do
            [ ! -f "$file" ] || set -- "$@" "$file"
        done
        find . \( -path ./target -o -path ./.git -o -path ./.tools \) -prune -o -type f -print | sed 's|^\./||' |
            awk "$PROGRAM" - "$@"
    )
}

# shellcheck disable=SC2016 # $0 and the like are awk's
PROGRAM='
function resolve(from, path,    parts, n, i, kept, depth, out) {
    sub(/[^\/]*$/, "", from)
    n = split(from path, parts, "/")
    depth = 0
    for (i = 1; i <= n; i++) {
        if (parts[i] == "" || parts[i] == ".") continue
        if (parts[i] == "..") { if (depth == 0) return "../"; depth-- } else kept[++depth] = parts[i]
    }
    out = ""
    for (i = 1; i <= depth; i++) out = out (i > 1 ? "/" : "") kept[i]
    return out
}
# What a heading is called in an address: small letters, no punctuation, a hyphen for each blank.
function slug(text) {
    while (match(text, /\]\([^)]*\)/)) text = substr(text, 1, RSTART - 1) substr(text, RSTART + RLENGTH)
    gsub(/–|—|…|→|↔|·|×|≥|≤/, "", text)
    text = tolower(text)
    gsub(/[!-,.\/:-@\[-^`{-~]/, "", text)
    gsub(/ /, "-", text)
    return text
}
function complain(what) { print what; bad = 1 }
FILENAME == "-" { there[$0] = 1; if ($0 ~ / /) if ($0 ~ /^docs\/.*\.md$/) complain($0 ": white space in the name of a document"); next }
FNR == 1 { fenced = 0 }
/^ *```/ { fenced = !fenced; next }
fenced { next }
/^#+ / {
    heading = $0
    sub(/^#+ +/, "", heading)
    sub(/ +$/, "", heading)
    name = slug(heading)
    anchor = FILENAME "#" name
    if (anchor in seen) anchor = anchor "-" seen[FILENAME "#" name]
    seen[FILENAME "#" name]++
    headings[anchor] = 1
}
{
    rest = $0
    gsub(/`[^`]*`/, "", rest)
    while (match(rest, /\]\([^)]*\)/)) {
        target = substr(rest, RSTART + 2, RLENGTH - 3)
        rest = substr(rest, RSTART + RLENGTH)
        sub(/ +".*"$/, "", target)
        if (target ~ /^(https?|mailto):/) continue
        links++
        where[links] = FILENAME ":" FNR
        file[links] = FILENAME
        to[links] = target
    }
}
END {
    for (i = 1; i <= links; i++) {
        path = to[i]; anchor = ""
        if ((at = index(path, "#")) > 0) { anchor = substr(path, at + 1); path = substr(path, 1, at - 1) }
        found = path == "" ? file[i] : resolve(file[i], path)
        if (!(found in there)) { complain(where[i] ": " to[i] " leads to no file"); continue }
        if (anchor != "" && !((found "#" anchor) in headings)) complain(where[i] ": " found " has no heading " anchor)
        if (file[i] ~ /^docs\// && found !~ /^docs\//) complain(where[i] ": " to[i] " is outside of docs/: the book does not have it")
        if (file[i] == "docs/SUMMARY.md") listed[found]++
    }
    for (name in there) if (name ~ /^docs\/.*\.md$/ && name != "docs/SUMMARY.md" && listed[name] != 1)
        complain(name ": stands " (listed[name] + 0) " times in docs/SUMMARY.md, not once")
    if (links < 1) complain("no link was found: was anything looked at?")
    exit bad
}'

expect() { # COMPLAINT
    printf '%s\n' "$complaints" | grep -qxF "$1" || { echo "links: not found in a made-up repository: $1" >&2; exit 1; }
}

# A repository in order has no complaints; whatever does not resolve is found.
check_itself() {
    made=$(mktemp -d)
    trap 'rm -rf "$made"' EXIT
    mkdir -p "$made/docs/deep" "$made/target"
    printf '[a](docs/a.md) [out](config.toml)\n' >"$made/README.md"
    : >"$made/config.toml"
    # shellcheck disable=SC2016 # back quotes of a document
    printf '# A `word`, and more\n[self](#a-word-and-more) [b](deep/b.md#again-1) [web](https://x.example/#y)\n```\n[no](nowhere.md)\n# No heading\n```\n`[no](nowhere.md)`\n' >"$made/docs/a.md"
    printf '## Again\n## Again\n[back](../a.md "a title")\n' >"$made/docs/deep/b.md"
    printf '[A](a.md)\n- [B](deep/b.md)\n' >"$made/docs/SUMMARY.md"
    complaints=$(check "$made") || { printf 'links: complaints about a made-up repository in order:\n%s\n' "$complaints" >&2; exit 1; }
    printf 'x\n[a](gone.md) [b](#no-heading) [c](deep/b.md#again-2) [d](../config.toml) [e](deep/) [f](../../x) [g](../target/x)\n' >>"$made/docs/a.md"
    printf '# C\n' >"$made/docs/c.md"
    printf -- '- [B](deep/b.md)\n' >>"$made/docs/SUMMARY.md"
    : >"$made/target/x"
    ! complaints=$(check "$made") || { echo "links: a made-up repository with faults has no complaints" >&2; exit 1; }
    expect 'docs/a.md:9: gone.md leads to no file'
    expect 'docs/a.md:9: docs/a.md has no heading no-heading'
    expect 'docs/a.md:9: docs/deep/b.md has no heading again-2'
    expect 'docs/a.md:9: ../config.toml is outside of docs/: the book does not have it'
    expect 'docs/a.md:9: deep/ leads to no file'
    expect 'docs/a.md:9: ../../x leads to no file'
    expect 'docs/a.md:9: ../target/x leads to no file'
    expect 'docs/c.md: stands 0 times in docs/SUMMARY.md, not once'
    expect 'docs/deep/b.md: stands 2 times in docs/SUMMARY.md, not once'
    [ "$(printf '%s\n' "$complaints" | wc -l)" -eq 9 ] || { printf 'links: other complaints than expected:\n%s\n' "$complaints" >&2; exit 1; }
}

if [ $# -gt 0 ]; then
    check "$1"
    exit
fi
check_itself
check "$(dirname "$0")/.."
