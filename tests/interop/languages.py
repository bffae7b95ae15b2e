# SPDX-License-Identifier: Apache-2.0
"""The shared state in the words of the bindings' contract, and the contract's runners of all languages.

The steps are those of tests/bindings/README.md; a runner that is given a folder leaves what its scenarios made there.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

from shared_state import LAYOUTS, OBJECTS, box_of, data_of, digests, is_whole, object_text, part_of, ranks_of, values

SOURCE = Path(os.environ.get("SHW_SOURCE_DIR", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("SHW_BUILD_DIR", SOURCE / "build"))
LANGUAGES = ("c", "java", "python", "rust")
SECONDS = 500
sys.path.append(str(SOURCE / "tests" / "bindings" / "python"))


# ---- runners ----

def _command(language):
    if language == "java":
        home = os.environ.get("JAVA_HOME")
        work = BUILD / "bindings" / "java" / "maven"
        classes = os.pathsep.join(map(str, (work / "test-classes", work / "test-lib" / "*", BUILD / "java" / "shardwright.jar")))
        return [f"{home}/bin/java" if home else "java", f"-Dshardwright.library.path={BUILD / 'lib'}", "-cp", classes,
                "io.shardwright.contract.ContractRunner"]
    return [str(BUILD / "bin" / {"c": "contract_runner", "rust": "rust_contract"}[language])]


def _run_python(scenarios, folder):
    import contract_steps
    for scenario in scenarios:
        (folder / scenario["name"]).mkdir(parents=True, exist_ok=True)
        runner = contract_steps.Runner(folder / scenario["name"])
        for step in scenario["steps"]:
            runner.run(step)


def run(language, scenarios, folder):
    """All scenarios must succeed; each runs in the folder of its name, which stays."""
    scenarios = [{"code": "OK"} | scenario for scenario in scenarios]
    if language == "python":
        return _run_python(scenarios, folder)
    folder.mkdir(parents=True, exist_ok=True)
    contract = folder / f"{language}.json"
    contract.write_text(json.dumps({"schema": 1, "scenarios": scenarios}), encoding="ascii")
    done = subprocess.run([*_command(language), str(contract), str(folder)], capture_output=True, text=True, timeout=SECONDS,
                          check=False)
    assert done.returncode == 0 and f"{len(scenarios)} passed, 0 failed, 0 skipped" in done.stdout, done.stdout + done.stderr
    return None


# ---- the shared state in steps ----

def _dtype(value):
    return str(value.dtype).removeprefix("torch.")


def path_of(name):
    """Nested path of a dotted name."""
    return json.dumps(name.split("."))


def state_steps(layout, rank):
    """Memory and state `s{rank}` of what a rank holds."""
    steps, entries = [], []
    for name, value in values().items():
        offsets, sizes = box_of(layout, value.shape, rank)
        part = part_of(value, (offsets, sizes))
        steps.append({"op": "tensor", "id": f"{rank} {name}", "dtype": _dtype(value), "shape": sizes, "hex": data_of(part).hex()})
        entry = {"name": name, "tensor": f"{rank} {name}", "path": path_of(name)}
        entries.append(entry if is_whole(layout, value.ndim) else entry | {"shape": list(value.shape), "offsets": offsets})
    entries += [{"name": name, "json": object_text(value), "path": path_of(name)} for name, value in OBJECTS.items()]
    return [*steps, {"op": "state", "id": f"s{rank}", "entries": entries}]


def write_scenario(layout):
    """All ranks of a layout, as threads, save `p` for torch together; one rank saves without a collective."""
    ranks = ranks_of(layout)
    steps = [step for rank in range(ranks) for step in state_steps(layout, rank)]
    # A box that is the whole tensor would be taken for a replica, beside ranks that hold none of it.
    split = [[name, "sharded"] for name, value in values().items() if not is_whole(layout, value.ndim)]
    options = {"format": "torch_dcp", "kind": split}
    steps.append({"op": "save", "state": "s0", "path": "p", "options": options} if ranks == 1 else
                 {"op": "save_ranks", "states": [f"s{rank}" for rank in range(ranks)], "path": "p", "options": [options] * ranks})
    return {"name": layout, "steps": steps}


def read_scenario(name, path):
    """Everything in the directory `path` is what the shared state has: names, digests, a box of each, objects."""
    steps = [{"op": "open", "id": "c", "path": path}, {"op": "names", "checkpoint": "c", "expected": list(values())},
             {"op": "verify", "checkpoint": "c", "deep": True}]
    for tensor, digest in digests().items():
        steps.append({"op": "digest", "checkpoint": "c", "tensor": tensor, "algorithm": "sha256", "expected": digest})
        value = values()[tensor]
        box = [1 if extent > 2 else 0 for extent in value.shape], [extent - 2 if extent > 2 else extent for extent in value.shape]
        steps.append({"op": "read", "checkpoint": "c", "tensor": tensor, "offsets": box[0], "sizes": box[1],
                      "hex": data_of(part_of(value, box)).hex()})
    steps += [{"op": "object", "checkpoint": "c", "name": key, "content_type": "application/json", "text": object_text(value)}
              for key, value in OBJECTS.items()]
    return {"name": name, "steps": steps}


def write_all(language, folder):
    run(language, [write_scenario(layout) for layout in LAYOUTS], folder / language)
