#!/usr/bin/env python3
"""A small peer after CASTLE (Cao, Carminati, Ferrari, Tan: CASTLE, IEEE TDSC 8(3), 2011), for docs/comparison.md.

    benches/castle.py SCHEMA.toml RECORDS.ndjson [k] [delay] [clusters]

Clusters show the minimum and the maximum of their own numbers, and the lowest common label of the others. Prints the mean Loss
(docs/internals/methods.md §9) of the present quasi cells. A cell that is missing in some records of a cluster and present in others is `*`.
The standard library only. One record counts as one person; noise and reuse of clusters are as in the paper, without its t-closeness.
"""

import json
import sys
import tomllib
from collections import OrderedDict


class Number:
    def __init__(self, hierarchy, rounding):
        self.low, self.high, self.step = hierarchy["min"], hierarchy["max"], rounding

    def read(self, value):
        if value is None or not self.low <= value <= self.high:
            return None
        if isinstance(self.step, (int, float)):
            value = round(value / self.step) * self.step
        return (value, value)

    def join(self, a, b):
        return (min(a[0], b[0]), max(a[1], b[1]))

    def loss(self, extent):
        return (extent[1] - extent[0]) / (self.high - self.low)


class Label:
    def __init__(self, tree):
        self.paths = {}
        self._walk(tree, ())
        self.leaves = len(self.paths)
        self.below = {}
        for path in self.paths.values():
            for depth in range(len(path) + 1):
                self.below[path[:depth]] = self.below.get(path[:depth], 0) + 1

    def _walk(self, tree, path):
        if isinstance(tree, list):
            for leaf in tree:
                self.paths[leaf] = (*path, leaf)
        else:
            for name, below in tree.items():
                self._walk(below, (*path, name))

    def read(self, value):
        if value is None:
            return None
        return self.paths.get(value, (value,))

    def join(self, a, b):
        common = 0
        while common < min(len(a), len(b)) and a[common] == b[common]:
            common += 1
        return a[:common]

    def loss(self, extent):
        if not extent:
            return 1.0
        return (self.below.get(extent, 1) - 1) / max(self.leaves - 1, 1)


class Cluster:
    """Extents by attribute; none before a value was met; `*` (False) where present and missing cells meet."""

    def __init__(self, axes):
        self.axes, self.extents, self.members = axes, [None] * len(axes), OrderedDict()
        self.missing = [False] * len(axes)

    def enlarged(self, cells):
        return [a if b is None else b if a is None else axis.join(a, b)
                for axis, a, b in zip(self.axes, self.extents, cells)]

    def losses(self, extents, missing):
        return [0.0 if e is None else 1.0 if m else axis.loss(e) for axis, e, m in zip(self.axes, extents, missing)]

    def loss(self):
        return sum(self.losses(self.extents, self.missing)) / len(self.axes)

    def loss_with(self, cells):
        missing = [m or c is None for m, c in zip(self.missing, cells)]
        return sum(self.losses(self.enlarged(cells), missing)) / len(self.axes)

    def add(self, number, cells):
        self.extents = self.enlarged(cells)
        self.missing = [m or c is None for m, c in zip(self.missing, cells)]
        self.members[number] = cells


class Castle:
    def __init__(self, axes, k, delay, most):
        self.axes, self.k, self.delay, self.most = axes, k, delay, most
        self.open, self.of, self.recent = [], {}, []
        self.lost = self.present = self.suppressed = 0

    def threshold(self):
        return sum(self.recent) / len(self.recent) if self.recent else 0.0

    def push(self, number, cells):
        best = min(self.open, key=lambda c: c.loss_with(cells) - c.loss(), default=None)
        if best is None or best.loss_with(cells) > self.threshold() and len(self.open) < self.most:
            best = Cluster(self.axes)
            self.open.append(best)
        best.add(number, cells)
        self.of[number] = best
        if number - self.delay in self.of:
            self.expire(number - self.delay)

    def expire(self, number):
        cluster = self.of[number]
        others = [c for c in self.open if c is not cluster]
        while len(cluster.members) < self.k and others:
            def enlargement(other):
                merged = other.loss()
                for cells in cluster.members.values():
                    merged = max(merged, other.loss_with(cells))
                return merged - other.loss()
            near = min(others, key=enlargement)
            others.remove(near)
            self.open.remove(near)
            for at, cells in near.members.items():
                cluster.add(at, cells)
                self.of[at] = cluster
        self.open.remove(cluster)
        if len(cluster.members) < self.k:
            for at, cells in cluster.members.items():
                self.count(cells, [1.0] * len(self.axes))
                self.suppressed += 1
                del self.of[at]
            return
        for part in self.split(cluster) if len(cluster.members) >= 2 * self.k else [cluster]:
            self.recent = (self.recent + [part.loss()])[-100:]
            losses = part.losses(part.extents, part.missing)
            for at, cells in part.members.items():
                self.count(cells, losses)
                del self.of[at]

    def split(self, cluster):
        """Nearest neighbours, k at a time; the rest joins the part that it enlarges least."""
        left, parts = list(cluster.members.items()), []
        while len(left) >= self.k:
            part = Cluster(self.axes)
            part.add(*left.pop(0))
            while len(part.members) < self.k:
                near = min(range(len(left)), key=lambda at: part.loss_with(left[at][1]))
                part.add(*left.pop(near))
            parts.append(part)
        for number, cells in left:
            min(parts, key=lambda part: part.loss_with(cells) - part.loss()).add(number, cells)
        return parts

    def count(self, cells, losses):
        for cell, loss in zip(cells, losses):
            if cell is not None:
                self.present += 1
                self.lost += loss

    def finish(self):
        for number in sorted(self.of):
            if number in self.of:
                self.expire(number)


def main():
    schema, records = sys.argv[1:3]
    given = [int(number) for number in sys.argv[3:6]]
    k, delay, clusters = given + [5, 1000, 50][len(given):]
    with open(schema, "rb") as file:
        attributes = tomllib.load(file)["attribute"]
    axes = OrderedDict()
    for attribute in attributes:
        if attribute.get("role", "quasi") in ("quasi", "time"):
            hierarchy = attribute.get("hierarchy", {"kind": "tree", "tree": []})
            numbers = hierarchy["kind"] in ("intervals", "bounds")
            axes[attribute["name"]] = (
                Number(hierarchy, attribute.get("round")) if numbers else Label(hierarchy.get("tree", [])))
    castle = Castle(list(axes.values()), k, delay, clusters)
    with open(records, encoding="utf-8") as file:
        for number, line in enumerate(file):
            record = json.loads(line)
            castle.push(number, [axis.read(record.get(name)) for name, axis in axes.items()])
    castle.finish()
    print(f"loss {castle.lost / castle.present:.4f}, suppressed records {castle.suppressed}, k {k}, delay {delay}, clusters {clusters}")


if __name__ == "__main__":
    main()
