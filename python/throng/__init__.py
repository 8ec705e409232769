"""Publish wearable and health data of groups of people, not of individuals.

Each function runs the `throng` binary. Data are a table of pandas, polars or pyarrow (or another table with the Arrow
stream interface), or a path of a CSV, NDJSON or Parquet file. Results are tables of the same kind; pyarrow for a path.

Further keyword arguments are options of the command: ``max_seconds=60`` is ``--max-seconds 60``, ``skip_unreadable=True``
is ``--skip-unreadable``. ``progress=True`` prints the messages of the binary while it runs. Failures are `ThrongError`.
"""

from __future__ import annotations

import html
import json
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Union

from ._process import Job, ThrongError, option_flags
from ._tables import is_path, read_table, write_input, write_table

__all__ = ["Policy", "Release", "Report", "ThrongError", "anonymize", "attack", "audit", "evaluate", "init", "release"]

PathLike = Union[str, "os.PathLike[str]"]


class Report:
    """Result of a command: the text of the terminal, the JSON report, and the HTML page if the command has one.

    >>> report = throng.audit(steps, subject="person")
    >>> report["risk"]["people_below_k"] == report.to_dict()["risk"]["people_below_k"]
    True
    """

    def __init__(self, text: str, data: Any, page: str | None = None) -> None:
        self.text, self.html, self._data = text, page, data

    def to_dict(self) -> Any:
        """Returns the JSON report: a dict, or for `attack` a list with one dict per attack."""
        return self._data

    def __getitem__(self, key: Any) -> Any:
        return self._data[key]

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        if self.html is None:
            return f"<pre>{html.escape(self.text)}</pre>"
        return f'<iframe sandbox srcdoc="{html.escape(self.html)}" style="width: 100%; height: 40rem; border: 0"></iframe>'


class Release(dict[str, Any]):
    """Released tables by name: one per series and attribute group. Changes of the tables are not evaluated.

    >>> released["daily"].columns[:4].tolist()
    ['series', 'cohort', 'bucket', 'every']
    """

    summary: str
    """Messages of the run: represented people and records, and the reasons of suppression."""
    lineage: bytes | None
    """Connects the released lines with records and people: do not publish it. Only with ``lineage=True``."""

    def __init__(self, tables: dict[str, Any], summary: str, files: dict[str, bytes], pattern: str, lineage: bytes | None) -> None:
        super().__init__(tables)
        self.summary, self.lineage, self._files, self._pattern = summary, lineage, files, pattern

    def __repr__(self) -> str:
        return "\n".join([f"{name}: {len(table):,} rows" for name, table in self.items()] + [self.summary.rstrip()])


class Policy:
    """Configuration of a release, with its record schema. As in the command line, relative paths in the configuration
    belong to the working directory; `init` writes absolute ones.

    >>> policy = throng.Policy(policy.config)
    >>> print(policy.schema.read_text())          # doctest: +ELLIPSIS
    # Proposed by throng from ...
    """

    def __init__(self, config: Policy | PathLike, summary: str = "") -> None:
        self.config: Path = config.config if isinstance(config, Policy) else Path(config)
        self.summary = summary

    def __repr__(self) -> str:
        return f"Policy({str(self.config)!r})\n{self.summary}".rstrip()

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration as it is in the file."""
        return tomllib.loads(self.config.read_text(encoding="utf-8"))

    @property
    def schema(self) -> Path:
        """File of the record schema: read and correct it before the release."""
        return Path(self.settings["schema"]["file"])

    @property
    def secret(self) -> Path | None:
        """File of the secret, which determines all random choices."""
        file = self.settings.get("state", {}).get("secret_file")
        return Path(file) if file else None

    def check(self, data: Any, *, progress: bool = False) -> Report:
        """Tries the policy on data and keeps nothing: loss, risk and examples (`throng check --sample`).

        >>> policy.check(steps)["forms"][0]["people"]
        60
        """
        with Job(progress) as job:
            path, _ = write_input(job, data)
            arguments = [f"--config={self.config}", f"--sample={path}"]
            text, _ = job.run("check", *arguments)
            found, _ = job.run("check", *arguments, "--json")
            return Report(text, json.loads(found))

    def explain(self) -> str:
        """Explains in sentences the treatment of each attribute, the guarantees and the limits (`throng check --explain`).

        >>> "person" in policy.explain()
        True
        """
        with Job(False) as job:
            return job.run("check", f"--config={self.config}", "--explain")[0]


def audit(
    data: Any, subject: str | None = None, k: int = 5, *, columns: Sequence[str] | None = None, schema: PathLike | None = None,
    progress: bool = False, **options: Any,
) -> Report:  # fmt: skip
    """Finds the columns that identify people, and the risk of the records (`throng audit`).

    Without a subject every record counts as a separate person, and the risk is underestimated.

    >>> throng.audit(steps, subject="person", k=5)    # doctest: +ELLIPSIS
    data.parquet  1,800 records of 60 people, k = 5, 2 of 2 columns searched
    ...
    """
    quoted = ['"' + column.replace('"', '""') + '"' for column in columns or []]
    flags = option_flags({"subject": subject, "k": k, "columns": quoted, "schema": schema, **options})
    with Job(progress) as job:
        path, _ = write_input(job, data)
        page = job.path("page.html")
        text, _ = job.run("audit", *flags, "--", path)
        found, _ = job.run("audit", *flags, "--json", f"--html={page}", "--", path)
        return Report(text, json.loads(found), Path(page).read_text(encoding="utf-8"))


def init(
    data: Any, subject: str | None = None, k: int = 5, purpose: str | None = None, directory: PathLike = ".",
    name: str | None = None, *, progress: bool = False, **options: Any,
) -> Policy:  # fmt: skip
    """Writes a schema, a configuration and a secret, as a proposal to read and correct (`throng init`).

    Purposes: ``"dashboards"``, ``"models"``, ``"rows"``, ``"monitoring"``; by default the data decide. The files have the
    given name, by default ``data`` or the name of the input file.

    >>> policy = throng.init(steps, subject="person", k=5, directory="policy", force=True)
    >>> policy.config.name, policy.schema.name, policy.secret.name
    ('data.toml', 'data.schema.toml', 'data.secret')
    """
    folder = os.path.abspath(directory)
    name = name or (Path(data).name.partition(".")[0] if is_path(data) else "data")
    flags = option_flags({"subject": subject, "k": k, "for": purpose, "directory": folder, "name": name, **options})
    with Job(progress) as job:
        path, _ = write_input(job, data)
        if is_path(data):
            output, messages = job.run("init", *flags, "--", path)
        else:  # The configuration names the input relative to the working directory.
            output, messages = job.run("init", *flags, "--", os.path.basename(path), cwd=job.path())
    return Policy(os.path.join(folder, f"{name}.toml"), output + messages)


def release(data: Any, policy: Policy | PathLike, *, lineage: bool = False, progress: bool = False, **options: Any) -> Release:
    """Releases data as the configuration says (`throng run`). Source and sink of the configuration are replaced.

    ``lineage=True`` keeps the connection of lines and records in memory, for `attack` and `evaluate`.

    >>> released = throng.release(steps, policy)
    >>> list(released)
    ['daily']
    """
    policy = Policy(policy)
    with Job(progress) as job:
        path, environment = write_input(job, data)
        folder = job.path("released")
        os.mkdir(folder)
        joined = policy.settings.get("sink", {}).get("rows") == "joined"
        pattern = "released.parquet" if joined else "{group}.parquet"
        environment |= {"THRONG__SOURCE__KIND": "file", "THRONG__SOURCE__PATH": path, **_sink(os.path.join(folder, pattern))}
        flags = option_flags({"config": policy.config, "lineage": job.path("lineage") if lineage else None, **options})
        _, summary = job.run("run", *flags, environment=environment)
        files = {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}
        tables = {_table_name(file): read_table(os.path.join(folder, file), data) for file in files}
        return Release(tables, summary, files, pattern, Path(job.path("lineage")).read_bytes() if lineage else None)


def anonymize(data: Any, policy: Policy | PathLike, *, progress: bool = False, **options: Any) -> Any:
    """Anonymizes one data set with its best generalization and returns one table (`throng anonymize`).

    Best with about ten attributes and one row per person. Columns of the result are text; numbers and times also have
    their bounds, such as ``age_min`` and ``age_max``.

    >>> throng.anonymize(people, people_policy)["sex"].unique().tolist()
    ['f', 'm']
    """
    with Job(progress) as job:
        path, environment = write_input(job, data)
        output = job.path("released.parquet")
        flags = option_flags({"config": Policy(policy).config, "output": output, **options})
        job.run("anonymize", *flags, "--", path, environment={**environment, **_sink(output)})
        return read_table(output, data)


def evaluate(original: Any, released: Any, policy: Policy | PathLike, *, progress: bool = False, **options: Any) -> Report:
    """Measures the utility of a release (`throng evaluate`): a `Release`, the table of `anonymize`, or a path.

    >>> report = throng.evaluate(steps, released, policy)
    >>> report["usefulness"]["series"]["people"]
    60
    """
    with Job(progress) as job:
        path, environment = write_input(job, original)
        target, lineage, sink = _write_release(job, released)
        data, page = job.path("report.json"), job.path("page.html")
        given = {"config": Policy(policy).config, "lineage": lineage, "report": data, "html": page, **options}
        text, _ = job.run("evaluate", *option_flags(given), "--", path, target, environment={**environment, **sink})
        return Report(text, json.loads(Path(data).read_bytes()), Path(page).read_text(encoding="utf-8"))


def attack(original: Any, released: Any, policy: Policy | PathLike, *, progress: bool = False, **options: Any) -> Report:
    """Tries the attacks of an outsider and reports their success (`throng attack`).

    The release needs its lineage: ``release(…, lineage=True)``, or a path and ``lineage=path``. With
    ``fail_above="promise"`` an attack above the guarantee is a `ThrongError` with code 4.

    >>> report = throng.attack(steps, released, policy, fail_above="promise")
    >>> report[0]["attack"]
    'series: isolation'
    """
    if isinstance(released, Release) and released.lineage is None:
        raise ValueError("the release has no lineage: call throng.release with lineage=True")
    with Job(progress) as job:
        path, environment = write_input(job, original)
        target, lineage, sink = _write_release(job, released)
        flags = option_flags({"config": Policy(policy).config, "original": path, "lineage": lineage, **options})
        text, _ = job.run("attack", *flags, "--", target, environment={**environment, **sink})
        found, _ = job.run("attack", *flags, "--json", "--", target, environment={**environment, **sink})
        return Report(text, json.loads(found))


def _sink(path: str) -> dict[str, str]:
    return {"THRONG__SINK__PATH": path, "THRONG__SINK__FORMAT": "parquet"}


def _table_name(file: str) -> str:
    """Returns the name of the group or series: ``daily`` for daily.parquet, and for released.daily.parquet (joined rows)."""
    return file.removesuffix(".parquet").removeprefix("released.")


def _write_release(job: Job, released: Any) -> tuple[str, str | None, dict[str, str]]:
    """Returns the path of a release, the path of its lineage, and variables that override the sink."""
    if is_path(released):
        return os.fspath(released), None, {}
    if not isinstance(released, Release):
        target = job.path("released.parquet")
        write_table(released, target)
        return target, None, _sink(target)
    folder, lineage = Path(job.path("released")), None
    folder.mkdir()
    for name, content in released._files.items():
        (folder / name).write_bytes(content)
    if released.lineage is not None:
        lineage = job.path("lineage")
        Path(lineage).write_bytes(released.lineage)
    target = str(folder / released._pattern)
    return target, lineage, _sink(target)
