# SPDX-License-Identifier: Apache-2.0
"""Vocabulary of the suite: the originals, the descriptors of both packages, one process group of one rank."""
import importlib.util
import types

import originals
import pytest

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def original():
    """Modules of megatron-core; tests that ask for it are left out where it is not installed."""
    if not originals.is_installed():
        pytest.skip("megatron-core is not installed")
    return types.SimpleNamespace(**originals.modules())


@pytest.fixture(scope="session")
def one_rank(tmp_path_factory):
    """A default process group of one rank, which the originals need."""
    import torch.distributed as dist
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path_factory.mktemp("store") / "s"), 1), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture(params=["ours", "original"])
def kinds(request):
    """The descriptor classes of ours, then those of megatron-core: what takes one takes the other."""
    import shardwright.torch.megatron as ours
    return ours if request.param == "ours" else request.getfixturevalue("original").mapping
