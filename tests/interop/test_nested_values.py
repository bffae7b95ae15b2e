# SPDX-License-Identifier: Apache-2.0
"""A nested common state of Megatron that each language writes, and every other reads: maps in lists in maps, tuples, None, NaN,
numbers of any size, keys that are no text, bytes. The steps are those of the bindings' contract, cut behind the save."""
import json
import math

import languages
import pytest
import torch
from languages import LANGUAGES, SOURCE

NAMES = {"file": "a common state of Megatron is nested values, in a file",
         "object": "a common state of Megatron is nested values, among the data"}


def parts_of(form):
    """Steps that write and steps that read."""
    contract = json.loads((SOURCE / "tests" / "bindings" / "contract.json").read_text(encoding="ascii"))
    steps = next(scenario["steps"] for scenario in contract["scenarios"] if scenario["name"] == NAMES[form])
    end = [step["op"] for step in steps].index("save") + 1
    return steps[:end], steps[end:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """WRITER/FORM/p of every language."""
    place = tmp_path_factory.mktemp("common")
    for language in LANGUAGES:
        languages.run(language, [{"name": form, "steps": parts_of(form)[0]} for form in NAMES], place / language)
    return place


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_reads_what_every_language_wrote(folder, language):
    scenarios = []
    for writer in LANGUAGES:
        for form in NAMES:
            _, (opens, *looks) = parts_of(form)
            steps = [{**opens, "path": f"{writer}/{form}/p"}, *looks]
            scenarios.append({"name": folder.name, "steps": steps})
    languages.run(language, scenarios, folder.parent)


@pytest.mark.parametrize("writer", LANGUAGES)
def test_torch_makes_the_values_of_it(folder, writer):
    found = torch.load(folder / writer / "file" / "p" / "common.pt", weights_only=True)
    assert math.isnan(found["args"].pop("nan"))
    assert found == {
        "args": {"lr": 0.25, "none": None, "flag": True, "name": "run \u00e4", "big": 2**80, "small": -(2**70), "inf": -math.inf,
                 "layers": [{"sizes": [1, 2, {"deep": [None, []]}], "kinds": (1, "x", None, (2.5,))}, {}]},
        "counts": {3: "three"}, "blob": bytes.fromhex("00ff10" * 7)}
