# SPDX-License-Identifier: Apache-2.0
"""torch DCP as save_disk runs it."""
from save_disk.torch_dcp import Contender  # noqa: F401
