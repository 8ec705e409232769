import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import throng
from throng import ThrongError

REAL = os.environ.get("THRONG_TEST_DATA")
KINDS = {"pandas": lambda table: table, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


class OnlyStream:
    """A table that only has the Arrow stream interface."""

    def __init__(self, table):
        self.__arrow_c_stream__ = table.__arrow_c_stream__


class OnlyInterchange:
    """A table that only has the interchange protocol."""

    def __init__(self, table):
        self.__dataframe__ = table.__dataframe__


# ---------------------------------------------------------------------- kinds of tables


@pytest.mark.parametrize("kind", KINDS)
def test_release_returns_the_kind_of_table_given(kind, steps, policy):
    table = KINDS[kind](steps)
    released = throng.release(table, policy)
    assert list(released) == ["daily"] and type(released["daily"]) is type(table)
    assert f"{steps['person'].nunique()} of {steps['person'].nunique()} people" in released.summary


@pytest.mark.parametrize("kind", KINDS)
def test_anonymize_returns_the_kind_of_table_given(kind, people, people_policy):
    table = KINDS[kind](people)
    result = throng.anonymize(table, people_policy)
    assert type(result) is type(table) and 0 < len(result) <= len(people)


def test_all_kinds_of_tables_and_paths_have_the_same_release(steps, policy, tmp_path):
    arrow = pa.Table.from_pandas(steps, preserve_index=False)
    steps.to_parquet(tmp_path / "steps.parquet")
    steps.to_csv(tmp_path / "steps.csv", index=False)
    inputs = [steps, arrow, pl.from_pandas(steps), OnlyStream(arrow), OnlyInterchange(arrow), tmp_path / "steps.parquet"]
    expected = throng.release(inputs[0], policy)["daily"]
    for data in [*inputs[1:], str(tmp_path / "steps.csv")]:
        daily = throng.release(data, policy)["daily"]
        pd.testing.assert_frame_equal(daily if isinstance(daily, pd.DataFrame) else daily.to_pandas(), expected, check_dtype=False)


def test_anonymized_classes_have_at_least_k_rows(people, people_policy):
    assert throng.anonymize(people, people_policy).groupby(["age", "sex"]).size().min() >= 5


def test_other_objects_are_refused():
    for data in [[1, 2], {"a": [1]}, None, pl.DataFrame({"a": [1]}).lazy()]:
        with pytest.raises(TypeError, match="expected a table of pandas, polars or pyarrow"):
            throng.audit(data)


# ---------------------------------------------------------------------- contents of tables


def test_numeric_subjects_are_counted_exactly():
    numbers = np.array([2**53, 2**53 + 1, 2**63 - 1, 2**63 - 2, 1_503_960_366])
    for subjects in [numbers, numbers.astype(str), pd.array(numbers, dtype="Int64")]:
        data = pd.DataFrame({"id": np.repeat(subjects, 20), "value": list(range(20)) * 5})
        assert throng.audit(data, subject="id", k=2)["subjects"] == 5


def test_number_columns_keep_leading_zeros_and_types():
    data = pd.DataFrame({"zip": ["01234", "1234", "00000"] * 10, "age": [1, 2, 3] * 10})
    report = throng.audit(data, k=2, show_values=True)
    assert {column["name"]: column["distinct"] for column in report["attributes"]} == {"zip": 3, "age": 3}


def test_non_ascii_names_and_values(tmp_path, monkeypatch):
    data = pd.DataFrame({"Größe id": [f"人{i % 12}" for i in range(240)], 'Ort, "x"': ["Zürich", "東京"] * 120, "b": range(240)})
    report = throng.audit(data, subject="Größe id", columns=['Ort, "x"'])
    assert [column["name"] for column in report["attributes"] if column["searched"]] == ['Ort, "x"']
    policy = throng.init(data, subject="Größe id", purpose="rows", directory=tmp_path / "für uns", name="Größe")
    assert policy.config.name == "Größe.toml" and "東京" in policy.schema.read_text(encoding="utf-8")
    monkeypatch.setenv("THRONG__RELEASE__MIN_REPRESENTED", "0")
    released = throng.release(data, policy)
    assert any("Zürich" in table.to_string() for table in released.values())


def test_empty_table_is_an_error(steps, policy):
    empty = steps.head(0)
    calls = [throng.audit, throng.init, policy.check, lambda data: throng.release(data, policy)]
    for call in calls:
        with pytest.raises(ThrongError, match="no records|nothing of data.parquet"):
            call(empty)


def test_duplicate_column_names_are_an_error():
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])
    with pytest.raises(ValueError, match="Duplicate column names"):
        throng.audit(frame)
    with pytest.raises(ThrongError, match="columns 1 and 2 of data.parquet have the same name"):
        throng.audit(pa.Table.from_arrays([[1], [2]], names=["a", "a"]))


def test_index_is_a_column_if_it_has_a_name(steps):
    names = lambda data: {column["name"] for column in throng.audit(data)["attributes"]}
    assert names(steps.iloc[::-1]) == {"person", "day", "steps"}
    assert names(steps.set_index("day")) == {"person", "day", "steps"}


def test_periods_and_intervals_of_pandas_are_text():
    data = pd.DataFrame({"month": pd.period_range("2026-01", periods=4, freq="M").repeat(10), "x": [*range(39), None]})
    data["age"] = pd.cut(data["x"], 4)
    report = throng.audit(data[["month", "age"]], k=2)
    found = {column["name"]: (column["distinct"], column["missing"]) for column in report["attributes"]}
    assert found == {"month": (4, 0), "age": (5, 1)}


def test_types_of_arrow_are_read():
    data = pl.DataFrame({"c": ["a", "b"] * 20, "n": [None, 1.5] * 20, "t": [3, 4] * 20}).with_columns(
        pl.col("c").cast(pl.Categorical), pl.col("t").cast(pl.Duration("us")), z=None
    )
    assert throng.audit(data, k=2)["rows"] == 40


# ---------------------------------------------------------------------- reports


def test_audit_report(steps):
    report = throng.audit(steps, subject="person", k=5, columns=["day", "steps"])
    assert report.to_dict()["subjects"] == steps["person"].nunique()
    assert repr(report).startswith("data.parquet  ") and "Risk" in repr(report)
    page = report._repr_html_()
    assert page.startswith('<iframe sandbox srcdoc="&lt;!DOCTYPE html&gt;') and "<script" not in page


def test_policy_files(steps, policy, tmp_path):
    assert policy.settings["privacy"]["k"] == 5 and policy.secret.stat().st_mode & 0o777 == 0o600
    assert all(path.is_absolute() for path in (policy.config, policy.schema, policy.secret))
    assert "tmp" not in policy.settings["source"]["path"] and "purpose: dashboards" in policy.summary
    with pytest.raises(ThrongError, match="--force") as caught:
        throng.init(steps, subject="person", directory=policy.config.parent)
    assert caught.value.code == 2
    steps.to_csv(tmp_path / "my_steps.csv", index=False)
    assert throng.init(tmp_path / "my_steps.csv", subject="person", directory=tmp_path).schema.name == "my_steps.schema.toml"


def test_evaluate_and_attack(steps, policy):
    released = throng.release(steps, policy, lineage=True)
    copy = pickle.loads(pickle.dumps(released))
    assert throng.evaluate(steps, copy, policy)["usefulness"]["series"]["people"] == steps["person"].nunique()
    attacks = throng.attack(steps, copy, policy, targets=100, fail_above="promise")
    assert any(attack["attack"] == "series: averaging" for attack in attacks.to_dict()) and "promised" in attacks.text
    with pytest.raises(ThrongError) as caught:
        throng.attack(steps, released, policy, targets=100, fail_above=0.0)
    assert caught.value.code == 4 and "series: averaging" in caught.value.output
    with pytest.raises(ValueError, match="lineage=True"):
        throng.attack(steps, throng.release(steps, policy), policy)


def test_evaluate_an_anonymized_table_and_a_path(people, people_policy, tmp_path):
    table = throng.anonymize(people, people_policy)
    table.to_parquet(tmp_path / "released.parquet")
    for released in [table, tmp_path / "released.parquet"]:
        report = throng.evaluate(people, released, people_policy)
        assert "<title>" in report.html and f"{len(people)} records before" in report.text


def test_records_in_groups_and_joined(people, people_policy, tmp_path, monkeypatch):
    groups = throng.release(people, people_policy)
    columns = [column for table in groups.values() for _, column in table.items()]
    assert columns and all(c.dtype in ("object", "str") for c in columns if not c.name.endswith(("_min", "_max")))
    text = people_policy.config.read_text().replace("[sink]", '[sink]\nrows = "joined"')
    (tmp_path / "joined.toml").write_text(text)
    joined = throng.release(people, tmp_path / "joined.toml", lineage=True)
    assert list(joined) == ["released"] and list(joined["released"]) == ["age", "age_min", "age_max", "sex"]
    shown = joined["released"].dropna(subset=["age_min"])
    assert len(shown) and shown["age_min"].dtype.kind in "if" and (shown["age_min"] <= shown["age_max"]).all()
    assert throng.evaluate(people, joined, tmp_path / "joined.toml").text


# ---------------------------------------------------------------------- errors, progress, processes


def test_error_has_code_and_message(steps, tmp_path):
    with pytest.raises(ThrongError) as caught:
        throng.audit(tmp_path / "absent.csv")
    assert caught.value.code in (1, 2) and "absent.csv" in str(caught.value)
    with pytest.raises(ThrongError, match="unexpected argument '--colour'") as caught:
        throng.audit(steps, colour="red")
    assert caught.value.code == 2
    with pytest.raises(FileNotFoundError):
        throng.release(steps, tmp_path / "absent.toml")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.code, str(copy)) == (2, str(caught.value))


def test_release_below_the_minimum_is_an_error_with_code_4(tmp_path, steps):
    policy = throng.init(steps, subject="person", purpose="rows", directory=tmp_path)
    with pytest.raises(ThrongError, match="min_represented") as caught:
        throng.release(steps, policy)
    assert caught.value.code == 4


def test_configuration_of_a_topic_is_refused(steps, policy, tmp_path):
    text = policy.config.read_text().replace('kind = "file"', 'kind = "kafka"')
    (tmp_path / "topic.toml").write_text(text)
    with pytest.raises(ThrongError) as caught:
        throng.release(steps, tmp_path / "topic.toml")
    assert caught.value.code == 2


def test_progress_prints_the_messages(steps, policy, capsys):
    throng.release(steps, policy)
    assert capsys.readouterr().err == ""
    throng.release(steps, policy, progress=True)
    assert "batch committed" in capsys.readouterr().err


def test_interrupt_ends_the_binary_and_removes_its_files(tmp_path, monkeypatch):
    slow = tmp_path / "slow"
    slow.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("THRONG_BINARY", str(slow))
    threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        throng.audit(pd.DataFrame({"a": [1]}))
    assert time.monotonic() - started < 30
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_temporary_directory_is_private(tmp_path, monkeypatch, temporary_files):
    spy = tmp_path / "spy"
    spy.write_text(f"#!/bin/sh\nstat -c '%a %n' {temporary_files}/* > {tmp_path}/seen\nexit 1\n")
    spy.chmod(0o755)
    monkeypatch.setenv("THRONG_BINARY", str(spy))
    with pytest.raises(ThrongError, match="throng audit ended with code 1"):
        throng.audit(pd.DataFrame({"a": [1]}))
    (line,) = (tmp_path / "seen").read_text().splitlines()
    assert line.startswith("700 ") and "/throng-" in line


def test_command_runs_the_binary():
    code = "import sys, throng._process; sys.argv[1:] = ['--version']; throng._process.main()"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.startswith("throng ")
    imported = "import sys, throng; print(sorted({'pyarrow', 'pandas', 'polars'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", imported], stdout=subprocess.PIPE, text=True, check=True).stdout == "[]\n"


@pytest.mark.skipif(not REAL, reason="THRONG_TEST_DATA is not set")
def test_adult_census(monkeypatch, tmp_path):
    root = Path(__file__).parents[2]
    monkeypatch.chdir(tmp_path)
    os.symlink(root / "schemas", tmp_path / "schemas")
    adult = pl.read_csv(f"{REAL}/adult/adult.csv", separator=";")
    result = throng.anonymize(adult, root / "config/adult-anonymize.toml")
    quasi = [name for name in result.columns if name != "occupation"]
    assert result.height > 0.95 * adult.height and result.group_by(quasi).len()["len"].min() >= 5
    assert result.equals(pl.from_arrow(throng.anonymize(f"{REAL}/adult/adult.csv", root / "config/adult-anonymize.toml")))


@pytest.mark.skipif(not REAL, reason="THRONG_TEST_DATA is not set")
def test_lifesnaps():
    days = pl.read_csv(f"{REAL}/lifesnaps/daily.csv", infer_schema_length=None)
    report = throng.audit(days, subject="id", k=5, columns=["age", "gender", "bmi"])
    assert (report["rows"], report["subjects"]) == (7410, 71)
