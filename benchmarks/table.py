#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of docs/performance.md from JSON lines: table.py LINES.jsonl.

The last line of each measurement counts; lines of QUICK runs are left out. Of a contender that ran with several counts of
threads the fastest is shown, whoever it is.
"""
import json
import sys


def spread(line, key, form):
    return f"{form(line[key + '_median'])} ({form(line[key + '_min'])} - {form(line[key + '_max'])})"


def milliseconds(seconds):
    return f"{seconds * 1e3:,.0f} ms" if seconds >= 0.02 else f"{seconds * 1e3:.2f} ms"


def ratio(value):
    return f"{value:.2f}"


def disk(line):
    share = spread(line, "share_of_floor", ratio) if "share_of_floor_median" in line else "-"
    return [str(line["threads"]), spread(line, "s", milliseconds), f"{line['gbps_median']:.2f}", share]


def loaded_by_ranks(line):
    read = "-" if line["warm"] else f"{line['read_per_unique']:.2f}"
    return [line["layout"], "warm" if line["warm"] else "cold", *disk(line), read]


def blocking(line):
    return [str(line["threads"]), spread(line, "s", milliseconds), spread(line, "share_of_floor", ratio), milliseconds(line["first_s"]),
            ratio(line["first_ratio"])]


def saved_first(line):
    return [*disk(line), milliseconds(line["first_s"])]


def resharded(line):
    rss = f"{line['rss_of_program_bytes'] / (1 << 20):,.0f} MiB" if "rss_of_program_bytes" in line else "-"
    return [*disk(line), rss]


def interfering(line):
    return [str(line["threads"]), spread(line, "s", milliseconds), milliseconds(line["save_s"]),
            " ".join(f"{line[f'slow_{n}']:.2f}" for n in range(1, 9))]


def timed(key):
    return lambda line: [spread(line, key, milliseconds)]


def states(line):
    share = f"{line['binding_ns_per_tensor']:.0f} ns" if "binding_ns_per_tensor" in line else "-"
    return [f"{line['ns_per_tensor']:.0f} ns", share]


def memory(line):
    mib = 1 << 20
    return [f"{line['op']}, {line['variant']}", f"{line['added_bytes'] / mib:.1f} MiB",
            f"{line['allowed_bytes'] / mib:.0f} MiB"]


def stepping(line):
    return [spread(line, "s", milliseconds), f"{line['step_peak_bytes'] / (1 << 20):,.0f} MiB",
            "-" if line["contender"] == "alone" else f"{line['equal_bits']:.6f}"]


def overlapping(line):
    return [spread(line, "s", milliseconds), milliseconds(line["compute_s"]), milliseconds(line["exposed_s"])]


DISK = ["threads", "time, median (min - max)", "GB/s", "share of the floor"]
# Scenario, operation (None = all), titles, cells, whether each variant has a table of its own.
TABLES = [
    ("save_disk", None, DISK, disk, True),
    ("load_disk", None, DISK, disk, True),
    ("torch_files", None, DISK, disk, True),
    ("convert", None, DISK, disk, True),
    ("save_ranks", None, DISK, disk, True),
    ("load_ranks", None, ["wanted", "cache", *DISK, "read / stored"], loaded_by_ranks, "world"),
    ("async_block", None, ["threads", "time, median (min - max)", "share of the floor", "first save",
                            "its share of a fresh copy"], blocking, True),
    ("interference", None, ["threads", "training lost, median (min - max)", "the save took",
                             "steps beside it over a step alone"], interfering, True),
    ("megatron_save", "save", [*DISK, "first save"], saved_first, True),
    ("megatron_save", "save_async", [*DISK, "first save"], saved_first, True),
    ("megatron_load", None, ["wanted", "cache", *DISK, "read / stored"], loaded_by_ranks, "world"),
    ("megatron_reshard", None, [*DISK, "most memory of the program"], resharded, True),
    ("hsdp_collectives", None, DISK, disk, True),
    ("hsdp_step", None, ["time, median (min - max)", "most memory of a rank", "bits of one process"], stepping, True),
    ("hsdp_overlap", None, ["time, median (min - max)", "alone", "waits for others"], overlapping, True),
    ("hsdp_overhead", None, ["a phase of a unit"], lambda line: [f"{line['us_per_phase']:.1f} us"], False),
    ("small_tensors", None, ["threads", "time, median (min - max)"],
     lambda line: [str(line["threads"]), spread(line, "s", milliseconds)], True),
    ("open_index", None, ["time, median (min - max)", "most memory of the process"],
     lambda line: [spread(line, "s", milliseconds), f"{line['rss_peak_bytes'] / (1 << 20):,.0f} MiB"], True),
    ("read_one", None, ["threads", "time of 2,000 reads, median (min - max)"],
     lambda line: [str(line["threads"]), spread(line, "s", milliseconds)], True),
    ("binding_calls", "state", ["a tensor, whole call", "above the same in C"], states, False),
    ("binding_calls", "call", ["a call"], lambda line: [f"{line['ns_per_call']:.1f} ns"], False),
    ("startup", None, ["dlopen + context", "library, stripped"],
     lambda line: [f"{line['dlopen_context_ms']:.2f} ms", f"{line['stripped_bytes'] / 1e6:.2f} MB"], False),
    ("peak_memory", None, ["call", "added at the peak", "allowed"], memory, False),
]


# Many small measurements each: one table, a row per measurement, contenders beside each other.
PLANNING = ["plan_save", "plan_symbolic", "plan_load", "validate", "megatron_plan"]


def planning_tables(lines):
    for bench in PLANNING:
        chosen = [line for line in lines if line["bench"] == bench]
        if not chosen:
            continue
        print(f"\n{bench}, CPU time of one core\n\n| what | contender | median (min - max) | of ours |\n"
              "| --- | --- | --- | --- |")
        ours = {}
        for line in chosen:
            first = ours.setdefault(line["variant"], line["cpu_s_median"])
            print(f"| {line['variant']} | {line['contender']} | {spread(line, 'cpu_s', milliseconds)} | "
                  f"{line['cpu_s_median'] / first:.1f} |")


def last_lines(path):
    kept = {}
    with open(path, encoding="utf-8") as f:
        for line in map(json.loads, f):
            if line["bench"] != "floor" and "quick" not in line and "s_median" in line:
                kept[line["bench"], line["op"], line["variant"], line["contender"], line.get("threads", 1)] = line
    best = {}
    for line in kept.values():
        key = line["bench"], line["op"], line["variant"], line["contender"]
        if key not in best or line["s_median"] < best[key]["s_median"]:
            best[key] = line
    return list(best.values())


def groups(lines, by):
    """Lines of one table each, and what its title says of them."""
    if not by:
        return [(lines[0]["variant"], lines)]
    key = "variant" if by is True else by  # else "world"
    return [(f"{value}" if by is True else f"{value} ranks", [line for line in lines if line[key] == value])
            for value in dict.fromkeys(line[key] for line in lines)]


def main():
    lines = last_lines(sys.argv[1])
    planning_tables(lines)
    for bench, op, titles, cells, by in TABLES:
        chosen = [line for line in lines if line["bench"] == bench and op in (None, line["op"])]
        for name, rows in groups(chosen, by) if chosen else ():
            print(f"\n{bench}, {name}, {rows[0]['reps']} rounds, {max(line['dropped'] for line in rows)} dropped\n")
            print("| contender | " + " | ".join(titles) + " |")
            print("| --- |" + " --- |" * len(titles))
            for line in rows:
                print("| " + " | ".join([line["contender"]] + cells(line)) + " |")


if __name__ == "__main__":
    main()
