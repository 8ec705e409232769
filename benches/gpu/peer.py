"""The peer of `throng bench gpu`: the same questions about the same tables, with PyTorch, CuPy or NumPy.

`throng bench gpu --peer "python3 benches/gpu/peer.py"` writes a folder with tables (little-endian columns, one after the
other) and questions.json, and calls this program with it. Each question is answered twice in every form, which warms up
and shows that all forms agree; the fastest form is then timed for some rounds, between synchronisations, from columns on
the device (the upload included where throng's time includes it) to the answer in the host's memory. The answers go to the
folder for throng to compare, a file of little-endian 64-bit integers each, and answers.json.
"""

import argparse
import json
import pathlib
import sys
import time

try:
    import numpy

    import counting
    from arrays import Absent, arrays
except ImportError as error:
    sys.exit(f"peer.py: NumPy is missing ({error}): install it for {sys.executable}")


def forms_of(question, table):
    """The ways to answer a question, each a function of nothing."""
    sets, k = question["sets"], question["k"]
    kind = question["kind"]
    if kind == "pairs":
        return {name: lambda form=form: form(table, sets) for name, form in counting.PAIR_FORMS.items()}
    forms = counting.counting_forms(table).items()
    if kind == "borders":
        width = len(table.values)
        return {name: lambda form=form: counting.borders(table, width, k, form) for name, form in forms}
    return {name: lambda form=form: form(table, sets, k, kind == "judge") for name, form in forms}


def timed(library, work):
    library.wait()
    started = time.perf_counter()
    answer = work()
    library.wait()
    return time.perf_counter() - started, answer


def answered(library, question, table, arguments):
    table.upload()

    def whole(form):
        if question["upload"]:
            table.upload()
        return form()

    first, tried = None, {}
    forms = forms_of(question, table)
    for name, form in forms.items():
        try:
            timed(library, lambda: whole(form))
            seconds, answer = timed(library, lambda: whole(form))
        except (RuntimeError, MemoryError) as error:
            tried[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            library.release()
            continue
        answer = numpy.asarray(answer).reshape(-1).astype("<i8")
        if first is not None and not numpy.array_equal(first, answer):
            raise SystemExit(f"peer.py: {question['work']}: the form '{name}' gives other numbers than the ones before it")
        first, tried[name] = answer, seconds
    able = {name: seconds for name, seconds in tried.items() if isinstance(seconds, float)}
    if not able:
        return None, {"failure": "; ".join(f"{name}: {why}" for name, why in tried.items())}
    fastest, rounds = min(able, key=able.get), []
    while len(rounds) < arguments.rounds and sum(rounds) < arguments.seconds:
        seconds, answer = timed(library, lambda: whole(forms[fastest]))
        if not numpy.array_equal(first, numpy.asarray(answer).reshape(-1)):
            raise SystemExit(f"peer.py: {question['work']}: the form '{fastest}' gives other numbers the second time")
        rounds.append(seconds)
    return first, {"form": fastest, "seconds": rounds, "tried": tried}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path, help="where throng has put tables and questions")
    parser.add_argument("--arrays", default="auto", choices=["auto", "torch", "cupy", "numpy"])
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="of PyTorch")
    parser.add_argument("--rounds", type=int, default=5, help="of each question, after the warm-up (default 5)")
    parser.add_argument("--seconds", type=float, default=20.0, help="after which no further round begins (default 20)")
    parser.add_argument("--ready", action="store_true", help="only say which library counts on which device")
    arguments = parser.parse_args()
    try:
        library = arrays(arguments.arrays, arguments.device)
    except Absent as absent:
        sys.exit(f"peer.py: {absent}")
    if arguments.ready:
        print(f"{library.library} on {library.device}")
        return
    if arguments.folder is None:
        parser.error("name the folder of the questions")
    folder = arguments.folder
    asked = json.loads((folder / "questions.json").read_text())
    answers, table, held = [], None, None
    for number, question in enumerate(asked["questions"]):
        print(f"{library.library}: {question['work']} …", file=sys.stderr, flush=True)
        if question["table"] != held:
            if table is not None:
                table.drop()
            held = question["table"]
            table = counting.Table(library, asked["tables"][held], folder)
        words, answer = answered(library, question, table, arguments)
        if words is not None:
            answer["file"] = f"answer-{number}.bin"
            words.tofile(folder / answer["file"])
        answers.append({"work": question["work"], **answer})
    report = {"library": library.library, "device": library.device, "answers": answers}
    (folder / "answers.json").write_text(json.dumps(report))


if __name__ == "__main__":
    main()
