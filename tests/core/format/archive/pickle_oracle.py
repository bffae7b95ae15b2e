# SPDX-License-Identifier: Apache-2.0
"""Pickles by CPython and what it makes of them: pickle_oracle.py FOLDER SEED SOUND DAMAGED, pickle_oracle.py --value FILE.

N.pickle is a pickle, of which those from SOUND on are damaged. N.tokens has a line "offset NAME" for each opcode that pickletools
lists before it gives up. N.value is the value in the form of pickle_description.h, or "refused". Nothing is imported: classes are
stand-ins that record how they are called.
"""

from __future__ import annotations

import collections
import io
import pickle
import pickletools
import random
import struct
import sys
from pathlib import Path

MAX_DEPTH = 64
MAX_VALUES = 20000  # a damaged pickle may hold itself more than once
described = 0


class Pairs:
    """A dict that keeps keys of any kind, and equal ones too."""

    def __init__(self, items=()):
        self.items = list(items)

    def __setitem__(self, key, value):
        self.items.append((key, value))


class Members:
    """A set that keeps members of any kind."""

    def __init__(self, kind, values=()):
        self.kind, self.values = kind, list(values)

    def add(self, value):
        self.values.append(value)


class Persistent:
    def __init__(self, target):
        self.target = target


class Made:
    """What a class or a function would have made."""

    path = ""

    def __new__(cls, *arguments, **keywords):
        made = object.__new__(cls)
        made.arguments, made.keywords, made.parts, made.items, made.states = arguments, keywords, [], [], []
        return made

    def __init__(self, *_, **__):
        pass

    def __setstate__(self, state):
        if self.states:
            raise pickle.UnpicklingError("built twice")
        self.states.append(state)

    def __setitem__(self, key, value):
        self.items.append((key, value))

    def append(self, value):
        self.parts.append(value)

    add = append


class Recorder(pickle._Unpickler):
    """The unpickler in Python, whose containers hold whatever a pickle puts in."""

    dispatch = dict(pickle._Unpickler.dispatch)

    def find_class(self, module, name):
        return type("Stand", (Made,), {"path": f"{module}.{name}"})

    def persistent_load(self, pid):
        return Persistent(pid)

    def load_empty_dictionary(self):
        self.append(Pairs())

    def load_dict(self):
        values = self.pop_mark()
        self.append(Pairs((values[i], values[i + 1]) for i in range(0, len(values), 2)))

    def load_empty_set(self):
        self.append(Members("set"))

    def load_frozenset(self):
        values = self.pop_mark()  # before append is looked up: it belongs to the stack of the mark
        self.append(Members("frozenset", values))

    dispatch[pickle.EMPTY_DICT[0]] = load_empty_dictionary
    dispatch[pickle.DICT[0]] = load_dict
    dispatch[pickle.EMPTY_SET[0]] = load_empty_set
    dispatch[pickle.FROZENSET[0]] = load_frozenset


def quoted(text: str) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    return '"' + "".join(chr(b) if 32 <= b <= 126 and b not in b'"\\' else f"\\x{b:02x}" for b in raw) + '"'


def integer(value: int) -> str:
    if -(2**63) <= value < 2**63:
        return str(value)
    size = 1
    while not -(1 << (8 * size - 1)) <= value < 1 << (8 * size - 1):
        size += 1
    return "long:" + value.to_bytes(size, "little", signed=True).hex()


def joined(values, depth: int) -> str:
    return ", ".join(describe(value, depth + 1) for value in values)


def pairs(items, depth: int) -> str:
    return ", ".join(f"{describe(k, depth + 1)}: {describe(v, depth + 1)}" for k, v in items)


def made(value: Made, depth: int) -> str:
    text = f"{value.path}({joined(value.arguments, depth)})"
    if value.keywords:
        text += "**{" + pairs(value.keywords.items(), depth) + "}"
    if value.parts:
        text += f"[{joined(value.parts, depth)}]"
    if value.items:
        text += "{" + pairs(value.items, depth) + "}"
    return text + "".join("|" + describe(state, depth + 1) for state in value.states)


def describe(value, depth: int = 0) -> str:
    global described
    described = described + 1 if depth > 0 else 0
    if described > MAX_VALUES:
        raise pickle.UnpicklingError("too large to be written out")
    if depth > MAX_DEPTH:
        return "..."
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, type):
        return f"<{value.path}>"
    forms = {
        int: integer,
        float: lambda v: f"real:{struct.pack('>d', v).hex()}",
        str: quoted,
        bytes: lambda v: "bytes:" + v.hex(),
        bytearray: lambda v: "bytearray:" + v.hex(),
        tuple: lambda v: f"({joined(v, depth)})",
        list: lambda v: f"[{joined(v, depth)}]",
        Pairs: lambda v: "{" + pairs(v.items, depth) + "}",
        Members: lambda v: v.kind + "{" + ", ".join(sorted(describe(each, depth + 1) for each in v.values)) + "}",
        Persistent: lambda v: "persistent:" + describe(v.target, depth + 1),
    }
    return forms[type(value)](value) if type(value) in forms else made(value, depth)


def value_of(data: bytes) -> str:
    try:
        return describe(Recorder(io.BytesIO(data)).load())
    except Exception:  # it raises whatever its parts raise
        return "refused"


def tokens_of(data: bytes) -> str:
    lines = []
    try:
        lines.extend(f"{offset} {opcode.name}\n" for opcode, _, offset in pickletools.genops(data))
    except Exception:
        pass
    return "".join(lines)


class Thing:
    """An object of the program that pickles: with a state, and in other forms as its number says."""

    def __init__(self, number, state):
        self.number, self.state = number, state

    def __reduce_ex__(self, protocol):
        forms = [
            (Thing, (self.number, self.state)),
            (Thing, (), self.state),
            (Thing, (1,), {"state": self.state}, iter([1, self.number])),
            (collections.OrderedDict, (), None, None, iter([("a", self.state), (self.number, 2)])),
        ]
        return forms[self.number % len(forms)] if protocol < 2 or self.number % 5 else object.__reduce_ex__(self, protocol)


def random_value(draw: random.Random, protocol: int, depth: int, shared: list):
    kinds = ["none", "bool", "int", "wide", "real", "text", "tuple", "list", "dict", "thing", "shared", "global"]
    kinds += ["bytes"] * (protocol >= 3) + ["set", "frozenset"] * (protocol >= 4) + ["bytearray"] * (protocol >= 5)
    kind = draw.choice(kinds if depth < 4 else kinds[:6])
    if kind == "shared" and shared:
        return draw.choice(shared)
    few = range(draw.choice([0, 1, 2, 3, 5]))
    make = {
        "none": lambda: None,
        "bool": lambda: draw.random() < 0.5,
        "int": lambda: draw.choice([0, 1, -1, 255, 256, 65535, 65536, 2**31 - 1, 2**31, -(2**31), draw.getrandbits(40)]),
        "wide": lambda: draw.choice([-1, 1]) * draw.getrandbits(draw.choice([62, 63, 64, 65, 200, 2000])),
        "real": lambda: draw.choice([0.0, -0.0, 1.5, float("inf"), float("nan"), draw.random() * 1e300]),
        "text": lambda: draw.choice(["", "a", "\n\\'\"", "\u00e9\u20ac\U0001f600", "\ud800", "x" * 300, str(draw.random())]),
        "bytes": lambda: draw.randbytes(draw.choice([0, 3, 300])),
        "bytearray": lambda: bytearray(draw.randbytes(3)),
        "tuple": lambda: tuple(random_value(draw, protocol, depth + 1, shared) for _ in few),
        "list": lambda: [random_value(draw, protocol, depth + 1, shared) for _ in few],
        "dict": lambda: {draw.choice(["k", "l", 7, None, (1, 2)]): random_value(draw, protocol, depth + 1, shared) for _ in few},
        "set": lambda: {draw.getrandbits(8) for _ in few},
        "frozenset": lambda: frozenset({draw.getrandbits(8) for _ in few}),
        "thing": lambda: Thing(draw.getrandbits(8), random_value(draw, protocol, depth + 1, shared)),
        "global": lambda: draw.choice([Thing, collections.OrderedDict, len]),
    }
    value = make.get(kind, make["none"])()
    if kind in ("tuple", "list", "dict", "thing", "bytes"):
        shared.append(value)
    return value


def damage(draw: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 4])):
        at = draw.randrange(len(changed))
        action = draw.randrange(4)
        if action == 0:
            changed[at] = draw.getrandbits(8)
        elif action == 1:
            changed[at] ^= 1 << draw.randrange(8)
        elif action == 2:
            del changed[at : at + draw.choice([1, 1, 5])]
        else:
            changed[at:at] = draw.choice([b"N", b"(", b"t", b"0", b"2", b"\x85", b"]", b"}", b"h\0", b"R", b"b", b"."])
        if not changed:
            return b"N"
    return bytes(changed)


def main() -> None:
    if sys.argv[1] == "--value":
        sys.stdout.write(value_of(Path(sys.argv[2]).read_bytes()))
        return
    folder, (seed, sound, damaged) = Path(sys.argv[1]), (int(number) for number in sys.argv[2:5])
    draw = random.Random(seed)
    for number in range(sound + damaged):
        protocol = draw.randrange(6)
        data = pickle.dumps(random_value(draw, protocol, 0, []), protocol)
        if number >= sound:
            data = damage(draw, data)
        (folder / f"{number}.pickle").write_bytes(data)
        (folder / f"{number}.tokens").write_text(tokens_of(data))
        (folder / f"{number}.value").write_text(value_of(data))


main()
