"""Exchanges tables with the binary as Parquet files."""

from __future__ import annotations

import os
import sys
from typing import Any

from ._process import Job

_FORMATS = {
    "csv": "csv", "tsv": "csv", "tab": "csv", "parquet": "parquet", "json": "json", "ndjson": "json", "jsonl": "json", "xml": "apple_health"
}


def is_path(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike))


def write_input(job: Job, data: Any) -> tuple[str, dict[str, str]]:
    """Returns the path of the data, and variables that override the format in a configuration. Tables become Parquet."""
    if is_path(data):
        path = os.fspath(data)
        names = os.path.basename(path).lower().removesuffix(".gz").removesuffix(".zst").split(".")
        format = _FORMATS.get(names[-1])
    else:
        path, format = job.path("data.parquet"), "parquet"
        write_table(data, path)
    return path, {"THRONG__SOURCE__FORMAT": format} if format else {}


def write_table(data: Any, path: str) -> None:
    """Writes a table as Parquet. The index of a pandas table is written if it has a name; periods and intervals as text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if _is_frame("pandas", data):
        named = any(name is not None for name in data.index.names)
        data = data.astype({name: "string" for name, dtype in data.dtypes.items() if _has_no_parquet_type(dtype)})
        table = pa.Table.from_pandas(data, preserve_index=named)
    elif _is_frame("polars", data):
        table = data.to_arrow()
    elif isinstance(data, pa.Table):
        table = data
    elif hasattr(data, "__arrow_c_stream__"):
        table = pa.table(data)
    elif hasattr(data, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        table = from_dataframe(data)
    else:
        raise TypeError(f"expected a table of pandas, polars or pyarrow, or a path, not {type(data).__name__}")
    pq.write_table(table, path)


def read_table(path: str, like: Any) -> Any:
    """Reads a Parquet file as a table of the same kind as ``like``: pandas, polars, otherwise pyarrow."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, partitioning=None)
    if _is_frame("pandas", like):
        return table.to_pandas()
    if _is_frame("polars", like):
        return sys.modules["polars"].from_arrow(table)
    return table


def _is_frame(library: str, data: Any) -> bool:
    """Whether data is a DataFrame of a library, which is not imported for the test."""
    module = sys.modules.get(library)
    return module is not None and isinstance(data, module.DataFrame)


def _has_no_parquet_type(dtype: Any) -> bool:
    """Whether a dtype of pandas holds periods or intervals, also as categories (`pandas.cut`)."""
    values = dtype.categories.dtype if dtype.name == "category" else dtype
    return str(values).startswith(("period", "interval"))
