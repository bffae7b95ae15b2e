# SPDX-License-Identifier: Apache-2.0
"""Classes that indexes of megatron-core 0.15 and before name. The reader of the library needs none of them."""
from __future__ import annotations


class MCoreMetadata:
    """Metadata with the shapes of flattened tensors."""


class MCoreSavePlan:
    """A plan of a save."""
