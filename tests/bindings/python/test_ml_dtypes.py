# SPDX-License-Identifier: Apache-2.0
"""numpy arrays of the dtypes that ml_dtypes registers, there and back, at every dtype of the library that it has."""
import ml_dtypes
import numpy
import pytest
import shardwright

BYTES = ("bfloat16", "complex32", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
         "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
BITS = {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4, "int4": 4, "uint4": 4}
BLOCK = 1 << 20


def array_of(name, shape, seed=1):
    """Every bit pattern of the dtype; of int4 with its sign in the upper bits, as ml_dtypes keeps it."""
    kind = numpy.dtype(getattr(ml_dtypes, name))
    count = int(numpy.prod(shape)) * kind.itemsize
    data = numpy.random.default_rng(seed).integers(0, 256, count, "uint8")
    if name in BITS:
        data = data & ((1 << BITS[name]) - 1)
    if name == "int4":
        data = (data ^ 8) - numpy.uint8(8)
    return data.view(kind).reshape(shape)


def raw(array):
    return numpy.ascontiguousarray(array).reshape(-1).view("uint8").tolist()


@pytest.mark.parametrize("name", [*BYTES, *BITS])
def test_every_dtype_comes_back(name, tmp_path):
    array = array_of(name, (4, 8))
    shardwright.save({"w": array, "t": array.T}, tmp_path / "p")
    found = shardwright.load(tmp_path / "p")
    assert found["w"].dtype == name and found["w"].nbytes == 32 * BITS.get(name, 8 * array.itemsize) // 8
    assert found["w"].numpy().dtype == array.dtype and raw(found["w"].numpy()) == raw(array)
    into = {"w": numpy.zeros_like(array), "t": numpy.zeros_like(array).T}
    shardwright.load(tmp_path / "p", into)
    assert raw(into["w"]) == raw(array) and raw(into["t"]) == raw(array.T)
    with shardwright.open(tmp_path / "p") as c:
        out = numpy.zeros((2, 8), array.dtype)
        c["w"].read((1, 0), (2, 8), out=out)
        assert raw(out) == raw(array[1:3])


@pytest.mark.parametrize("name", ["float8_e5m2", "int4", "float6_e3m2fn"])
def test_parts_of_such_tensors_are_put_together(name, tmp_path):
    whole = array_of(name, (4, 8))
    parts = [shardwright.Shard(whole[2 * i:2 * i + 2], (4, 8), boxes=(((2 * i, 0), (2, 8)),)) for i in range(2)]
    planners = [shardwright.SavePlanner({"w": part}, path=tmp_path / "p", rank=rank, world_size=2)
                for rank, part in enumerate(parts)]
    plans = planners[0].global_plan([p.local_plan() for p in planners])
    results = []
    for planner, plan in zip(planners, plans, strict=True):
        planner.finish(plan)
        results.append(planner.execute())
    planners[0].commit(results)
    target = numpy.zeros_like(whole[1:3])
    shardwright.load(tmp_path / "p", {"w": shardwright.Shard(target, (4, 8), boxes=(((1, 0), (2, 8)),))})
    assert raw(target) == raw(whole[1:3])


@pytest.mark.parametrize("name", ["int4", "float6_e2m3fn"])
def test_arrays_above_a_block_of_the_packing_come_back(name, tmp_path):
    array = array_of(name, (BLOCK + 24,))
    shardwright.save({"w": array}, tmp_path / "p")
    into = {"w": numpy.zeros_like(array)}
    shardwright.load(tmp_path / "p", into)
    assert numpy.array_equal(into["w"].view("uint8"), array.view("uint8"))


@pytest.mark.parametrize("name", ["int4", "float4_e2m1fn"])
def test_the_first_element_lies_in_the_low_bits(name, tmp_path):
    array = array_of(name, (2,), 3)
    shardwright.save({"w": array}, tmp_path / "p")
    low, high = (byte & 15 for byte in raw(array))
    assert shardwright.load(tmp_path / "p")["w"].tobytes() == bytes([low | high << 4])


def test_a_target_that_is_missing_stays_as_it_was(tmp_path):
    shardwright.save({"a": array_of("int4", (2,))}, tmp_path / "p")
    kept = array_of("int4", (4,), 5)
    into = {"a": numpy.zeros(2, ml_dtypes.int4), "b": kept.copy()}
    assert shardwright.load(tmp_path / "p", into, missing="report").missing == ["b"]
    assert raw(into["b"]) == raw(kept)


def test_a_read_only_target_is_refused(tmp_path):
    shardwright.save({"w": array_of("int4", (2,))}, tmp_path / "p")
    target = numpy.zeros(2, ml_dtypes.int4)
    target.flags.writeable = False
    with pytest.raises(shardwright.InvalidArgumentError, match="w is read-only"):
        shardwright.load(tmp_path / "p", {"w": target})


def test_a_background_load_fills_packed_arrays(tmp_path):
    array = array_of("uint4", (4, 4))
    shardwright.save_async({"w": array}, tmp_path / "p").result()
    into = {"w": numpy.zeros_like(array)}
    shardwright.load_async(tmp_path / "p", into).result()
    assert raw(into["w"]) == raw(array)


@pytest.mark.parametrize("name", ["int2", "uint2", "bcomplex32"])
def test_a_dtype_that_the_library_lacks_is_named(name, tmp_path):
    with pytest.raises(shardwright.UnimplementedError, match=f"layer.w has dtype {name}"):
        shardwright.save({"layer": {"w": numpy.zeros(4, getattr(ml_dtypes, name))}}, tmp_path / "p")


def test_a_last_dimension_that_ends_inside_a_byte_is_refused(tmp_path):
    with pytest.raises(shardwright.UnimplementedError, match="whole bytes"):
        shardwright.save({"w": array_of("int4", (2, 3))}, tmp_path / "p")


def test_arrays_of_another_byte_order_are_not_taken_for_these(tmp_path):
    with pytest.raises(shardwright.InvalidArgumentError, match="w"):
        shardwright.save({"w": numpy.arange(4, dtype=">f4")}, tmp_path / "p")
