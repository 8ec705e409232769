"""Runs the throng binary in a private temporary directory."""

from __future__ import annotations

import logging
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any, NoReturn, Self

_logger = logging.getLogger("throng")


class ThrongError(RuntimeError):
    """Failure of the binary: its exit code, its messages (standard error) and its report (standard output), if any.

    Exit codes: 1 failed while running, 2 bad usage or configuration, 3 requested hardware not available, 4 a finding
    exceeds the given limit; negative: ended by this signal.

    >>> try:
    ...     throng.audit(steps, subject="nobody")
    ... except throng.ThrongError as error:
    ...     print(error.code, error)
    2 error: data.parquet has no column "nobody" for the subject: check --subject and the schema
    """

    def __init__(self, code: int, message: str, output: str = "") -> None:
        super().__init__(code, message, output)
        self.code, self.message, self.output = code, message, output

    def __str__(self) -> str:
        return self.message


def binary_path() -> str:
    """Returns the path of the binary: ``THRONG_BINARY``, if set, otherwise the one of this package."""
    return os.environ.get("THRONG_BINARY") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "throng")


def main() -> NoReturn:
    """Replaces this process by the binary (the command ``throng``)."""
    os.execv(binary_path(), ["throng", *sys.argv[1:]])


def option_flags(options: Mapping[str, Any]) -> list[str]:
    """Translates keyword arguments to options of the command line: ``max_seconds=60`` to ``--max-seconds=60``."""
    flags = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                flags.append(flag)
            elif one is not None and one is not False:
                flags.append(f"{flag}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    return flags


class Job:
    """Private temporary directory (mode 0700) for commands and their files; removed at the end of the ``with`` block."""

    def __init__(self, progress: bool) -> None:
        self.progress = progress
        self._folder = tempfile.TemporaryDirectory(prefix="throng-")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def path(self, name: str = "") -> str:
        return os.path.join(self._folder.name, name)

    def run(self, command: str, *arguments: str, environment: Mapping[str, str] = {}, cwd: str | None = None) -> tuple[str, str]:
        """Runs a command and returns standard output and standard error, without the path of the temporary directory."""
        variables = {**os.environ, **environment}
        if not self.progress:
            variables.setdefault("THRONG__TELEMETRY__LOG_LEVEL", "warn")
        errors = b""
        with open(self.path("stdout"), "w+b") as stdout, selectors.DefaultSelector() as selector:
            process = subprocess.Popen(
                [binary_path(), command, *arguments], env=variables, cwd=cwd,
                stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
            )  # fmt: skip
            assert process.stderr is not None
            selector.register(process.stderr, selectors.EVENT_READ)
            printed = 0
            try:
                # A signal always interrupts select(), but not read(): polars installs its handler with SA_RESTART.
                while selector.select() and (chunk := os.read(process.stderr.fileno(), 65536)):
                    errors += chunk
                    if self.progress:
                        end = errors.rfind(b"\n") + 1
                        print(self._readable(errors[printed:end]), end="", file=sys.stderr, flush=True)
                        printed = end
                code = process.wait()
            finally:  # KeyboardInterrupt, too
                process.kill()
                process.wait()
                process.stderr.close()
            stdout.seek(0)
            output, message = self._readable(stdout.read()), self._readable(errors)
        if code != 0:
            raise ThrongError(code, message.strip() or f"throng {command} ended with code {code}", output)
        if message:
            _logger.info("%s: %s", command, message.rstrip())
        return output, message

    def _readable(self, text: bytes) -> str:
        return text.decode("utf-8", "replace").replace(self.path(), "")
