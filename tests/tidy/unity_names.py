# SPDX-License-Identifier: Apache-2.0
"""Names of one file must not clash with those of the next: core/, capi/ and cli/ are compiled several sources at a time
(SHW_UNITY), where file-local names of one namespace meet. Which sources meet changes with every new file, so no two of a
target may have a file-local function of one name and parameters, or a type or constant of one name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from code_text import line_of, without_comments_and_strings
from source_tree import Finding, SourceTree

_NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.M)
_LOCAL = re.compile(r"^namespace \{$(.*?)^\}", re.M | re.S)
_NOT_A_FUNCTION = "using|struct|class|enum|constexpr|const|constinit|#|namespace|return|template"
_FUNCTION = re.compile(rf"^(?!\s|(?:{_NOT_A_FUNCTION})\b)[\w:<>&*, \[\]]*?[ &*](\w+)\(([^;{{}}]*?)\)[^;{{}}()]*\{{", re.M)
_CONSTANT_FUNCTION = re.compile(r"^constexpr [\w:<>&*, ]*?[ &*](\w+)\(([^;{}]*?)\)[^;{}()]*\{", re.M)
_TYPE = re.compile(r"^(?:struct|class|enum|enum class|using) (\w+)[^;(]*(?:\{|=)", re.M)
_CONSTANT = re.compile(r"^(?:constexpr|const|constinit|thread_local) [^=({;]*?(\w+)(?:\[\w*\])?\s*[={;]", re.M)
_NAME_OF_A_PARAMETER = re.compile(r"(?<=[\s&*>])\w+\s*(?:=.*)?$", re.S)
# An alias of one meaning may be said again.
_ALIAS = re.compile(r"^using (\w+) = ([^;]+);", re.M)


def target_of(path: str) -> str:
    """The folder whose sources are compiled together."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "core" else parts[0]


def types_of(parameters: str) -> tuple[str, ...]:
    """Parameter types without names and defaults; commas inside <> separate nothing."""
    split = re.split(r",(?![^<]*>)", parameters)
    return tuple(" ".join(_NAME_OF_A_PARAMETER.sub("", one).split()) for one in split)


def local_names(text: str) -> Iterator[tuple[tuple[str, ...], str, int]]:
    """(name, with the parameters of a function; what an alias means; offset) of each name in an unnamed namespace."""
    for block in _LOCAL.finditer(text):
        body, begin = block[1], block.start(1)
        aliases = {match[1]: match[2] for match in _ALIAS.finditer(body)}
        for pattern in (_FUNCTION, _CONSTANT_FUNCTION):
            for match in pattern.finditer(body):
                yield (match[1], *types_of(match[2])), "", begin + match.start(1)
        for pattern in (_TYPE, _CONSTANT):
            for match in pattern.finditer(body):
                yield (match[1],), aliases.get(match[1], ""), begin + match.start(1)


def check(tree: SourceTree) -> list[Finding]:
    findings = []
    first: dict[str, dict[tuple[str, ...], tuple[str, str]]] = defaultdict(dict)
    for path in tree.paths(".cc", under=("core", "capi", "cli")):
        text = without_comments_and_strings(tree.text(path))
        names = _NAMESPACE.search(text)
        known = first[f"{target_of(path)}:{names[1] if names else ''}"]
        for name, meaning, offset in local_names(text):
            other, first_meaning = known.setdefault(name, (path, meaning))
            if other != path and not (meaning and meaning == first_meaning):
                findings.append(Finding(path, line_of(text, offset), "unity-names",
                                        f"{name[0]} is also a file-local name of {other}; both may be compiled as one"))
    return findings
