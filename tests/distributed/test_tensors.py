# SPDX-License-Identifier: Apache-2.0
"""torch tensors in one process: what a tensor means where its memory alone does not say it."""
import pytest
import shardwright

torch = pytest.importorskip("torch")


def lazy_views():
    line = torch.tensor([1 + 2j, 3 + 4j])
    return {"negated, contiguous": torch._neg_view(torch.ones(4)), "negated scalar": line.conj().imag[0],
            "negated, strided": line.conj().imag, "negated integers": torch._neg_view(torch.arange(3)),
            "conjugated": line.conj(), "negated complex": torch._neg_view(line),
            "negated parameter": torch.nn.Parameter(torch._neg_view(torch.ones(4)))}


@pytest.mark.parametrize("name", lazy_views())
def test_lazily_negated_and_conjugated_views_are_refused_by_name(name, tmp_path):
    value = lazy_views()[name]
    shardwright.save({name: value.resolve_neg().resolve_conj()}, tmp_path / "p")
    for refused in (lambda: shardwright.save({name: value}, tmp_path / "q"),
                    lambda: shardwright.load(tmp_path / "p", into={name: value})):
        with pytest.raises(shardwright.InvalidArgumentError, match=name) as caught:
            refused()
        assert "resolve_" in str(caught.value)
    assert not (tmp_path / "q").exists()
    assert torch.equal(torch.from_dlpack(shardwright.load(tmp_path / "p")[name]), value.resolve_neg().resolve_conj())


def test_more_types_of_tensors_than_are_remembered(tmp_path):
    kinds = [type(f"Kind{i}", (torch.Tensor,), {}) for i in range(200)]
    state = {f"t{i}": torch.ones(2).as_subclass(kind) for i, kind in enumerate(kinds)}
    shardwright.save(state, tmp_path / "p")
    with pytest.raises(shardwright.InvalidArgumentError, match="t199"):
        shardwright.save(state | {"t199": torch._neg_view(torch.ones(2)).as_subclass(kinds[-1])}, tmp_path / "p")


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
def test_a_load_refuses_targets_whose_elements_share_memory(shape, tmp_path):
    shared = {(4,): torch.zeros(1).expand(4), (2, 2): torch.zeros(3).as_strided((2, 2), (1, 1))}[shape]
    stored = torch.arange(4.0).reshape(shape)
    shardwright.save({"fine": stored, "shared": stored}, tmp_path / "p")
    target = {"fine": torch.zeros(shape), "shared": shared}
    with pytest.raises(shardwright.InvalidArgumentError, match="shared") as caught:
        shardwright.load(tmp_path / "p", into=target)
    assert caught.value.details["tensor"] == "shared" and not shared.any() and not target["fine"].any()
    apart = {"fine": torch.zeros(shape), "shared": torch.zeros(2 * stored.numel())[::2].reshape(shape)}
    shardwright.load(tmp_path / "p", into=apart)
    assert torch.equal(apart["shared"], stored)


class Clearing(torch.Tensor):
    """Answers a question about itself by Python code that empties the dict which it comes from."""

    tree: dict

    def is_neg(self):
        self.tree.clear()
        return False


def test_a_tensor_whose_methods_change_the_state_is_still_taken_whole():
    tree = {"name " * 20 + "x": torch.ones(2).as_subclass(Clearing), "b": torch.ones(2)}
    name = next(iter(tree))
    Clearing.tree = tree
    assert shardwright.State.from_dict(tree).names() == [name]
