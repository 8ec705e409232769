#!/usr/bin/env python3
"""Presence attack that shares no code with throng: the group whose classes leave more often just after a person has sent.

    benches/presence.py RELEASE ORIGINAL SUBJECT BATCH [MOMENTS]

RELEASE is the folder with out.GROUP.ndjson and lineage.ndjson of one run over ORIGINAL (NDJSON, people in the key SUBJECT) in batches of
BATCH records. The attacker knows at most MOMENTS batches in which a target sent (default: all), and expects of every class the mean of the
batches around each moment. The lineage scores guesses and serves no other purpose. Chance is the same guess, judged for another target.
"""
import collections
import json
import random
import sys

import numpy

TARGETS = 300
REACHES = (1, 5, 20)  # batches after a moment that are counted
SIDES = (5, 10, 20)  # batches before and after them that are the baseline


def says_nothing(text):
    return all(value in ("*", None) for value in json.loads(text).values())


def read(folder, people, size):
    """By group: the lines of each class by batch, and the classes of each person."""
    groups = collections.defaultdict(list)
    with open(f"{folder}/lineage.ndjson") as lineage:
        for entry in map(json.loads, lineage):
            groups[entry["group"]].append((entry["line"], entry["batch"], people[entry["source"][2]]))
    last = max(batch for lines in groups.values() for _, batch, _ in lines)
    batches = max(last, len(people) // size + 1) + 1
    for group, lines in sorted(groups.items()):
        with open(f"{folder}/out.{group}.ndjson") as file:
            texts = file.read().split("\n")
        classes, counts, of_person = {}, [], collections.defaultdict(set)
        for line, batch, person in lines:
            if says_nothing(texts[line]):
                continue
            at = classes.setdefault(texts[line], len(classes))
            if at == len(counts):
                counts.append(numpy.zeros(batches))
            counts[at][batch] += 1
            of_person[person].add(at)
        if counts:
            yield group, numpy.array(counts), of_person


def guess(before, moments, reach, side):
    """The class that leaves most above its baseline; `before` has the lines before each batch."""
    last = before.shape[1] - 1
    met, expected = 0, 0
    for at in moments:
        to, first, end = min(at + reach, last), max(at - side, 0), min(at + reach + side, last)
        lines = before[:, to] - before[:, at]
        around = before[:, end] - before[:, first] - lines
        met = met + lines
        expected = expected + around * (to - at) / max(1, end - first - (to - at))
    return int(numpy.argmax((met - expected) / numpy.sqrt(expected + 0.2)))


def main(folder, original, subject, size, most=None):
    dice = random.Random(1)
    with open(original) as file:
        people = [json.loads(line)[subject] for line in file]
    moments = collections.defaultdict(set)
    for record, person in enumerate(people):
        moments[person].add(record // int(size) + 1)
    for group, counts, of_person in read(folder, people, int(size)):
        before = numpy.concatenate([numpy.zeros((len(counts), 1)), numpy.cumsum(counts, 1)], 1)
        targets = sorted(person for person in of_person if len(moments[person]) >= 3)
        dice.shuffle(targets)
        targets = targets[:TARGETS]
        results = []
        for reach in REACHES:
            for side in SIDES:
                right = chance = 0
                for target in targets:
                    known = sorted(moments[target])
                    if most is not None and len(known) > int(most):
                        known = dice.sample(known, int(most))
                    found = guess(before, known, reach, side)
                    right += found in of_person[target]
                    chance += found in of_person[dice.choice([other for other in targets if other != target])]
                results.append((right / len(targets), chance / len(targets)))
        right, chance = max(results)
        print(f"{group}: {len(counts)} classes, {len(targets)} targets, right {right:.1%}, by chance {chance:.1%}")


if __name__ == "__main__":
    main(*sys.argv[1:])
