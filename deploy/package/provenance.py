#!/usr/bin/env python3
"""provenance.py KEY=VALUE … -- FILE … > throng.intoto.json: prints the provenance of the files, an in-toto statement with
SLSA's predicate (https://slsa.dev/provenance/v1).

The build writes it unsigned; the publisher of the files signs it.
Keys: version, target, profile, commit, dirty, rustc, cargo, started, finished, binary (given if it was built elsewhere)."""

import hashlib
import json
import pathlib
import sys

import crates


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def statement(facts, files):
    parameters = {key: facts[key] for key in ("version", "target", "profile") if key in facts}
    parameters["source"] = "given" if "binary" in facts else "built"
    sources = {"uri": "git+file:.", "digest": {"gitCommit": facts["commit"]}}
    if facts.get("dirty") == "yes":
        sources["annotations"] = {"changed": "the sources differ from this commit"}
    if "binary" in facts:
        sources["annotations"] = sources.get("annotations", {}) | {"program": "built elsewhere, and only packaged here"}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": pathlib.Path(file).name, "digest": {"sha256": digest(file)}} for file in sorted(files)
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:throng:dev-package:1",
                "externalParameters": parameters,
                "internalParameters": {"rustc": facts["rustc"], "cargo": facts["cargo"]},
                "resolvedDependencies": [
                    sources,
                    {"uri": "file:Cargo.lock", "digest": {"sha256": digest(crates.ROOT / "Cargo.lock")}},
                ],
            },
            "runDetails": {
                "builder": {"id": "urn:throng:dev-package"},
                "metadata": {"startedOn": facts["started"], "finishedOn": facts["finished"]},
            },
        },
    }


if __name__ == "__main__":
    if "--" not in sys.argv:
        sys.exit("usage: provenance.py KEY=VALUE … -- FILE … > throng.intoto.json")
    cut = sys.argv.index("--")
    known = dict(fact.split("=", 1) for fact in sys.argv[1:cut])
    json.dump(statement(known, sys.argv[cut + 1 :]), sys.stdout, indent=1)
    print()
