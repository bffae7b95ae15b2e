# SPDX-License-Identifier: Apache-2.0
"""safetensors, memory-mapped (its default backend): torch tensors over the map, copied into the destination. Each of its
threads opens the file and takes every n-th tensor.
"""
from load_disk.safetensors_files import Safetensors


class Contender(Safetensors):
    backend, framework = "mmap", "pt"

    @staticmethod
    def put(target, loaded):
        target.copy_(loaded)
