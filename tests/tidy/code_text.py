# SPDX-License-Identifier: Apache-2.0
"""Blanks comments and string literals of C-like sources, so that the checks look at code only.

Every character that is blanked becomes a space; newlines stay, so that line numbers hold.
"""

from __future__ import annotations

import re

_C_TOKEN = re.compile(
    r"""//[^\n]*                                   # line comment
      | /\*.*?\*/                                  # block comment
      | R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)" # raw string of C++
      | \"\"\".*?\"\"\"                            # text block of Java
      | "(?:\\.|[^"\\\n])*"                        # string
      | (?<![0-9A-Za-z_])'(?:\\.[^'\n]*|[^'\\\n])' # character, not a digit separator, not a Rust lifetime
    """,
    re.S | re.X)
_BLANK = re.compile(r"[^\n]")


def without_comments_and_strings(text: str) -> str:
    """Code of a C, C++, Java or Rust source; strings keep their quotes."""

    def blank(match: re.Match[str]) -> str:
        token = match[0]
        if token.startswith("/"):
            return _BLANK.sub(" ", token)
        return token[0] + _BLANK.sub(" ", token[1:-1]) + token[-1]

    return _C_TOKEN.sub(blank, text)


def line_of(text: str, offset: int) -> int:
    """Number of the line, from 1, that holds the offset."""
    return text.count("\n", 0, offset) + 1
