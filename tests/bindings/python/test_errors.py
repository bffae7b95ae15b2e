# SPDX-License-Identifier: Apache-2.0
"""Bad input, row by row of the table of statuses: the class, what the message names, and data left as it was."""
import errno
import os
import resource
import tempfile
import traceback

import numpy as np
import pytest
import shardwright

E = shardwright
ONE = {"w": np.arange(6, dtype="f4").reshape(2, 3)}


@pytest.fixture
def path(tmp_path):
    shardwright.save(ONE, tmp_path / "p")
    return tmp_path / "p"


def fails(error, *texts):
    """pytest.raises for an error class whose message holds all texts."""
    return pytest.raises(error, match="".join(f"(?=.*{text})" for text in texts) if texts else None)


def still_there(path):
    with shardwright.open(path) as c:
        c.verify(deep=True)
        return c["w"][:].tolist() == ONE["w"].tolist()


@pytest.mark.parametrize(("options", "texts"), [
    ({"overwrite": "sometimes"}, ["overwrite", "sometimes", "replace"]), ({"durability": 1}, ["durability"]),
    ({"threads": -1}, ["threads"]), ({"threads": True}, ["threads"]), ({"memory_budget": 2**70}, ["memory_budget"]),
    ({"deadline": "soon"}, ["deadline"]), ({"deadline": float("nan")}, ["deadline"]), ({"metadata": [1]}, ["metadata"]),
    ({"metadata": {"step": 1}}, ["metadata", "1"]), ({"metadata": {"\ud800": ""}}, ["metadata"]),
    ({"kind": [("*", "everyone")]}, ["kind", "everyone"]), ({"kind": [("*",)]}, ["kind"]), ({"file_mode": 0o10000}, ["file_mode"]),
    ({"wrong": 1}, ["wrong", "overwrite"]), ({"keep_generations": 1.5}, ["keep_generations"])])
def test_unknown_options_and_values(options, texts, path):
    with fails(E.InvalidArgumentError, *texts) as caught:
        shardwright.save({"w": np.zeros(1)}, path, **options)
    assert caught.value.details["parameter"] == next(iter(options)) and isinstance(caught.value, ValueError)
    assert still_there(path)


@pytest.mark.parametrize(("options", "texts"), [
    ({"missing": "maybe"}, ["missing", "maybe", "report"]), ({"cast": True}, ["cast", "allow"]),
    ({"strict": [("*", "error")]}, ["strict", "rows"]), ({"verify": "off "}, ["verify", "on_read"])])
def test_unknown_options_of_loads(options, texts, path):
    target = {"w": np.full((2, 3), 7, "f4")}
    with fails(E.InvalidArgumentError, *texts) as caught:
        shardwright.load(path, into=target, **options)
    assert caught.value.details["parameter"] == next(iter(options)) and (target["w"] == 7).all()


def test_a_format_that_is_not_known(path):
    with fails(E.InvalidArgumentError, "format", "pickles"):
        shardwright.save(ONE, path, format="pickles")
    assert still_there(path)


@pytest.mark.parametrize(("state", "texts"), [
    ({"w": {1, 2}}, ["w", "set"]), ({"a": {"b": [object()]}}, ["a.b.0", "object"]), ({"w": np.array(["x"])}, ["w", "ndarray"]),
    ({"w": np.array([{}])}, ["w"]), ({"w": 1 + 2j}, ["w", "complex"]), ({"a": {1.5: np.ones(1)}}, ["a", "1.5", "float"]),
    ({"a": {(1,): np.ones(1)}}, ["tuple"]), ({"x\ud800": np.ones(1)}, ["surrogate|UTF-8"]), ({"x": "\ud800"}, ["x", "UTF-8"]),
    ({"n" * 65536: np.ones(1)}, ["65535"]), ([np.ones(1)], ["mapping", "list"]), ({"w": np.ones(4, ">f4")}, ["w"]),
    ({"w": np.zeros(3, "datetime64[s]")}, ["w"]), ({"w": np.ones(4)[::-1]}, ["w", "stride"])])
def test_states_that_cannot_be_saved(state, texts, path):
    with fails(E.InvalidArgumentError, *texts):
        shardwright.save(state, path)
    assert still_there(path)


def test_a_state_that_holds_itself(path):
    for loop in ({}, []):
        (loop.__setitem__("x", loop) if isinstance(loop, dict) else loop.append(loop))
        with fails(E.InvalidArgumentError, "nested|holds itself"):
            shardwright.save({"loop": loop}, path)


def test_names_that_occur_twice(path):
    with fails(E.AlreadyExistsError, "a.b"):
        shardwright.save({"a.b": np.ones(1), "a": {"b": np.ones(1)}}, path)
    with pytest.raises(FileExistsError):
        shardwright.save({"0": np.ones(1), 0: np.ones(1)}, path)


def test_shards_that_do_not_fit(tmp_path):
    local = np.zeros((2, 3))
    for shard in (E.Shard(local, (4, 3), boxes=(((3, 0), (2, 3)),)), E.Shard(local, (4, 3), boxes=(((0, 0), (2, 2)),)),
                  E.Shard(local, (4, 3), boxes=(((0,), (2,)),)), E.Shard(local, (-1, 3), boxes=(((0, 0), (2, 3)),)),
                  E.Shard(local, (2**62, 2**62), boxes=(((0, 0), (2, 3)),)), E.Shard(local, (4, 3), layout=E.Layout((4,), [0]))):
        with pytest.raises(E.ShardwrightError) as caught:
            shardwright.save({"w": shard}, tmp_path / "p")
        assert caught.value.status in ("INVALID_ARGUMENT", "OUT_OF_RANGE"), caught.value
    with fails(E.InvalidArgumentError, "w"):
        shardwright.save({"w": E.Shard(local, (4, 3), boxes=(((0, 0), (2, 3)),))}, tmp_path / "p")  # a hole
    assert not (tmp_path / "p" / "manifest.shw").exists()


def test_layouts_that_are_none():
    for arguments in (((2,), ["shard", "shard"]), ((2,), ["sideways"]), ((0,), [0]), ((-1,), [0]), ((2,), [0], [1])):
        with pytest.raises(E.InvalidArgumentError):
            E.Layout(arguments[0], arguments[1], ranks=arguments[2] if len(arguments) > 2 else None)
    with pytest.raises(E.FailedPreconditionError):
        E.Layout((2,), ["partial"])


def test_nothing_there(tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("nothing", "empty", "nothing/below"):
        with fails(FileNotFoundError, name) as caught:
            shardwright.open(tmp_path / name)
        assert isinstance(caught.value, LookupError) and name in caught.value.details["file"]


def test_names_that_are_not_stored_offer_the_nearest(tmp_path):
    shardwright.save({f"layers.{i}.weight": np.ones(1) for i in range(5)}, tmp_path / "p")
    with fails(E.NotFoundError, "layers.3.weigth", "layers.3.weight"):
        shardwright.open(tmp_path / "p")["layers.3.weigth"]
    with fails(E.NotFoundError, "layers.9.weight"):
        shardwright.load(tmp_path / "p", into={"layers.9.weight": np.ones(1)})


def test_shapes_and_dtypes_that_differ(path):
    with fails(E.InvalidArgumentError, "w", "3"):
        shardwright.load(path, into={"w": np.zeros((3, 3), "f4")})
    with fails(E.InvalidArgumentError, "float32", "float64"):
        shardwright.load(path, into={"w": np.zeros((2, 3), "f8")})
    target = np.zeros((2, 3), "f8")
    report = shardwright.load(path, into={"w": target}, cast="allow")
    assert target.tolist() == ONE["w"].tolist() and report.casts == [E.Cast("w", "float32", "float64")]


@pytest.mark.parametrize("options", [{"shape": "crop_and_pad"}, {"strict": [("w", "error", "report", "error", "crop_and_pad")]},
                                     {"shape": "crop_and_pad", "strict": [("w", "error", "report", "error")]}])
def test_shapes_are_cropped_and_padded_when_asked_for(path, options):
    wide, low = np.full((2, 5), 9, "f4"), np.full((1, 2), 9, "f4")
    report = shardwright.load(path, into={"w": wide}, **options)
    assert wide.tolist() == [[*row, 0, 0] for row in ONE["w"].tolist()]
    assert report.shapes == [shardwright.ShapeChange("w", (2, 3), (2, 5))]
    shardwright.load(path, into={"w": low}, **options)
    assert low.tolist() == [ONE["w"][0, :2].tolist()]
    with fails(E.InvalidArgumentError, "[2, 3]", "[2, 3, 1]"):
        shardwright.load(path, into={"w": np.zeros((2, 3, 1), "f4")}, **options)


def test_strict_globs_choose_by_name(path):
    state = {"w": np.zeros((2, 3), "f8"), "head.x": np.ones(1)}
    strict = [("head.*", "report", "report", "error"), ("w", "error", "report", "allow")]
    assert shardwright.load(path, into=state, strict=strict).missing == ["head.x"]
    with pytest.raises(E.NotFoundError):
        shardwright.load(path, into=state, strict={"w": ("error", "report", "allow")})
    with fails(E.ShardwrightError, "w"):
        shardwright.load(path, into={}, unexpected="error")


def test_paths_that_are_something_else(tmp_path):
    (tmp_path / "file").write_text("no checkpoint")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("no checkpoint")
    (tmp_path / "dcp").mkdir()
    (tmp_path / "dcp" / ".metadata").write_bytes(b"\x80\x04.")
    for name in ("file", "folder"):
        with fails(E.InvalidArgumentError, name):
            shardwright.open(tmp_path / name)
    with fails(E.DataLossError, "metadata"):
        shardwright.open(tmp_path / "dcp")
    with fails(E.InvalidArgumentError, "file", "not a directory"):
        shardwright.save(ONE, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "no checkpoint"
    for text in ("x" * 300, "y/" * 3000, "nul\0", ""):
        with pytest.raises(E.InvalidArgumentError):
            shardwright.save(ONE, tmp_path / text if text else "")
    with fails(E.InvalidArgumentError, "text"):
        shardwright.open(tmp_path, storage=E.MemoryStorage())


@pytest.mark.parametrize("damage", ["cut manifest", "flip manifest", "empty manifest", "cut data", "no data", "swap data"])
def test_damage_is_data_loss_and_names_the_file(damage, path, data_file):
    manifest, data = path / "manifest.shw", data_file(path)
    if damage == "flip manifest":
        content = bytearray(manifest.read_bytes())
        content[len(content) // 2] ^= 1
        manifest.write_bytes(content)
    elif damage == "swap data":
        content = data.read_bytes()
        shardwright.save({"w": ONE["w"] + 1}, path)
        data_file(path).write_bytes(content)
    else:
        changes = {"cut manifest": lambda: os.truncate(manifest, manifest.stat().st_size - 1),
                   "empty manifest": lambda: os.truncate(manifest, 0),
                   "cut data": lambda: os.truncate(data, data.stat().st_size - 1), "no data": data.unlink}
        changes[damage]()
    with pytest.raises(E.DataLossError) as caught:
        shardwright.load(path)
    assert ("manifest" if "manifest" in damage else "rank-00000") in caught.value.details["file"]
    target = {"w": np.full((2, 3), 7, "f4")}
    with pytest.raises(E.DataLossError):
        shardwright.load(path, into=target)
    assert (target["w"] == 7).all()


def test_links_and_special_files_are_unsafe(path, data_file, tmp_path):
    data = data_file(path)
    data.rename(tmp_path / "elsewhere")
    data.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError) as caught:
        shardwright.load(path)
    assert "unsafe" in caught.value.details
    data.unlink()
    os.mkfifo(data)
    with fails(E.PermissionDeniedError, "special file") as caught:
        shardwright.load(path)
    assert caught.value.details["unsafe"] == "special file"


def test_no_permission(run_python):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        done = run_python("""
            import os, sys
            import numpy as np, shardwright
            if os.geteuid() == 0:
                os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
            try:
                shardwright.save({"w": np.ones(1)}, sys.argv[1])
            except PermissionError as e:
                print(e.status, e.details.get("errno"))
        """, os.path.join(folder, "p"))
    assert done.stdout.split()[:1] == ["PERMISSION_DENIED"] and str(errno.EACCES) in done.stdout, (done.stdout, done.stderr)


def test_a_file_size_limit_is_exhausted_and_the_old_one_stays(path, run_python):
    done = run_python("""
        import resource, signal, sys
        import numpy as np, shardwright
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            shardwright.save({"w": np.ones(1 << 20)}, sys.argv[1])
        except shardwright.ResourceExhaustedError as e:
            print(e.status, e.details.get("resource"))
    """, path)
    assert done.stdout.startswith("RESOURCE_EXHAUSTED"), (done.stdout, done.stderr)
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY or still_there(path)
    assert still_there(path)


def test_an_object_above_the_limit(path):
    with fails(E.ResourceExhaustedError, "67108864") as caught:
        shardwright.save({"blob": bytes((64 << 20) + 1)}, path)
    assert caught.value.details["resource"] and not isinstance(caught.value, MemoryError)


def test_a_checkpoint_that_was_replaced_while_open(path):
    with shardwright.open(path) as c:
        shardwright.save({"w": ONE["w"] + 1}, path)
        with fails(E.AbortedError) as caught:
            c["w"][:]
        assert isinstance(caught.value, RuntimeError) and caught.value.retryable


def test_overwrite_refuse_keeps_the_old_one(path):
    with pytest.raises(FileExistsError):
        shardwright.save({"w": np.zeros(1)}, path, overwrite="refuse")
    assert still_there(path)


def test_plans_that_are_damaged_or_of_something_else(path):
    planner = E.SavePlanner(ONE, path=path)
    plan = planner.local_plan()
    with pytest.raises(E.FailedPreconditionError):
        planner.execute()
    for damaged, error, text in (
            (plan[:-1], E.DataLossError, "length prefix"), (plan + b"\0", E.DataLossError, "length prefix"),
            (b"", E.InvalidArgumentError, "0 bytes"), (b"nonsense" * 20, E.InvalidArgumentError, "identifier 'nons'"),
            (plan[:20] + bytes([plan[20] ^ 255]) + plan[21:], E.DataLossError, "damaged")):
        with fails(error, text):
            E.validate_plan(damaged)
        assert any(text in finding for finding in E.plan_findings(damaged))
    with fails(E.DataLossError, "rank 0", "length prefix"):
        planner.global_plan([plan[:-1]])
    other = E.SavePlanner({"v": np.zeros(3)}, path=path)
    part = planner.global_plan([plan])[0]
    with pytest.raises(E.FailedPreconditionError):
        other.finish(part)
    with E.open(path) as c:
        load = E.LoadPlanner(c, {"w": np.zeros((2, 3), "f4")}).local_plan()
        with pytest.raises(E.FailedPreconditionError):
            E.LoadPlanner(c, {"w": np.zeros((2, 3), "f4"), "x": np.zeros(1)}, missing="report").execute(load)
    assert still_there(path)


def test_errors_carry_code_name_details_and_cause(tmp_path):
    with pytest.raises(E.NotFoundError) as caught:
        shardwright.open(tmp_path / "nothing")
    e = caught.value
    assert (e.code, e.status) == (5, "NOT_FOUND") and str(e) == e.message and e.details["file"]
    from shardwright import errors
    unknown = errors.from_native(99, "strange", [], 1, None)
    assert type(unknown) is E.UnknownError and unknown.code == 99 and unknown.retryable
    chained = errors.from_native(13, "outer", [("k", "v")], 0, e)
    assert chained.__cause__ is e and chained.details == {"k": "v"}
    assert isinstance(errors.from_native(8, "", [("resource", "memory")], 0, None), MemoryError)


def test_a_cause_is_printed_once():
    rows = shardwright.Layout((2,), [("shard", 0)])
    with pytest.raises(E.InvalidArgumentError, match="'w'.*shards dimension 0 of a tensor of 0 dimensions") as caught:
        shardwright.State({"w": shardwright.Shard(np.array(1.0), (), layout=rows)})
    assert "".join(traceback.format_exception(caught.value)).count("shards dimension 0") == 1
