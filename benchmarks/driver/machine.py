# SPDX-License-Identifier: Apache-2.0
"""What a line needs so that somebody can repeat it: commit, CPU, cores, kernel, file system."""
import os
import platform
import subprocess


def commit(root):
    done = subprocess.run(["git", "-C", root, "rev-parse", "--short=12", "HEAD"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip() or "unknown"


def cpu_model():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        models = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    return models[0] if models else platform.machine()


def file_system(path):
    done = subprocess.run(["stat", "-f", "-c", "%T", path], stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip() or "unknown"


def facts(root, directory):
    return {"commit": commit(root), "cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)),
            "kernel": platform.release(), "fs": file_system(directory)}
