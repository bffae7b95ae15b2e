# SPDX-License-Identifier: Apache-2.0
"""Values whose JSON says less than they are: what torch and we saved comes back as torch gives it."""
import collections
import copy

import pytest
import torch
import torch.distributed.checkpoint as theirs

import shardwright.torch.dcp as dcp

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled", "ignore:Detected an existing checkpoint")


@pytest.mark.parametrize("save", [dcp.save, theirs.save])
def test_sizes_and_ordered_mappings_come_back_as_torch_gives_them(save, tmp_path):
    values = {"size": torch.Size([2, 3]), "none": torch.Size([]), "tuple": (2, 3), "flags": (True,), "pair": (torch.Size([1]), (1,)),
              "deep": [[torch.Size([4])]], "set": {(1, 2)}, "ordered": (collections.OrderedDict(a=1), {"a": 1})}
    save(copy.deepcopy(values), checkpoint_id=tmp_path / "c")
    found, expected = dict.fromkeys(values), dict.fromkeys(values)
    dcp.load(found, checkpoint_id=tmp_path / "c")
    theirs.load(expected, checkpoint_id=tmp_path / "c")

    def kinds(value):
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple, set)) else ()
        return type(value), value, [kinds(part) for part in parts]

    for name in values:
        assert kinds(found[name]) == kinds(expected[name]) == kinds(values[name]), name
