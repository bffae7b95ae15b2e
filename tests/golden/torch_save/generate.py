# SPDX-License-Identifier: Apache-2.0
"""Writes the cases made_* of this folder with the torch that is installed: generate.py (in the folder).

Each has the file and expected.json: tensors as they were saved, with the SHA-256 of their row-major bytes; objects by their
content type and text; and the names of what is listed and cannot be given.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
from pathlib import Path
from typing import Any

import torch

FOLDER = Path(__file__).parent


def facts(tensor: torch.Tensor) -> dict[str, Any]:
    plain = tensor.detach().resolve_conj().contiguous().clone()
    raw = bytes(plain.untyped_storage())[:plain.numel() * plain.element_size()]
    return {"dtype": str(plain.dtype).removeprefix("torch."), "shape": list(plain.shape), "sha256": hashlib.sha256(raw).hexdigest()}


def write(name: str, value: Any, tensors: dict[str, torch.Tensor], objects: dict[str, list[str]], **options: Any) -> None:
    folder = FOLDER / name
    folder.mkdir(exist_ok=True)
    torch.save(value, folder / "value.pt", **options)
    (folder / "expected.json").write_text(json.dumps({
        "format": "torch-save", "path": "value.pt", "version": torch.__version__.split("+")[0],
        "tensors": {key: facts(tensor) for key, tensor in tensors.items()}, "objects": objects}, indent=1) + "\n")


def nested() -> tuple[dict[str, Any], dict[str, torch.Tensor], dict[str, list[str]]]:
    """A value with views of one storage, and what its entries are."""
    whole = torch.arange(210, dtype=torch.float32).reshape(6, 5, 7)
    image = torch.randn(4, 3, 5, 5).to(memory_format=torch.channels_last)
    state = collections.OrderedDict(weight=whole[:, 1:3], bias=torch.randn(3, dtype=torch.float64))
    value = {"model": state, "views": [whole, whole.permute(2, 0, 1), whole[1:5:2, :, ::3], whole[2, 3, 4], image],
             "expanded": torch.tensor([[1.5], [2.5]]).expand(2, 1000), "empty": torch.zeros(3, 0),
             "steps": {0: {"step": torch.tensor(7)}, -1: (1, 2.5, "t", None, True)}, "nothing": b"",
             "some": collections.defaultdict(list, {"k": [1]}), "set": {3}, "nan": float("nan"), "huge": -2**70,
             "odd keys": {("a", 1): 2}, "device": torch.device("cpu"), "text": "\u65e5\n"}
    tensors = {"model.weight": whole[:, 1:3], "model.bias": state["bias"], "expanded": value["expanded"], "empty": value["empty"],
               "steps.0.step": torch.tensor(7)} | {f"views.{i}": tensor for i, tensor in enumerate(value["views"])}
    text, raw, pickled = "application/json", "application/octet-stream", "application/python-pickle"
    objects = {"steps.-1.0": [text, "1"], "steps.-1.1": [text, "2.5"], "steps.-1.2": [text, '"t"'], "steps.-1.3": [text, "null"],
               "steps.-1.4": [text, "true"], "nothing": [raw, ""], "some.k.0": [text, "1"], "nan": [text, '{"$float":"nan"}'],
               "huge": [text, str(-2**70)], "odd keys": [text, '{"$map":[[{"$tuple":["a",1]},2]]}'],
               "device": [text, '"cpu"'], "text": [text, '"\u65e5\\n"'], "set": [pickled, ""]}
    return value, tensors, objects


def refused() -> tuple[dict[str, Any], dict[str, torch.Tensor], dict[str, list[str]]]:
    """Tensors that are recognised and not given, beside one that is."""
    plain = torch.randn(2, 2)
    opaque = {"sparse": "_rebuild_sparse_tensor", "rows": "_rebuild_sparse_tensor", "quantised": "_rebuild_qtensor",
              "meta": "_rebuild_meta_tensor_no_storage"}
    value = {"plain": plain, "sparse": torch.eye(2).to_sparse(), "rows": torch.eye(2).to_sparse_csr(),
             "quantised": torch.quantize_per_tensor(plain, 0.1, 0, torch.qint8), "meta": torch.zeros(2, device="meta"),
             "conjugated": torch.tensor([1 + 2j]).conj(), "parameter": torch.nn.Parameter(torch.eye(2).to_sparse()),
             "arguments": argparse.Namespace(lr=0.5), "holder": argparse.Namespace(tensor=plain)}
    objects = {name: ["application/x-opaque+json", f'{{"class":"torch._utils.{form}"}}'] for name, form in opaque.items()}
    objects["conjugated"] = ["application/x-opaque+json", '{"class":"torch._utils._rebuild_tensor_v2"}']
    objects["parameter"] = ["application/x-opaque+json", '{"class":"torch._utils._rebuild_parameter"}']
    objects["holder"] = ["application/x-opaque+json", '{"class":"argparse.Namespace"}']
    objects["arguments"] = ["application/python-pickle", ""]
    return value, {"plain": plain}, objects


def main() -> None:
    torch.manual_seed(15)
    value, tensors, objects = nested()
    write("made_nested", value, tensors, objects)
    write("made_protocol4", value, tensors, objects, pickle_protocol=4)
    write("made_old", value, tensors, objects, _use_new_zipfile_serialization=False)
    write("made_refused", *refused())
    write("made_bare", tensors["views.1"], {"": tensors["views.1"]}, {})


if __name__ == "__main__":
    main()
