#!/usr/bin/env python3
"""notices.py TARGET > THIRD-PARTY.txt: prints the licence texts of the crates linked into throng, each text once."""

import pathlib
import sys

import crates

NAMES = ("licen", "copying", "copyright", "notice", "unlicense")


def texts(folder):
    # Libraries in other languages are one folder below the crate that builds them.
    for path in sorted([*folder.iterdir(), *folder.glob("*/*")]):
        if path.is_file() and path.name.lower().startswith(NAMES) and path.suffix not in (".rs", ".html"):
            yield path.read_text(errors="replace").strip()


def main(target):
    root, packages, _, scope = crates.resolved(target)
    users, without = {}, []
    for one in sorted(scope, key=lambda one: (packages[one]["name"], packages[one]["version"])):
        if one == root or packages[one]["source"] is None or scope[one] != "required":
            continue
        package = packages[one]
        name = f"{package['name']} {package['version']} ({package['license'] or 'see its text'})"
        found = list(dict.fromkeys(text for text in texts(pathlib.Path(package["manifest_path"]).parent) if text))
        for text in found:
            users.setdefault(text, []).append(name)
        if not found:
            without.append(name)
    print("throng is linked with the following crates, each group followed by its licence text.\n")
    if without:
        print("Without a licence text, under the licence in parentheses:\n  " + "\n  ".join(without) + "\n")
    for text, names in users.items():
        print("=" * 80 + "\n" + "\n".join(names) + "\n" + "-" * 80 + "\n" + text + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: notices.py TARGET > THIRD-PARTY.txt")
    main(sys.argv[1])
