# SPDX-License-Identifier: Apache-2.0
"""shardwright.torch.dcp has every public name of torch.distributed.checkpoint, with the parameters that torch has."""
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest
import torch.distributed.checkpoint as theirs

import shardwright
import shardwright.torch.dcp as dcp

MODULES = ["", *sorted(m.name for m in pkgutil.iter_modules(theirs.__path__) if not m.name.startswith("_"))]
# Private names that programs outside of torch use.
PRIVATE = {"state_dict_loader": ["_load_state_dict", "_load_state_dict_from_keys"], "state_dict_saver": ["_save_state_dict"],
           "default_planner": ["_EmptyStateDictLoadPlanner", "_create_default_local_metadata", "_validate_global_plan"],
           "utils": ["_assert_same_keys", "_DistWrapper", "_profile"], "filesystem": ["_StorageInfo", "_StoragePrefix", "_split_by_size_and_type"],
           "metadata": ["_MEM_FORMAT_ENCODING", "STATE_DICT_TYPE"], "planner_helpers": ["_create_read_items", "_create_chunk_list"],
           "staging": ["_ReplicationStager"], "state_dict": ["_init_optim_state", "_patch_model_state_dict"]}


def both(name):
    suffix = f".{name}" if name else ""
    return importlib.import_module(theirs.__name__ + suffix), importlib.import_module(dcp.__name__ + suffix)


def public(module):
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "").startswith(theirs.__name__)]
    listed = getattr(module, "__all__", [])
    return sorted({name for name in [*own, *listed] if not name.startswith("_")})


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_there(name):
    original, ours = both(name)
    assert len(MODULES) > 20
    assert [each for each in public(original) if not hasattr(ours, each)] == []
    assert [each for each in getattr(original, "__all__", []) if each not in ours.__all__] == []


@pytest.mark.parametrize("name", PRIVATE)
def test_private_names_that_others_use_are_there(name):
    assert [each for each in PRIVATE[name] if not hasattr(both(name)[1], each)] == []


def parameters(function):
    return {name: (p.kind, p.default) for name, p in inspect.signature(function).parameters.items()}


def callables():
    for module in MODULES:
        original, ours = both(module)
        for name in public(original):
            mine, its = getattr(ours, name), getattr(original, name)
            if mine is not its and callable(its) and not name.endswith("Error") and "HuggingFace" not in name:
                yield pytest.param(mine, its, id=f"{module}.{name}")


@pytest.mark.parametrize(("mine", "its"), list(callables()))
def test_parameters_are_those_of_torch_and_others_have_defaults(mine, its):
    wanted, have = parameters(its), parameters(mine)
    for name, (kind, default) in wanted.items():
        assert name in have or kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD), name
        if name in have and kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            assert have[name][0] == kind, name
            same = have[name][1] == default or repr(have[name][1]) == repr(default)
            assert same, (name, have[name], default)
    added = [name for name in have if name not in wanted]
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    assert all(have[name][0] in kinds or have[name][1] is not inspect.Parameter.empty for name in added), added


@pytest.mark.parametrize("kind", [dcp.HuggingFaceStorageWriter, dcp.HuggingFaceStorageReader, dcp.QuantizedHuggingFaceStorageReader])
def test_what_belongs_to_other_formats_says_what_there_is_instead(kind, tmp_path):
    with pytest.raises(shardwright.UnimplementedError, match=f"{kind.__name__} is not part of this version; .* torch's own"):
        kind(tmp_path)


def test_an_import_does_not_need_fsspec_and_starts_nothing():
    code = ("import sys; sys.modules['fsspec'] = None; import threading, shardwright.torch.dcp as dcp; "
            "assert dcp.fsspec_filesystem.FsspecWriter and threading.active_count() == 1; dcp.format_utils")
    subprocess.run([sys.executable, "-W", "error::RuntimeWarning", "-c", code], check=True, timeout=120)
