# SPDX-License-Identifier: Apache-2.0
"""Objects that give and take their state themselves: state_dict and load_state_dict."""
import numpy as np
import pytest
import shardwright


class Part:
    """Gives its state, and counts how often it takes one."""

    def __init__(self, state):
        self.state, self.taken = state, []

    def state_dict(self):
        return self.state

    def load_state_dict(self, state_dict):
        self.taken.append(state_dict)
        self.state = state_dict


class Copies(Part):
    """Gives copies, so that only what it takes reaches it."""

    def state_dict(self):
        return {key: value.copy() if hasattr(value, "copy") else value for key, value in self.state.items()}


def trainer(factor, step):
    """A state with such objects at the top, below a list, and without tensors."""
    return {"model": Copies({"w": np.full(4, factor), "b": np.full(2, factor)}), "parts": [Part({"m": np.full(3, factor)})],
            "sampler": Part({"position": step}), "counter": Part(step), "plain": step}


def test_objects_are_saved_as_their_states(tmp_path):
    shardwright.save(trainer(2.0, 7), tmp_path / "p")
    found = shardwright.load(tmp_path / "p")
    assert found["model"]["w"].numpy().tolist() == [2.0] * 4 and found["parts"][0]["m"].numpy().tolist() == [2.0] * 3
    assert (found["sampler"], found["counter"], found["plain"]) == ({"position": 7}, 7, 7)


@pytest.mark.parametrize("job", [False, True])
def test_a_load_gives_objects_what_was_stored(tmp_path, job):
    shardwright.save(trainer(2.0, 7), tmp_path / "p")
    target = trainer(0.0, 0)
    if job:
        shardwright.load_async(tmp_path / "p", target).result(30)
    else:
        shardwright.load(tmp_path / "p", target)
    model, part = target["model"], target["parts"][0]
    assert model.state["w"].tolist() == [2.0] * 4 and model.state["b"].tolist() == [2.0] * 2
    assert part.state["m"].tolist() == [2.0] * 3
    assert (target["sampler"].state, target["counter"].state, target["plain"]) == ({"position": 7}, 7, 7)
    assert [len(each.taken) for each in (model, part, target["sampler"], target["counter"])] == [1, 1, 1, 1]


def test_an_object_can_be_the_whole_state(tmp_path):
    shardwright.save(Copies({"w": np.ones(4), "step": 3}), tmp_path / "p")
    target = Copies({"w": np.zeros(4), "step": 0})
    assert shardwright.load(tmp_path / "p", target).missing == []
    assert target.state["w"].tolist() == [1.0] * 4 and target.state["step"] == 3


def test_objects_inside_take_theirs_before_those_around_them(tmp_path):
    order = []

    class Noted(Part):
        def load_state_dict(self, state_dict):
            order.append(sorted(state_dict))

    def nested():
        return Noted({"outer": 1, "inner": Noted({"w": np.ones(2)})})

    shardwright.save(nested(), tmp_path / "p")
    shardwright.load(tmp_path / "p", nested())
    assert order == [["w"], ["inner", "outer"]]


def test_a_load_that_fails_gives_objects_nothing(tmp_path):
    shardwright.save({"model": Part({"w": np.ones(4)})}, tmp_path / "p")
    target = {"model": Part({"w": np.zeros(4), "more": np.zeros(1)})}
    with pytest.raises(KeyError, match=r"model\.more"):
        shardwright.load(tmp_path / "p", target)
    assert target["model"].taken == []


def test_what_an_object_raises_comes_out_and_leaves_the_checkpoint(tmp_path):
    class Broken(Part):
        def state_dict(self):
            raise ArithmeticError("mine")

    shardwright.save({"w": np.ones(4)}, tmp_path / "p")
    with pytest.raises(ArithmeticError, match="mine"):
        shardwright.save({"w": np.zeros(4), "model": Broken({})}, tmp_path / "p")
    assert shardwright.load(tmp_path / "p")["w"].numpy().tolist() == [1.0] * 4


def test_states_that_cannot_be_saved_are_named_below_their_object(tmp_path):
    with pytest.raises(shardwright.InvalidArgumentError, match=r"model\.odd"):
        shardwright.save({"model": Part({"odd": {1, 2}})}, tmp_path / "p")
    with pytest.raises(shardwright.InvalidArgumentError, match="mapping.*list"):
        shardwright.save(Part([np.ones(1)]), tmp_path / "p")
    loop = Part(None)
    loop.state = loop
    with pytest.raises(shardwright.InvalidArgumentError, match="holds itself"):
        shardwright.save({"loop": loop}, tmp_path / "p")
    with pytest.raises(shardwright.InvalidArgumentError, match=r"w is a builtins\.type"):
        shardwright.save({"w": Part}, tmp_path / "p")  # a class has both methods and no state


def test_tensors_are_brought_back_before_objects_take_their_states(tmp_path):
    """As adapters do that load into memory of their own."""
    shardwright.save({"model": Part({"w": np.ones(4)})}, tmp_path / "p")
    device, host = np.zeros(4), np.zeros(4)

    class OnDevice:
        def state_dict(self):
            return {"w": handle}

        def load_state_dict(self, state_dict):
            self.found = device.tolist()

    handle, model = object(), OnDevice()  # the first stands for a tensor on the device
    state = shardwright.State({"model": model}, writable=True, convert=lambda name, value: host if value is handle else value,
                              filled=lambda missing: np.copyto(device, host))
    shardwright.load(tmp_path / "p", state)
    assert model.found == [1.0] * 4
