#!/bin/sh
# Checks the links of the documents: every local link of README.md, CONTRIBUTING.md, CHANGELOG.md and docs/ must lead to a file,
# and every anchor to a heading. Every page of docs/ must be listed once in docs/SUMMARY.md and must not link outside of docs/,
# because the book contains only docs/. Needs no network: web links are not followed.
#   tests/links.sh             checks itself with a test repository, then this repository
#   tests/links.sh FOLDER      checks another repository
set -eu

LC_ALL=C
export LC_ALL

# Prints one problem per line, in the order of the documents. Fails if there is one.
check() { # FOLDER
    (
        cd "$1"
        # shellcheck disable=SC2046 # names of documents have no white space; one that has is reported
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
# Returns the anchor of a heading: lower case, no punctuation, a hyphen for each space.
function slug(text) {
    while (match(text, /\]\([^)]*\)/)) text = substr(text, 1, RSTART - 1) substr(text, RSTART + RLENGTH)
    gsub(/–|—|…|→|↔|·|×|≥|≤/, "", text)
    text = tolower(text)
    gsub(/[!-,.\/:-@\[-^`{-~]/, "", text)
    gsub(/ /, "-", text)
    return text
}
function report(problem) { print problem; bad = 1 }
FILENAME == "-" { there[$0] = 1; if ($0 ~ / /) if ($0 ~ /^docs\/.*\.md$/) report($0 ": white space in the name of a document"); next }
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
        if (!(found in there)) { report(where[i] ": " to[i] " leads to no file"); continue }
        if (anchor != "" && !((found "#" anchor) in headings)) report(where[i] ": " found " has no heading " anchor)
        if (file[i] ~ /^docs\// && found !~ /^docs\//) report(where[i] ": " to[i] " is outside of docs/, and not in the book")
        if (file[i] == "docs/SUMMARY.md") listed[found]++
    }
    for (name in there) if (name ~ /^docs\/.*\.md$/ && name != "docs/SUMMARY.md" && listed[name] != 1)
        report(name ": listed " (listed[name] + 0) " times in docs/SUMMARY.md instead of once")
    if (links < 1) report("no links found: check the paths")
    exit bad
}'

expect() { # PROBLEM
    printf '%s\n' "$problems" | grep -qxF "$1" || { echo "links: problem of the test repository not found: $1" >&2; exit 1; }
}

# Checks that a correct repository has no problems, and that every broken link is found.
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
    problems=$(check "$made") || { printf 'links: problems found in a correct test repository:\n%s\n' "$problems" >&2; exit 1; }
    printf 'x\n[a](gone.md) [b](#no-heading) [c](deep/b.md#again-2) [d](../config.toml) [e](deep/) [f](../../x) [g](../target/x)\n' >>"$made/docs/a.md"
    printf '# C\n' >"$made/docs/c.md"
    printf -- '- [B](deep/b.md)\n' >>"$made/docs/SUMMARY.md"
    : >"$made/target/x"
    ! problems=$(check "$made") || { echo "links: no problems found in a broken test repository" >&2; exit 1; }
    expect 'docs/a.md:9: gone.md leads to no file'
    expect 'docs/a.md:9: docs/a.md has no heading no-heading'
    expect 'docs/a.md:9: docs/deep/b.md has no heading again-2'
    expect 'docs/a.md:9: ../config.toml is outside of docs/, and not in the book'
    expect 'docs/a.md:9: deep/ leads to no file'
    expect 'docs/a.md:9: ../../x leads to no file'
    expect 'docs/a.md:9: ../target/x leads to no file'
    expect 'docs/c.md: listed 0 times in docs/SUMMARY.md instead of once'
    expect 'docs/deep/b.md: listed 2 times in docs/SUMMARY.md instead of once'
    [ "$(printf '%s\n' "$problems" | wc -l)" -eq 9 ] || { printf 'links: unexpected problems:\n%s\n' "$problems" >&2; exit 1; }
}

if [ $# -gt 0 ]; then
    check "$1"
    exit
fi
check_itself
check "$(dirname "$0")/.."
