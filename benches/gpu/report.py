"""report.md from the folder of `./dev gpu evidence`: what was measured, and what was not run."""

import json
import pathlib
import sys


def read(path):
    """What stands in a file of JSON; nothing where the command that writes it broke off."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def milliseconds(seconds):
    return "" if seconds is None else f"{seconds * 1e3:.3f}"


def table(heads, rows):
    cell = lambda value: str(value).replace("|", "\\|")
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]


def selftest(report):
    if report is None:
        return ["The self-test broke off: see selftest.log."]
    columns = ["name", "tables", "answers", "wrong", "by_the_cpu", "failures", "launches"]
    heads = ["check", "tables", "answers", "wrong", "by the CPU", "failures", "launches"]
    rows = [[check[column] for column in columns] for check in report["checks"]]
    return [f"Seed {report['seed']}.", "", *table(heads, rows)]


def bench(report):
    if report is None:
        return ["The benchmark broke off: see bench.log."]
    cpus = [f"CPU × {threads}, ms" for threads in report["threads"]]
    heads = ["work", "rows", "sets", *cpus, "GPU, ms", "faster", "bytes floor, ms", "of copy", "operations floor, ms", "equal"]
    rows = []
    for work in report["measured"]:
        times = [milliseconds(cpu["seconds"]) for cpu in work["cpu"]]
        times += [""] * (len(cpus) - len(times))
        equal = {True: "yes", False: "NO", None: "unfinished"}[work["agrees"]]
        rows.append(
            [work["work"], work["rows"], work["candidates"], *times, milliseconds(work["gpu_seconds"])]
            + [f"{work['speedup']:.1f}×", milliseconds(work["bytes_floor_seconds"]), f"{work['bandwidth_share']:.1%}"]
            + [milliseconds(work["operations_floor_seconds"]), equal]
        )
    return [f"Scale {report['scale']}, seed {report['seed']}.", "", *table(heads, rows)]


def peer(report):
    told = [work for work in (report or {}).get("measured", []) if work["peer"]]
    if not told:
        return ["No peer was asked."]
    heads = ["work", "sets asked", "the peer's way", "its median, ms", "its best, ms", "GPU, ms", "faster", "equal"]
    rows = []
    for work in told:
        its = work["peer"]
        faster = "" if its["seconds"] is None else f"{its['seconds'] / work['gpu_seconds']:.1f}×"
        equal = its["failure"] or {True: "yes", False: "NO", None: ""}[its["agrees"]]
        rows.append(
            [work["work"], f"{its['sets']} of {its['of']}", its["form"] or "", milliseconds(its["median_seconds"])]
            + [milliseconds(its["seconds"]), milliseconds(work["gpu_seconds"]), faster, equal]
        )
    first = next((work["peer"] for work in told if work["peer"]["library"]), None)
    if first is None:
        return [f"The peer failed: {told[0]['peer']['failure']}"]
    lines = [f"{first['library']} on {first['device']}, the same tables. Times of a sample are those of all sets by proportion."]
    return lines + ["", *table(heads, rows)]


def checker(folder):
    lines = []
    for tool in ("memcheck", "racecheck", "synccheck"):
        status = folder / f"{tool}.status"
        if status.exists():
            log = folder / f"{tool}.log"
            last = log.read_text().strip().splitlines()[-1:] if log.exists() else []
            lines.append(f"- {tool}: status {status.read_text().strip()}; {' '.join(last)}")
    return lines or ["It did not run."]


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: report.py FOLDER")
    folder = pathlib.Path(sys.argv[1])
    tested, measured = read(folder / "selftest.json"), read(folder / "bench.json")
    device = (tested or measured or {}).get("device", "no device answered")
    machine, missing = folder / "machine.txt", folder / "missing.txt"
    text = [f"# Counting on {device}", ""]
    text += ["```", *(machine.read_text().splitlines() if machine.exists() else []), "```", ""]
    text += ["## Self-test", "", *selftest(tested), ""]
    text += ["## Against the CPU", "", *bench(measured), ""]
    text += ["## Against the peer", "", *peer(measured), ""]
    text += ["## Memory checker", "", *checker(folder), ""]
    if missing.exists():
        text += ["## Not run", "", *(f"- {line}" for line in missing.read_text().splitlines()), ""]
    print("\n".join(text), end="")


if __name__ == "__main__":
    main()
