# SPDX-License-Identifier: Apache-2.0
"""The peak of this process's resident memory, since it was last forgotten; pages that the machine has."""
import ctypes
import mmap


def peak_bytes():
    with open("/proc/self/status", encoding="ascii") as f:
        fields = dict(line.split(":", 1) for line in f)
    return int(fields["VmHWM"].split()[0]) * 1024


def forget_peak():
    """The mark of the peak falls to what is resident now."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as f:
        f.write("5")


def return_freed():
    """Gives back what the C library keeps for later allocations."""
    ctypes.CDLL(None).malloc_trim(0)


def back_pages(size_bytes):
    """Touches as much memory and gives it back. The host of a VM gives it a page when the VM first touches it, which costs
    more than all else; who comes next takes those that were touched last, so contenders and floors get the same kind."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
    mmap.mmap(-1, size_bytes, flags=flags).close()
