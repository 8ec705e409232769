#!/usr/bin/env python3
"""sbom.py TARGET > throng.cdx.json: prints the SBOM of throng in CycloneDX 1.5.

Crates that only help to build it have the scope "excluded". The same sources produce the same bytes."""

import datetime
import json
import os
import sys
import uuid

import crates


def expression(licence):
    # Old crates use a slash instead of the OR of SPDX.
    return licence.replace("/", " OR ")


def component(package, scope, checksums):
    name, version = package["name"], package["version"]
    found = {
        "type": "library",
        "bom-ref": f"pkg:cargo/{name}@{version}",
        "name": name,
        "version": version,
        "purl": f"pkg:cargo/{name}@{version}",
        "scope": scope,
    }
    if package.get("description"):
        found["description"] = " ".join(package["description"].split())
    if package.get("license"):
        found["licenses"] = [{"expression": expression(package["license"])}]
    if (name, version) in checksums:
        found["hashes"] = [{"alg": "SHA-256", "content": checksums[name, version]}]
    if package.get("repository"):
        found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return found


def bom(target):
    root, packages, graph, scope = crates.resolved(target)
    checksums = crates.checksums()

    def reference(one):
        return f"pkg:cargo/{packages[one]['name']}@{packages[one]['version']}"

    order = sorted(scope, key=lambda one: (packages[one]["name"], packages[one]["version"]))
    of_root = component(packages[root], "required", {})
    of_root["type"] = "application"
    del of_root["scope"]
    content = {
        "components": [component(packages[one], scope[one], checksums) for one in order if one != root],
        "dependencies": [
            {"ref": reference(one), "dependsOn": sorted({reference(to) for to in graph[one]})} for one in order
        ],
    }
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    stamp = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    serial = uuid.uuid5(uuid.NAMESPACE_URL, stamp + target + json.dumps([of_root, content], sort_keys=True))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "timestamp": stamp,
            "component": of_root,
            "properties": [{"name": "throng:target", "value": target}],
        },
        **content,
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: sbom.py TARGET > throng.cdx.json")
    json.dump(bom(sys.argv[1]), sys.stdout, indent=1)
    print()
