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
import signal
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from driver import floors, machine, rounds, worker  # noqa: E402

ORDER = ["startup", "binding_calls", "plan_save", "plan_symbolic", "plan_load", "validate", "megatron_plan", "small_tensors",
         "read_one", "open_index", "save_disk", "load_disk", "torch_files", "convert", "save_ranks", "load_ranks", "async_block",
         "interference", "megatron_save", "megatron_load", "megatron_reshard", "hsdp_collectives", "hsdp_step", "hsdp_overlap", "hsdp_overhead",
         "peak_memory"]


def load_scenario(name):
    path = os.path.join(HERE, name, "scenario.py")
    spec = importlib.util.spec_from_file_location(f"scenario_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def start_workers(name, variant, options, directory):
    """A contender of a variant is a name, or a name and the counts of threads that it runs with."""
    params = variant["params"] | {"build": options.build, "quick": options.quick}
    package = os.path.join(options.build, "python")
    for entry in variant["contenders"]:
        contender, threads = (entry, [1]) if isinstance(entry, str) else entry
        yield worker.Worker(contender, threads, os.path.join(HERE, name, f"{contender}.py"),
                            os.path.join(directory, contender), params, package)


def run_variant(name, variant, options, facts):
    """Measures all contenders of one variant; yields their lines."""
    directory = tempfile.mkdtemp(prefix=f"bench-{name}-", dir=options.directory)
    workers = []
    try:
        floor = None
        if variant.get("floor"):
            program = os.path.join(options.build, "bin", "floor")
            floor = floors.Floor(program, variant["floor"], variant["floor_bytes"], directory)
        for each in start_workers(name, variant, options, directory):
            workers.append(each)
        first = None
        if variant.get("first_floor"):
            first = floors.Floor(program, variant["first_floor"], variant["floor_bytes"], directory)
            first()
        turns, dropped = rounds.run_rounds(workers, floor, variant["reps"])
        facts = facts | {"command": machine.command(options.quick, name, variant["name"])}
        base = {"bench": name, "op": variant["op"], "variant": variant["name"]} | variant["line"] | facts
        base["collector"] = "on, input frozen"
        if options.quick:
            base["quick"] = True
        if floor:
            base["floor"] = variant["floor"]
            if first:
                base |= {"first_floor": variant["first_floor"], "first_floor_s": first.lines[-1]["s_median"]}
                yield first.lines[-1] | facts | ({"quick": True} if options.quick else {})
            yield floor.lines[-1] | facts | ({"quick": True} if options.quick else {})
        for turn in turns:
            yield rounds.summarise(turn, base, dropped)
    finally:
        for each in workers:
            each.kill()
        rounds.clean(directory)
        os.rmdir(directory)


def table_row(line):
    if line["bench"] == "floor":
        return f"  {'floor ' + line['what']:<28} {line['s_median']:>10.4f} s {line['gbps_median']:>8.2f} GB/s"
    name = f"{line['contender']}, {line['threads']} thr."
    if "skipped" in line or "error" in line:
        return f"  {name:<28} {line.get('skipped') or line.get('error')}"
    rate = f"{line['gbps_median']:>8.2f} GB/s" if "gbps_median" in line else ""
    share = f"{line['share_of_floor_median']:>6.2f} of the floor" if "share_of_floor_median" in line else ""
    extra = " ".join(f"{k}={v:.4g}" for k, v in line.items() if k.startswith(("ns_", "binding_ns_", "share_", "read_per_")) or k.endswith("_ms"))
    return f"  {name:<28} {line['s_median']:>10.4f} s {rate} {share} {extra}"


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
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # workers are ended and files removed, as after Ctrl-C
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
