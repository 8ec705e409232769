"""Resolves the crates of throng for one target with cargo: without a build, and without network if they are fetched."""

import json
import pathlib
import subprocess
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def resolved(target):
    """Returns the root's id, {id: package}, {id: [ids]} along normal and build edges, and {id: scope}: "required" for crates in
    the program, "excluded" for crates that only help to build it."""
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    root = metadata["resolve"]["root"]
    packages = {package["id"]: package for package in metadata["packages"]}
    edges = {}
    for node in metadata["resolve"]["nodes"]:
        edges[node["id"]] = kinds = {}
        for dependency in node["deps"]:
            kinds[dependency["pkg"]] = {kind["kind"] for kind in dependency["dep_kinds"]}
    scope = {}
    for wanted, name in (({None}, "required"), ({None, "build"}, "excluded")):
        waiting = [root]
        seen = set()
        while waiting:
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            # A macro runs only during compilation and is not part of the program.
            macro = any("proc-macro" in kind for part in packages[one]["targets"] for kind in part["kind"])
            if name == "required" and macro:
                continue
            scope.setdefault(one, name)
            waiting.extend(to for to, kinds in edges[one].items() if kinds & wanted)
    graph = {one: sorted(to for to, kinds in edges[one].items() if to in scope and kinds & {None, "build"}) for one in scope}
    return root, packages, graph, scope


def checksums():
    """Returns {(name, version): SHA-256 of the crate's archive} from Cargo.lock."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {(one["name"], one["version"]): one["checksum"] for one in lock["package"] if "checksum" in one}
