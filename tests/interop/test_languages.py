# SPDX-License-Identifier: Apache-2.0
"""Every language and torch write and read directories of torch.distributed.checkpoint for each other.

The languages write with one thread per rank, torch and shardwright.torch.dcp with one process per rank, on the layouts of
shared_state.py; all of it is read by torch, by every language and by the command line, with equal digests.
"""
import json
import pickle
import shutil
import subprocess
import sys

import languages
import pytest
import shardwright.torch
import torch
import torch.distributed as dist
from languages import BUILD, LANGUAGES, SOURCE
from shared_state import LAYOUTS, OBJECTS, box_of, data_of, digests, is_whole, part_of, values
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)

sys.path.append(str(SOURCE / "tests" / "distributed"))
import ranks  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
WRITERS = ("torch", "ours", *LANGUAGES)
LAUNCH_SECONDS = 600


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """WRITER/LAYOUT/p of every language; the launch adds those of torch and ours."""
    place = tmp_path_factory.mktemp("interop")
    for language in LANGUAGES:
        languages.write_all(language, place)
    return place


@pytest.fixture(scope="module")
def launched(folder):
    """What the four ranks said about each writer, and what they left."""
    program = str(SOURCE / "tests" / "interop" / "mesh_rank.py")
    return ranks.launch(4, folder, *LANGUAGES, seconds=LAUNCH_SECONDS, program=program)


def nested(state):
    """The shared state as mappings."""
    model = {name.split(".")[1]: value for name, value in state.items() if "." in name}
    return {"model": model} | {name: value for name, value in state.items() if "." not in name}


def check_file(path):
    """What dcp_to_torch_save left is the shared state."""
    found = torch.load(path, weights_only=False)
    wanted = nested(values())
    for name, value in {**wanted["model"], **wanted}.items():
        if name != "model":
            stored = found["model"].get(name, found.get(name))
            assert stored.dtype == value.dtype and stored.shape == value.shape and data_of(stored) == data_of(value), name
    assert {name: found[name] for name in OBJECTS} == OBJECTS


@pytest.mark.parametrize("case", ["save", *WRITERS])
def test_ranks_of_torch_load_on_other_meshes_what_every_writer_left(launched, case):
    """torch's directories through shardwright.torch.dcp, all others through torch itself."""
    outcomes, errors = launched
    assert outcomes.get(case) == ["ok"] * 4, "\n".join([*map(str, outcomes.get(case, ["it did not run"])), *errors])


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_reads_what_every_writer_left(folder, launched, language):
    scenarios = [languages.read_scenario(folder.name, f"{writer}/{layout}/p") for writer in WRITERS for layout in LAYOUTS]
    languages.run(language, scenarios, folder.parent)


@pytest.mark.parametrize("writer", WRITERS)
def test_the_command_line_gives_equal_digests(folder, launched, writer):
    for layout in LAYOUTS:
        done = subprocess.run([BUILD / "bin" / "shardwright", "digest", "--algorithm", "sha256", "--json",
                               folder / writer / layout / "p"], capture_output=True, text=True, check=True)
        assert {name: each["digest"] for name, each in json.loads(done.stdout).items()} == digests(), layout


@pytest.mark.parametrize("writer", ["ours", *LANGUAGES])
def test_torch_makes_a_file_of_what_is_written_here(folder, launched, writer, tmp_path):
    for layout in LAYOUTS:
        dcp_to_torch_save(folder / writer / layout / "p", tmp_path / "x.pt")
        check_file(tmp_path / "x.pt")


# ---- items for an index that torch's classes make ----

GENERATION = "0123456789abcdef" * 2
ITEM_LAYOUT = "2 rows"


def index_of(places_by_rank):
    """The pickled index of the shared state, whose items lie there."""
    metadata = Metadata({}, {}, {})
    for rank, places in enumerate(places_by_rank):
        for name, offset, length in places:
            if name in OBJECTS:
                key, entry = MetadataIndex(name), BytesStorageMetadata()
            else:
                value = values()[name]
                offsets, sizes = map(torch.Size, box_of(ITEM_LAYOUT, value.shape, rank))
                entry = metadata.state_dict_metadata.get(name) or TensorStorageMetadata(
                    TensorProperties(value.dtype), value.shape, [])
                chunk = ChunkStorageMetadata(offsets, sizes)
                key = MetadataIndex(name, offsets, len(entry.chunks))
                if 0 in sizes or chunk in entry.chunks:
                    continue  # of replicas the first rank's counts
                entry.chunks.append(chunk)
            if key in metadata.storage_data:
                continue
            metadata.state_dict_metadata[name] = entry
            metadata.planner_data[name] = tuple(name.split("."))
            metadata.storage_data[key] = _StorageInfo(f"__{rank}_0.{GENERATION}.distcp", offset, length)
    return pickle.dumps(metadata)


def named_part(value, rank):
    """What a rank holds, as a tensor that says which box it is."""
    if is_whole(ITEM_LAYOUT, value.ndim):
        return value
    offsets, sizes = map(tuple, box_of(ITEM_LAYOUT, value.shape, rank))
    part = part_of(value, (offsets, sizes)).clone()
    part.global_shape, part.global_offsets = tuple(value.shape), (offsets,)
    part.local_offsets, part.local_sizes = ((0,) * value.ndim,), (sizes,)
    return part


@pytest.fixture(scope="module")
def places_by_rank(tmp_path_factory):
    """Where the items of both ranks lie, from Python: equal states have equal files in every language."""
    path, found = tmp_path_factory.mktemp("items"), []
    for rank in range(2):
        state = {name: named_part(value, rank) for name, value in values().items()}
        places, _ = shardwright.torch.write_items(state | OBJECTS, path, f"__{rank}_0.{GENERATION}.distcp")
        found.append([list(place) for place in places])
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_items_of_every_language_are_those_of_an_index_of_torch(language, places_by_rank, tmp_path):
    path = tmp_path / "items" / "p"
    path.mkdir(parents=True)
    (path / ".metadata").write_bytes(index_of(places_by_rank))
    steps = [step for rank in range(2) for step in languages.state_steps(ITEM_LAYOUT, rank)]
    steps += [{"op": "torch_items", "id": f"r{rank}", "state": f"s{rank}", "path": "p", "places": places,
               "name": f"__{rank}_0.{GENERATION}.distcp"} for rank, places in enumerate(places_by_rank)]
    steps.append({"op": "torch_digests", "path": "p", "index": "p/.metadata", "results": ["r0", "r1"]})
    languages.run(language, [{"name": "items", "steps": steps}], tmp_path)
    dcp_to_torch_save(path, tmp_path / "x.pt")
    check_file(tmp_path / "x.pt")
    with shardwright.open(path) as checkpoint:
        assert checkpoint.info()["digests"] and {n: d["digest"] for n, d in checkpoint.digest("sha256").items()} == digests()


# ---- megatron-core ----

@pytest.mark.parametrize("language", LANGUAGES)
def test_megatron_core_loads_what_a_language_wrote(folder, language, tmp_path):
    """Directories of torch_dist are those of torch beside a marker and the common part."""
    dist_checkpointing = pytest.importorskip("megatron.core.dist_checkpointing")
    path = tmp_path / "c"
    shutil.copytree(folder / language / "4 strided" / "p", path)
    (path / "metadata.json").write_text(json.dumps({"sharded_backend": "torch_dist", "sharded_backend_version": 1,
                                                    "common_backend": "torch", "common_backend_version": 1}))
    torch.save({"iteration": 3}, path / "common.pt")
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "s"), 1), rank=0, world_size=1)
    try:
        target = {name: dist_checkpointing.ShardedTensor.from_rank_offsets(name, torch.zeros_like(value))
                  for name, value in values().items()}
        found = dist_checkpointing.load(target, str(path))
    finally:
        dist.destroy_process_group()
    assert found["iteration"] == 3
    assert [name for name, value in values().items() if data_of(found[name]) != data_of(value)] == []
