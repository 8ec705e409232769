#!/usr/bin/env python3
"""The learner of `throng evaluate --target` against scikit-learn: seconds of processor and areas under the curve, one table on the
standard output.

    pip install scikit-learn
    benches/learning.py THRONG WORK_FOLDER [RECORDS]

Both learn from the same records of `throng generate health --seed 1`, by the same attributes, as the same columns (numbers centred
and scaled, categories as 32 columns at most), with the same penalty, and are tested on 30 % of the records. Of `throng evaluate` the
time of a run without a target is taken off, and what is left is three models: of all attributes before, of those of the group before,
and of the lines after.
"""

import collections
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

import numpy as np
import scipy.sparse
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

COLUMNS = 32
TARGETS = {
    "gender": (lambda record: record["gender"], {"gender"}),
    "blood_type": (lambda record: record["blood_type"], {"blood_type"}),
    "any(disease_*) = DOID:3393": (
        lambda record: any(record[f"disease_{i}"] == "DOID:3393" for i in range(20)),
        {f"disease_{i}" for i in range(20)},
    ),
}
IDENTIFIERS = {"number", "given_name", "surname", "street", "email", "telephone", "national_id"}


def processor_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime, done.stdout


def columns(records, names):
    parts = []
    for name in names:
        values = [record[name] for record in records]
        if all(value is None or isinstance(value, (int, float)) for value in values):
            numbers = np.array([np.nan if value is None else float(value) for value in values])
            scaled = (numbers - np.nanmean(numbers)) / (np.nanstd(numbers) or 1.0)
            parts += [np.nan_to_num(scaled)[:, None], np.isnan(numbers)[:, None].astype(float)]
            continue
        frequent = collections.Counter(value for value in values if value is not None).most_common(COLUMNS)
        parts += [np.array([value == of for value in values], dtype=float)[:, None] for of, _ in frequent]
    return scipy.sparse.csr_matrix(np.hstack(parts))


def scikit_learn(records, target, left_out):
    names = [name for name in records[0] if name not in IDENTIFIERS | left_out]
    x = columns(records, names)
    classes = [target(record) for record in records]
    frequent = [of for of, _ in collections.Counter(classes).most_common(7)]
    y = np.array([frequent.index(of) if of in frequent else 7 for of in classes])
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.3, random_state=0)
    begun = time.process_time()
    model = LogisticRegression(C=1.0, max_iter=500).fit(x_train, y_train)
    seconds = time.process_time() - begun
    scores = model.decision_function(x_test)
    if scores.ndim == 1:
        scores = np.stack([-scores, scores], axis=1)
    areas = [roc_auc_score(y_test == of, scores[:, at]) for at, of in enumerate(model.classes_) if (y_test == of).any()]
    return seconds, float(np.mean(areas)), len(model.classes_)


def main():
    throng, work = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    count = sys.argv[3] if len(sys.argv) > 3 else "20000"
    work.mkdir(parents=True, exist_ok=True)
    root = pathlib.Path(__file__).resolve().parent.parent
    original, released, config = work / "health.ndjson", work / "out.ndjson", work / "throng.toml"
    subprocess.run([throng, "generate", "health", "--records", count, "--seed", "1", "-o", original], check=True)
    config.write_text(
        f'[source]\nkind = "file"\npath = "{original}"\n[sink]\nkind = "file"\npath = "{released}"\n'
        f'[schema]\nfile = "{root}/schemas/health.toml"\n[privacy]\nk = 5\n'
    )
    lineage = work / "lineage.ndjson"
    subprocess.run([throng, "run", "-c", config, "--lineage", lineage], check=True, stderr=subprocess.DEVNULL)
    evaluate = [throng, "evaluate", original, released, "-c", config, "--lineage", lineage, "--queries", "1", "--json"]
    alone, _ = processor_seconds(evaluate)
    records = [json.loads(line) for line in original.open()]
    print(f"{len(records)} records, scikit-learn {sklearn.__version__}; evaluate without a target {alone:.1f} s\n")
    print("| target | classes | throng, three models | scikit-learn, one | ratio by model | AUC | AUC of scikit-learn |")
    print("|---|---|---|---|---|---|---|")
    for name, (target, left_out) in TARGETS.items():
        seconds, text = processor_seconds([*evaluate, "--target", name])
        learned = json.loads(text)["learning"][0]
        own = max(seconds - alone, 0.01)
        theirs, area, classes = scikit_learn(records, target, left_out)
        ratio, auc = own / 3 / theirs, learned["whole"]["auc"]
        print(f"| `{name}` | {classes} | {own:.1f} s | {theirs:.1f} s | {ratio:.2f} | {auc:.3f} | {area:.3f} |")


if __name__ == "__main__":
    main()
