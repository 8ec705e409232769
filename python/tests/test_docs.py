import doctest
import os
from pathlib import Path

import pytest
from conftest import generated_steps

import throng

EXAMPLES = [test for module in (throng, throng._process) for test in doctest.DocTestFinder().find(module) if test.examples]


def test_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    readme = Path(__file__).parent.parent / "README.md"
    results = doctest.testfile(str(readme), module_relative=False, encoding="utf-8")
    assert results.failed == 0 and results.attempted > 10


@pytest.fixture(scope="module")
def names(tmp_path_factory, people, people_policy):
    steps = generated_steps()
    policy = throng.init(steps, subject="person", directory=tmp_path_factory.mktemp("docs"))
    released = throng.release(steps, policy, lineage=True)
    found = {"throng": throng, "steps": steps, "policy": policy, "released": released}
    return found | {"people": people, "people_policy": people_policy}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_docstring(example, names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example.globs = dict(names)
    assert doctest.DocTestRunner().run(example, clear_globs=False).failed == 0


def test_every_public_name_has_an_example():
    assert {f"throng.{name}" for name in throng.__all__ if name != "ThrongError"} <= {example.name for example in EXAMPLES}
    assert "throng._process.ThrongError" in {example.name for example in EXAMPLES}
    assert os.path.exists(Path(throng.__file__).parent / "py.typed")
