# SPDX-License-Identifier: Apache-2.0
"""The same without access validation: what the proof costs is the difference."""
from megatron_save import shardwright


class Contender(shardwright.Contender):
    options = {"validate_access_integrity": False}
