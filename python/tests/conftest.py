import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import throng

REAL = os.environ.get("THRONG_TEST_DATA")


def generated_steps(people=60, days=30):
    random = np.random.default_rng(1)
    person = np.repeat(np.arange(people), days)
    day = np.tile(pd.date_range("2026-01-01", periods=days), people)
    steps = np.maximum(0, random.normal(6000 + 50 * person, 1500)).round(-1).astype(int)
    return pd.DataFrame({"person": person + 1_503_960_366, "day": day, "steps": steps})


@pytest.fixture(scope="session", params=["generated"] + (["fitbit"] if REAL else []))
def steps(request):
    """Daily or hourly steps: person (a number of ten digits), day, steps."""
    if request.param == "generated":
        return generated_steps()
    raw = pd.read_csv(Path(REAL) / "fitbit/hourly_steps.csv")
    day = pd.to_datetime(raw["ActivityDay"] + " " + raw["ActivityHour"], format="%m/%d/%Y %H:%M:%S")
    return pd.DataFrame({"person": raw["Id"], "day": day, "steps": raw["StepTotal"]})


@pytest.fixture(scope="session")
def policy(steps, tmp_path_factory):
    return throng.init(steps, subject="person", k=5, directory=tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="session")
def people():
    """One row per person, for `anonymize`."""
    random = np.random.default_rng(2)
    return pd.DataFrame({"age": random.integers(20, 60, 400), "sex": random.choice(["f", "m"], 400)})


@pytest.fixture(scope="session")
def people_policy(people, tmp_path_factory):
    return throng.init(people, k=5, purpose="rows", directory=tmp_path_factory.mktemp("people"), no_subject=True)


@pytest.fixture(autouse=True)
def temporary_files(tmp_path_factory, monkeypatch):
    """Every test has a temporary directory of its own, which is empty again at its end."""
    folder = tmp_path_factory.mktemp("tmp")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []
