# SPDX-License-Identifier: Apache-2.0
"""shardwright reading the file of the safetensors package, into numpy arrays in place."""
from driver.contender import Skip
from load_disk import shardwright as native


class Contender(native.Contender):
    name = "in.safetensors"

    def store(self, state):
        try:
            import safetensors.numpy
        except ImportError as e:
            raise Skip(f"safetensors not importable: {e}") from e
        safetensors.numpy.save_file(state, self.path)
