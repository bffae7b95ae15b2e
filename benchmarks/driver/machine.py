# SPDX-License-Identifier: Apache-2.0
"""What a line needs so that somebody can repeat it: commit, command, CPU, cores, kernel, file system."""
import os
import platform
import shlex
import subprocess


def commit(root):
    # Ends in "-dirty" when files that git knows were changed.
    done = subprocess.run(["git", "-C", root, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip() or "unknown"


def cpu_model():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        models = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    return models[0] if models else platform.machine()


def file_system(path):
    """Its type and its device."""
    done = subprocess.run(["df", "--output=fstype,source", path], stdout=subprocess.PIPE, text=True, check=False)
    fields = done.stdout.split("\n")[1].split() if done.returncode == 0 else []
    return {"fs": fields[0], "device": fields[1]} if len(fields) == 2 else {"fs": "unknown"}


def command(quick, scenario, variant):
    """What measures one variant again, from the root of the clone."""
    words = ["python3", "benchmarks/run.py", "--scenario", scenario, "--variant", variant]
    return ("QUICK=1 " if quick else "") + shlex.join(words)


def facts(root, directory):
    return {"commit": commit(root), "cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release()} | file_system(directory)
