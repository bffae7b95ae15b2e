#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs benchmark scenarios: run.py [--scenario NAME [--variant TEXT]] [--build BUILD]
[--directory DIR].

stdout: one JSON object per measurement and nothing else. stderr: progress and a table. QUICK=1 in the environment runs
fewer rounds. A scenario is a folder with scenario.py (data, variants, floor) and one file per contender.
"""
import argparse
import importlib.util
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from driver import floors, machine, rounds  # noqa: E402

ORDER = ["startup", "binding_calls", "plan_save", "plan_symbolic", "plan_load", "validate", "megatron_plan", "small_tensors",
         "save_disk", "load_disk", "peak_memory"]


def load_scenario(name):
    path = os.path.join(HERE, name, "scenario.py")
    spec = importlib.util.spec_from_file_location(f"scenario_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_variant(name, variant, options, facts):
    """Measures all contenders of one variant; yields their lines."""
    directory = tempfile.mkdtemp(prefix=f"bench-{name}-", dir=options.directory)
    try:
        floor = None
        if variant.get("floor"):
            program = os.path.join(options.build, "bin", "floor")
            floor = floors.Floor(program, variant["floor"], variant["floor_bytes"], directory)
        params = variant["params"] | {"build": options.build, "quick": options.quick}
        package = os.path.join(options.build, "python")
        workers = [rounds.Worker(c, os.path.join(HERE, name, f"{c}.py"), os.path.join(directory, c), params, package)
                   for c in variant["contenders"]]
        dropped = rounds.run_rounds(workers, floor, variant["reps"])
        base = {"bench": name, "op": variant["op"], "variant": variant["name"]} | variant["line"] | facts
        if floor:
            base["floor"] = variant["floor"]
        if options.quick:
            base["quick"] = True
        if floor:
            yield floor.lines[-1] | facts
        for worker in workers:
            yield rounds.summarise(worker, base, dropped)
    finally:
        rounds.clean(directory)
        os.rmdir(directory)


def table_row(line):
    if line["bench"] == "floor":
        return f"  {'floor ' + line['what']:<28} {line['s_median']:>10.4f} s {line['gbps_median']:>8.2f} GB/s"
    name = f"{line['contender']}"
    if "skipped" in line or "error" in line:
        return f"  {name:<28} {line.get('skipped') or line.get('error')}"
    rate = f"{line['gbps_median']:>8.2f} GB/s" if "gbps_median" in line else ""
    ratio = f"{line['ratio_median']:>6.2f} of the floor" if "ratio_median" in line else ""
    extra = " ".join(f"{k}={v:.4g}" for k, v in line.items() if k.startswith(("ns_", "binding_ns_", "share_")) or k.endswith("_ms"))
    return f"  {name:<28} {line['s_median']:>10.4f} s {rate} {ratio} {extra}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", choices=ORDER)
    parser.add_argument("--variant", default="", help="only variants of the scenario whose names hold this text")
    parser.add_argument("--build", default=os.path.join(os.path.dirname(HERE), "build"))
    parser.add_argument("--directory", default=tempfile.gettempdir(), help="where files are written")
    options = parser.parse_args()
    if options.variant and not options.scenario:
        parser.error("--variant needs --scenario")
    options.build = os.path.abspath(options.build)
    options.quick = os.environ.get("QUICK", "") not in ("", "0")
    facts = machine.facts(os.path.dirname(HERE), options.directory)
    failed = False
    with open(os.path.join(options.build, "bench.jsonl"), "a", encoding="utf-8") as record:
        for name in [options.scenario] if options.scenario else ORDER:
            variants = [v for v in load_scenario(name).variants(options.quick) if options.variant in v["name"]]
            if not variants:
                parser.error(f"{name} has no variant whose name holds {options.variant!r}")
            for variant in variants:
                print(f"{name} ({variant['name']})", file=sys.stderr)
                for line in run_variant(name, variant, options, facts):
                    text = json.dumps(line)
                    print(text, flush=True)
                    record.write(text + "\n")
                    print(table_row(line), file=sys.stderr)
                    failed |= "error" in line or line.get("checked") is False
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
