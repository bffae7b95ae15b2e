# SPDX-License-Identifier: Apache-2.0
"""bind.contract: the scenarios that all languages share."""
import json
import re
from pathlib import Path

import contract_steps
import pytest
import shardwright

SOURCE = Path(__file__).parents[3]
CONTRACT = json.loads((Path(__file__).parents[1] / "contract.json").read_text(encoding="utf-8"))


def test_contract_has_enough_scenarios_with_names_of_their_own():
    names = [scenario["name"] for scenario in CONTRACT["scenarios"]]
    assert CONTRACT["schema"] == 1
    assert len(set(names)) == len(names) >= 25


def step_keys():
    """Step -> keys that the README lists for it."""
    cells = re.findall(r"^\| (`.*?) \|", (Path(__file__).parents[1] / "README.md").read_text(encoding="ascii"), re.M)
    return {op: set(re.findall(r"\w+", cell)) for cell in cells for op in re.findall(r"`(\w+)`", cell)}


def test_steps_have_the_keys_that_are_documented_and_no_other():
    known = step_keys()
    for scenario in CONTRACT["scenarios"]:
        assert set(scenario) <= {"name", "steps", "code", "details", "says", "digest", "skip"}, scenario["name"]
        for step in scenario["steps"]:
            assert set(step) - {"op"} <= known[step["op"]], (scenario["name"], step["op"])


def test_every_status_that_a_header_names_is_provoked():
    """By a scenario, or by a call in C whose failure is compared."""
    headers = [path.read_text(encoding="ascii") for path in (SOURCE / "include" / "shardwright").glob("*.h")]
    named = {status for text in headers for errors in re.findall(r"\* Errors:(.*?)\n \* Since", text, re.S)
             for status in re.findall(r"\b[A-Z]{2}[A-Z_]+\b", errors)}
    tests = [path.read_text(encoding="ascii") for folder in ("capi", "abi") for path in (SOURCE / "tests" / folder).glob("*.c")]
    failures = r"CHECK_(?:FAILS|FAILS_WITH|STATUS)\([^;]*?,\s*SHW_([A-Z_]+)\b"
    answers = r"CHECK_INT\([^;]*?,\s*SHW_(PENDING|BUFFER_TOO_SMALL)\);"  # no error comes with these
    provoked = {status for text in tests for form in (failures, answers) for status in re.findall(form, text)}
    assert len(named) > 12
    assert named - provoked - {scenario["code"] for scenario in CONTRACT["scenarios"]} == set()


@pytest.mark.parametrize("scenario", CONTRACT["scenarios"], ids=lambda s: s["name"])
def test_scenario(scenario, tmp_path):
    reason = scenario.get("skip", {}).get("python")
    if reason:
        pytest.skip(reason)
    runner = contract_steps.Runner(tmp_path)
    for step in scenario["steps"][:-1]:
        runner.run(step)
    last = scenario["steps"][-1]
    if scenario["code"] == "OK":
        runner.run(last)
        check_digests(runner, scenario.get("digest", {}))
    elif scenario["code"] == "HOST_EXCEPTION":
        with pytest.raises(contract_steps.HostFailure):
            runner.run(last)
    else:
        with pytest.raises(shardwright.ShardwrightError) as caught:
            runner.run(last)
        assert caught.value.status == scenario["code"], caught.value
        check_details(scenario.get("details", {}), caught.value)
        assert [text for text in scenario.get("says", ()) if text not in str(caught.value)] == [], caught.value


def matches(wanted, found):
    """The texts are equal, or the wanted one holds a '*' for the part of the found one that is not fixed."""
    before, star, after = wanted.partition("*")
    return found == wanted or (
        bool(star) and len(found) + 1 >= len(wanted) and found.startswith(before) and found.endswith(after))


def check_details(wanted, error):
    """The error has these details and no others."""
    assert set(error.details) == set(wanted), (error, error.details)
    assert {key: error.details[key] for key in wanted if not matches(wanted[key], error.details[key])} == {}, error


def check_digests(runner, expected):
    if expected:
        text, storage = runner.last_place
        storage = runner.things.get(storage)
        with shardwright.open(text if storage else runner.directory / text, storage=storage) as checkpoint:
            found = checkpoint.digest()
        assert {name: found[name]["digest"] for name in expected} == expected
