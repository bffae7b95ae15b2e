# SPDX-License-Identifier: Apache-2.0
"""The peak of this process's resident memory, since it was last forgotten."""


def peak_bytes():
    with open("/proc/self/status", encoding="ascii") as f:
        fields = dict(line.split(":", 1) for line in f)
    return int(fields["VmHWM"].split()[0]) * 1024


def forget_peak():
    """The mark of the peak falls to what is resident now."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as f:
        f.write("5")
