# SPDX-License-Identifier: Apache-2.0
"""Pages name what is there: folders, commands, and the parts of the README in their order."""

import os
import re
from pathlib import Path

import pytest

SOURCE = Path(os.environ.get("SHW_SOURCE_DIR", Path(__file__).resolve().parents[2]))


def text(name):
    return (SOURCE / name).read_text()


def test_the_architecture_lists_the_folders_of_the_core():
    order = re.search(r"```\n(base .*)\n", text("docs/architecture.md"))[1]
    folders = {path.name for path in (SOURCE / "core").iterdir() if path.is_dir()}
    assert set(order.replace("|", " ").split()) == folders == set(re.findall(r"^\| `(\w+)` \|", text("core/README.md"), re.M))


def test_the_readme_has_its_parts_in_order_and_fits():
    page = text("README.md")
    assert len(page.splitlines()) < 150
    assert re.findall(r"^## (.*)", page, re.M) == ["Two commands", "Save and load", "Train", "Use an install", "What is supported",
                                                   "Limits", "Where things are"]
    assert len(re.findall(r"^- \*\*", page.split("\n## ")[0], re.M)) == 5
    assert "No pickle is executed unless you ask" in page


@pytest.mark.parametrize("page", ["README.md", "docs/hacking.md", "docs/performance.md", "docs/install.md", "CONTRIBUTING.md"])
def test_targets_of_make_that_pages_name_are_there(page):
    targets = set(re.findall(r"^([a-z]+):", text("Makefile"), re.M))
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", text(page), re.M))
    assert named <= targets


def test_names_have_one_limit_in_code_and_pages():
    limit = int(re.search(r"kMaxNameBytes = (\d+)", text("core/base/limits.h"))[1])
    for page in ("include/shardwright/state.h", "docs/c-api.md", "docs/glossary.md", "bindings/python/shardwright/state.py",
                 "bindings/java/src/main/java/io/shardwright/State.java", "bindings/rust/shardwright/src/state.rs"):
        assert f"{limit:,} bytes" in text(page), page
    assert f"| name | {limit} | bytes |" in text("docs/formats/native.md")


def test_examples_that_the_page_lists_are_all_there():
    listed = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (`.*?) \|", text("examples/README.md"), re.M))))
    assert listed == {path.name for path in (SOURCE / "examples").iterdir() if path.is_dir()}
