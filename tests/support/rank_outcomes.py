# SPDX-License-Identifier: Apache-2.0
"""What the processes of a launch said about their cases: lines {"case": NAME, "outcome": "ok" or what went wrong}."""
import json


def gather(processes, seconds):
    """(case to {rank: outcome}, what processes said that did not end well). `processes` are in rank order, with pipes for
    text; none is left running, whatever happens."""
    outcomes, errors = {}, []
    try:
        for rank, process in enumerate(processes):
            out, err = process.communicate(timeout=seconds)
            for line in out.splitlines():
                if line.startswith('{"case"'):
                    row = json.loads(line)
                    outcomes.setdefault(row["case"], {})[rank] = row["outcome"]
            if process.returncode:
                errors.append(f"rank {rank} ended with {process.returncode}:\n{err[-3000:]}")
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return outcomes, errors
