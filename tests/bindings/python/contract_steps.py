# SPDX-License-Identifier: Apache-2.0
"""The Python interpreter of the contract's steps; the language is described in tests/bindings/README.md."""
import json
import struct
import threading
from array import array
from pathlib import Path

import shardwright
from contract_planning import PlanningSteps
from shardwright import Shard, _json

_VALUES = {"float32": "f", "float64": "d", "int32": "i", "int64": "q"}


class HostFailure(Exception):
    """The exception of the host's own storage."""


class FailingStorage:
    name = "failing"

    def _fail(self, *_):
        raise HostFailure("the host's storage failed")

    open = stat = list = remove = _fail


def text_of(value):
    return value if isinstance(value, str) else value["repeat"] * value["count"]


def pattern_bytes(dtype, shape, step):
    if "hex" in step:
        return bytes.fromhex(step["hex"])
    pattern, seed = step.get("pattern", "bytes"), step.get("seed", 0)
    size = shardwright.zeros(dtype, tuple(shape)).nbytes
    if pattern == "zeros":
        return bytes(size)
    if pattern == "index":
        count = 1
        for extent in shape:
            count *= extent
        return struct.pack(f"<{count}{_VALUES[dtype]}", *range(count))
    if dtype == "bool":
        return bytes((seed + k) % 2 for k in range(size))
    return bytes((seed + 31 * k) % 251 for k in range(size))


class HostTensor:
    """Host memory of a step: row-major in a Tensor, or any order and access through numpy."""

    def __init__(self, step):
        self.dtype, self.shape = step["dtype"], tuple(step["shape"])
        data = pattern_bytes(self.dtype, self.shape, step)
        self.value = shardwright.zeros(self.dtype, self.shape)
        self.value.raw()[:] = data
        if step.get("order") == "column" or step.get("read_only"):
            import numpy
            array = numpy.array(self.value.numpy(), order="F" if step.get("order") == "column" else "C")
            array.flags.writeable = not step.get("read_only", False)
            self.value = array

    def tobytes(self):
        return self.value.tobytes()


class Runner(PlanningSteps):
    """One scenario in one directory; `run` executes a step and raises what the library raises."""

    def __init__(self, directory):
        self.directory, self.things, self.last_place = Path(directory), {}, ("p", None)

    def run(self, step):
        getattr(self, "do_" + step["op"])(step)

    def path(self, step):
        storage = self.things.get(step.get("storage"))
        text = text_of(step["path"])
        return (text if storage else self.directory / text), storage

    def file(self, step):
        found = list(self.directory.glob(step["path"])) if "*" in step["path"] else [self.directory / step["path"]]
        assert len(found) == 1, f"{step['path']} fits {len(found)} files"
        return found[0]

    # ---- memory ----

    def do_tensor(self, step):
        self.things[step["id"]] = HostTensor(step)

    def do_state(self, step):
        self.things[step["id"]] = step
        self.build(step, writable=False)

    def build(self, step, writable):
        tree = {}
        for entry in step["entries"]:
            name = text_of(entry["name"])
            if name in tree and "path" not in entry:
                return self.doubled(name, self.value_of(entry))
            self.place(tree, entry, name)
        return shardwright.State(tree, writable=writable, mapping=self.mapping(step))

    @staticmethod
    def mapping(step):
        if "mapping" not in step:
            return None
        rules = step["mapping"]
        parameters = rules.get("parameters", {})
        if "shipped" in rules:
            return shardwright.Mapping.shipped(rules["shipped"], **parameters)
        return shardwright.Mapping(rules["json"], **parameters)

    def doubled(self, name, value):
        """Two equal names have no form in a dict; flat arrays of addresses have."""
        blob = name.encode() * 2
        size = len(name.encode())
        address = value.numpy().ctypes.data
        number, extents = shardwright.dtype_number(str(value.dtype)), list(value.shape)
        return shardwright.State.from_arrays(blob, array("Q", [0, size, 2 * size]), array("Q", [address] * 2),
                                             array("H", [number] * 2), array("q", extents * 2),
                                             array("Q", [0, len(extents), 2 * len(extents)]), owner=value)

    def place(self, tree, entry, name):
        keys = json.loads(entry["path"]) if "path" in entry else [name]
        for key in keys[:-1]:
            tree = tree.setdefault(key, {})
        tree[keys[-1]] = self.value_of(entry)

    def value_of(self, entry):
        if "tensor" not in entry:
            value = self.object_of(entry)
            if "grid" not in entry and "replica" not in entry:
                return value
            grid = entry.get("grid", {"index": (), "fragments": ()})
            return shardwright.ObjectCell(value, grid["index"], grid["fragments"], replica=entry.get("replica", False))
        local = self.things[entry["tensor"]]
        replica = entry.get("replica", False)
        if "grid" in entry:
            return Shard.of_grid(local.value, entry["grid"]["fragments"], entry["grid"]["index"], replica=replica)
        if "shape" not in entry:
            return Shard(local.value, local.shape, replica=True) if replica else local.value
        sizes = tuple(entry.get("sizes", local.shape))
        return Shard(local.value, tuple(entry["shape"]), boxes=((tuple(entry["offsets"]), sizes),),
                     fragments=tuple(entry.get("fragments", ())))

    @staticmethod
    def object_of(entry):
        if "json" in entry:
            return _json.decode(entry["json"].encode(), entry["name"])
        return bytes.fromhex(entry["hex"]) if "hex" in entry else bytes(entry["zeros"])

    def state(self, name, writable=False):
        return self.build(self.things[name], writable)

    def do_expect_tensor(self, step):
        tensor = self.things[step["id"]]
        assert tensor.tobytes() == pattern_bytes(tensor.dtype, tensor.shape, step)

    def do_storage(self, step):
        kinds = {"memory": shardwright.MemoryStorage, "failing": lambda: shardwright.CustomStorage(FailingStorage())}
        self.things[step["id"]] = kinds[step["kind"]]()

    # ---- saving and loading ----

    def do_save(self, step):
        path, storage = self.path(step)
        self.last_place = (step["path"], step.get("storage"))
        shardwright.save(self.state(step["state"]), path, storage=storage, **step.get("options", {}))

    def do_load(self, step):
        path, storage = self.path(step)
        shardwright.load(path, self.state(step["state"], writable=True), storage=storage, **step.get("options", {}))

    def do_save_ranks(self, step):
        self.on_ranks(step, lambda state, path, options, end: shardwright.save(state, path, collective=end, **options), False)

    def do_load_ranks(self, step):
        self.on_ranks(step, lambda state, path, options, end: shardwright.load(path, state, collective=end, **options), True)

    def do_load_all(self, step):
        path, storage = self.path(step)
        size = step.get("size", 0)
        ends = shardwright.thread_collectives(size) if size else [None]
        found = [None] * len(ends)

        def work(rank):
            found[rank] = shardwright.load(path, storage=storage, collective=ends[rank])

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(len(ends))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        expected = [{name: bytes.fromhex(data) for name, data in one["tensors"].items()}
                    | {name: json.loads(text) for name, text in one["objects"].items()} for one in step["expected"]]
        assert [{name: value.tobytes() if isinstance(value, shardwright.Tensor) else value for name, value in one.items()}
                for one in found] == expected

    def on_ranks(self, step, call, writable):
        path, _ = self.path(step)
        ends = shardwright.thread_collectives(len(step["states"]))
        options = step.get("options") or [{}] * len(ends)
        outcomes = {}

        def work(rank):
            try:
                call(self.state(step["states"][rank], writable), path, options[rank] or {}, ends[rank])
                outcomes[rank] = None
            except BaseException as e:
                outcomes[rank] = e

        taking_part = [rank for rank, state in enumerate(step["states"]) if state is not None]
        if step.get("absent") == "gone":
            for rank in set(range(len(ends))) - set(taking_part):
                ends[rank].close()
        threads = [threading.Thread(target=work, args=(rank,)) for rank in taking_part]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        codes = {getattr(outcomes[rank], "status", repr(outcomes[rank])) for rank in taking_part}
        assert len(codes) == 1, f"the ranks end differently: {outcomes}"
        if outcomes[taking_part[0]] is not None:
            raise outcomes[taking_part[0]]

    def do_prepare(self, step):
        shardwright.prepare(self.state(step["state"]))

    def do_save_async(self, step):
        path, storage = self.path(step)
        self.things[step["id"]] = shardwright.save_async(self.state(step["state"]), path, storage=storage,
                                                         **step.get("options", {}))

    def do_load_async(self, step):
        path, storage = self.path(step)
        self.things[step["id"]] = shardwright.load_async(path, self.state(step["state"], writable=True), storage=storage)

    def do_wait(self, step):
        assert self.things[step["job"]].wait()

    # ---- reading ----

    def do_open(self, step):
        path, storage = self.path(step)
        self.things[step["id"]] = shardwright.open(path, storage=storage, rank=step.get("rank", -1))

    def do_names(self, step):
        assert sorted(self.things[step["checkpoint"]].keys()) == sorted(map(text_of, step["expected"]))

    def do_ranks(self, step):
        assert self.things[step["checkpoint"]].ranks(step["name"]) == step["expected"]

    def do_read(self, step):
        tensor = self.things[step["checkpoint"]].tensor(step["tensor"])
        found = tensor.read(step["offsets"], step["sizes"])
        if "hex" in step:
            assert found.tobytes().hex() == step["hex"]

    def do_digest(self, step):
        assert self.things[step["checkpoint"]][step["tensor"]].digest(step["algorithm"]) == step["expected"]

    def do_object(self, step):
        checkpoint = self.things[step["checkpoint"]]
        assert checkpoint.object_content_type(step["name"]) == step["content_type"]
        found = checkpoint.object(step["name"])
        if "hex" in step:
            assert found == bytes.fromhex(step["hex"])
        else:
            wanted = _json.decode(step["text"].encode(), step["name"])  # NaN among its values
            assert _json.encode(found, step["name"]) == _json.encode(wanted, step["name"])

    def do_latest(self, step):
        path, storage = self.path(step)
        found = shardwright.latest(path, storage=storage)
        assert found == (f"{path}/" if str(path) else "") + step["expected"], found

    def do_convert(self, step):
        source, source_storage = self.path(step)
        target, target_storage = self.path({"path": step["to"], "storage": step.get("to_storage")})
        shardwright.convert(source, target, source_storage=source_storage, target_storage=target_storage,
                            **step.get("options", {}))

    def do_metadata(self, step):
        assert self.things[step["checkpoint"]].metadata == step["expected"]

    def do_verify(self, step):
        self.things[step["checkpoint"]].verify(deep=step["deep"])

    def do_find_damage(self, step):
        assert len(self.things[step["checkpoint"]].find_damage(deep=step["deep"]).damage) == step["expected"]

    # ---- planners ----

    def do_save_planner(self, step):
        self.things[step["id"]] = shardwright.SavePlanner(
            self.state(step["state"]), rank=step["rank"], world_size=step["world_size"], **step.get("options", {}))

    def do_local_plan(self, step):
        self.things[step["id"]] = self.things[step["planner"]].local_plan()

    def do_global_plan(self, step):
        path, _ = self.path(step)
        parts = self.things[step["planner"]].global_plan([self.things[p] for p in step["plans"]], path=path)
        self.things |= dict(zip(step["ids"], parts, strict=True))

    def do_finish(self, step):
        self.things[step["id"]] = self.things[step["planner"]].finish(self.things[step["plan"]])

    def do_save_execute(self, step):
        path, _ = self.path(step)
        self.things[step["id"]] = self.things[step["planner"]].execute(self.things[step["plan"]], path=path)

    def do_commit(self, step):
        self.things[step["planner"]].commit([None if r is None else self.things[r] for r in step["results"]])

    def do_load_planner(self, step):
        self.things[step["id"]] = shardwright.LoadPlanner(
            self.things[step["checkpoint"]], self.state(step["state"], writable=True), rank=step["rank"],
            **step.get("options", {}))

    def do_load_plan(self, step):
        self.things[step["id"]] = self.things[step["planner"]].local_plan()

    def do_load_execute(self, step):
        self.things[step["planner"]].execute(self.things[step["plan"]])

    def do_cut_plan(self, step):
        self.things[step["plan"]] = self.things[step["plan"]][:-step["drop"]]

    # ---- items of torch for an index of somebody else's; only where torch is ----

    def do_torch_items(self, step):
        import shardwright.torch
        path, storage = self.path(step)
        places, self.things[step["id"]] = shardwright.torch.write_items(self.state(step["state"]), path, step["name"],
                                                                        storage=storage)
        assert "places" not in step or [list(place) for place in places] == step["places"], places

    def do_torch_digests(self, step):
        import shardwright.torch
        path, storage = self.path(step)
        shardwright.torch.write_digests(path, (self.directory / step["index"]).read_bytes(),
                                        [self.things[result] for result in step["results"]], storage=storage)

    # ---- files ----

    def do_make_directory(self, step):
        (self.directory / step["path"]).mkdir(parents=True)

    def do_write_file(self, step):
        path = self.directory / step["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step["text"], encoding="ascii")

    def do_remove_file(self, step):
        self.file(step).unlink()

    def do_truncate_file(self, step):
        path = self.file(step)
        with path.open("r+b") as f:
            f.truncate(path.stat().st_size - step["drop"])

    def do_flip_bit(self, step):
        path = self.file(step)
        data = bytearray(path.read_bytes())
        data[step["offset"]] ^= 1 << step["bit"]
        path.write_bytes(data)

    def do_move_and_link(self, step):
        path, target = self.file(step), self.directory / step["to"]
        path.rename(target)
        path.symlink_to(target)
