# SPDX-License-Identifier: Apache-2.0
"""Every example of the README, and every marked one of docs/ and examples/, runs and ends with status 0."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from page_examples import Example, Workplace, examples_of  # noqa: E402

SOURCE = Path(os.environ.get("SHW_SOURCE_DIR", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("SHW_BUILD_DIR", SOURCE / "build"))


def pages():
    for path in [SOURCE / "README.md", SOURCE / "examples" / "README.md", *sorted((SOURCE / "docs").rglob("*.md"))]:
        if path.exists():
            yield path.relative_to(SOURCE).as_posix(), path.read_text()


EXAMPLES = [example for page, text in pages() for example in examples_of(page, text)]


@pytest.fixture(scope="module")
def workplaces(tmp_path_factory):
    """One folder per page, shared by its examples."""
    prefix = tmp_path_factory.mktemp("install") / "prefix"
    return {page: Workplace(tmp_path_factory.mktemp("page"), SOURCE, BUILD, prefix) for page, _ in pages()}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"{example.page}:{example.line}-{example.language}")
def test_an_example_of_a_page_runs(workplaces, example):
    done = workplaces[example.page].run(example)
    assert done.returncode == 0, f"{example.text}\n--- output ---\n{done.stdout}"


def test_blocks_of_the_readme_run_unless_a_reason_is_given():
    text = "```sh\nls\n```\n<!-- not run: needs a cluster -->\n```sh\nsrun x\n```\n```text\nno\n```\n"
    assert examples_of("README.md", text) == [Example("README.md", 2, "sh", "ls\n")]


def test_blocks_of_other_pages_run_when_marked():
    text = "```sh\nls\n```\n<!-- run -->\n```python\nprint(1)\n```\n"
    assert [example.language for example in examples_of("docs/a.md", text)] == ["python"]


def test_blocks_of_files_are_written_whatever_their_language(tmp_path):
    text = "<!-- file: src/pom.xml -->\n```xml\n<a at='CLONE/b'/>\n```\n"
    example, = examples_of("docs/a.md", text)
    assert Workplace(tmp_path, SOURCE, BUILD).run(example).returncode == 0
    assert (tmp_path / "src" / "pom.xml").read_text() == f"<a at='{SOURCE}/b'/>\n"


def test_a_failing_example_is_seen(tmp_path):
    place = Workplace(tmp_path, SOURCE, BUILD)
    assert place.run(Example("README.md", 1, "sh", "false\ntrue\n")).returncode != 0
    assert place.run(Example("README.md", 1, "python", "raise SystemExit(3)\n")).returncode == 3


def test_the_two_main_commands_are_left_out(tmp_path):
    place = Workplace(tmp_path, SOURCE, BUILD)
    assert place.run(Example("README.md", 1, "sh", "make demo\nmake test\necho done\n")).stdout == "done\n"


def test_make_demo_builds_every_program_that_the_demo_runs():
    sources = "".join(path.read_text() for path in (SOURCE / "examples" / "real_model").glob("*.py"))
    programs = set(re.findall(r'build, "bin", "(\w+)"', sources))
    assert {"shardwright", "c_reader"} <= programs
    target, = set(re.findall(r"tools/build\.sh dev (\w+)$", (SOURCE / "Makefile").read_text().split("\ndemo:")[1].split("\n\n")[0], re.M))
    steps = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", target], capture_output=True, text=True, check=True).stdout
    assert [name for name in sorted(programs) if not re.search(rf"\b(bin|release)/{name}\b", steps)] == []


def test_what_examples_give_to_maven_stays_in_their_folder(tmp_path):
    arguments = "-DgroupId=io.shardwright.example -DartifactId=left -Dversion=1 -Dpackaging=jar"
    done = Workplace(tmp_path, SOURCE, BUILD).run(
        Example("docs/a.md", 1, "sh", f"echo > left.jar\nmvn -q install:install-file -Dfile=left.jar {arguments}\n"))
    assert done.returncode == 0, done.stdout
    installed = Path("io", "shardwright", "example", "left", "1", "left-1.jar")
    assert (tmp_path / "m2" / installed).exists()
    assert not (Path.home() / ".m2" / "repository" / installed).exists()
