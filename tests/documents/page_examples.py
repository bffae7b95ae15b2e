# SPDX-License-Identifier: Apache-2.0
"""Finds the examples of a Markdown page and runs each as a reader of the page would.

Blocks are fences with the language sh, python, c, java or rust. On README.md all of them run, except those below a line
`<!-- not run: reason -->`; on other pages those below `<!-- run -->`. Below `<!-- file: NAME -->` a block of any language is
written to that file instead. The blocks of one page run in their order and in one folder, so that a later one finds what
an earlier one wrote. A block in a language other than sh is a whole program. PREFIX is an installed tree; CLONE in a
file stands for this clone.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

LANGUAGES = ("sh", "python", "c", "java", "rust")
TIMEOUT_SECONDS = 600
# The two commands of the README build and test the whole tree: they are what runs this.
MAIN_COMMANDS = re.compile(r"^\s*make (demo|test)\b")
_BLOCK = re.compile(r"^(?P<mark><!--[^\n]*-->\n\s*)?```(?P<language>[a-z]+)\n(?P<text>.*?)^```\s*$", re.S | re.M)


@dataclass(frozen=True)
class Example:
    """One block of a page; `line` is that of its first line of code, `file` the name of one that is written, not run."""

    page: str
    line: int
    language: str
    text: str
    file: str = ""


def examples_of(page: str, text: str) -> list[Example]:
    """The blocks of a page that are to run."""
    found = []
    for match in _BLOCK.finditer(text):
        mark = (match["mark"] or "").strip()
        line = text.count("\n", 0, match.start("text")) + 1
        file = re.match(r"<!--\s*file:\s*([\w./-]+)\s*-->", mark)
        if file:
            found.append(Example(page, line, match["language"], match["text"], file[1]))
            continue
        if match["language"] not in LANGUAGES:
            continue
        if page == "README.md":
            if re.match(r"<!--\s*not run:\s*\S", mark):
                continue
        elif not re.match(r"<!--\s*run\s*-->", mark):
            continue
        found.append(Example(page, line, match["language"], match["text"]))
    return found


class Workplace:
    """A folder in which examples run, with the tools of the build tree in reach."""

    def __init__(self, folder: Path, source: Path, build: Path, prefix: Path | None = None) -> None:
        """`prefix`: where an installed tree lies, or is put when an example asks for it."""
        self.folder = folder
        self.prefix = prefix
        self.source = source
        self.build = build
        for name in ("build", "include", "examples", "bindings"):
            target = build if name == "build" else source / name
            if target.exists() and not (folder / name).exists():
                (folder / name).symlink_to(target)
        self._make_maven_repository()
        self.environment = dict(os.environ)
        self.environment["PATH"] = os.pathsep.join(
            [str(build / "bin"), str(source / ".venv" / "bin"), os.environ.get("PATH", "")])
        self.environment["PYTHONPATH"] = str(build / "python")
        self.environment["LD_LIBRARY_PATH"] = str(build / "lib")
        self.environment["SHW_LIBRARY_PATH"] = str(build / "lib")
        self.environment["SHARDWRIGHT_DIR"] = str(build)

    def _make_maven_repository(self) -> None:
        """What examples install lands in this folder; what the home has downloaded already is found through links."""
        downloaded = Path.home() / ".m2" / "repository"
        own = self.folder / "m2" / "io" / "shardwright"
        own.mkdir(parents=True, exist_ok=True)
        for inner in (own.parent, own.parent.parent):
            below = downloaded / inner.relative_to(self.folder / "m2")
            for entry in sorted(below.iterdir()) if below.exists() else []:
                if not (inner / entry.name).exists():
                    (inner / entry.name).symlink_to(entry)
        (self.folder / ".mvn").mkdir(exist_ok=True)
        # Relative, because some versions split this file at blanks: Maven is called in this folder.
        (self.folder / ".mvn" / "maven.config").write_text("-Dmaven.repo.local=m2\n")

    def run(self, example: Example) -> subprocess.CompletedProcess[str]:
        """Runs one example; status and output are the caller's to judge."""
        if example.file:
            return self._write(example)
        if "$PREFIX" in example.text:
            done = self._install()
            if done.returncode:
                return done
        return {"sh": self._sh, "python": self._python, "c": self._c, "java": self._java,
                "rust": self._rust}[example.language](example)

    def _call(self, *command: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(word) for word in command], cwd=folder or self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=TIMEOUT_SECONDS, check=False)

    def _write(self, example: Example) -> subprocess.CompletedProcess[str]:
        path = self.folder / example.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(example.text.replace("CLONE/", f"{self.source}/"))
        return subprocess.CompletedProcess([], 0, "")

    def _install(self) -> subprocess.CompletedProcess[str]:
        assert self.prefix is not None
        self.environment["PREFIX"] = str(self.prefix)
        # What a stranger has: the tools, and nothing of the build tree but what was installed.
        for name in ("LD_LIBRARY_PATH", "SHW_LIBRARY_PATH", "SHARDWRIGHT_DIR", "PYTHONPATH"):
            self.environment.pop(name, None)
        if (self.prefix / "bin").exists():
            return subprocess.CompletedProcess([], 0, "")
        return self._call("cmake", "--install", self.build, "--prefix", self.prefix)

    def _sh(self, example: Example) -> subprocess.CompletedProcess[str]:
        lines = [line.removeprefix("$ ") for line in example.text.splitlines() if not MAIN_COMMANDS.match(line)]
        # `make` means the Makefile of the clone, wherever the reader's folder is.
        script = f'make() {{ command make -C "{self.source}" "$@"; }}\nset -e\n' + "\n".join(lines) + "\n"
        return self._call("bash", "-c", script)

    def _python(self, example: Example) -> subprocess.CompletedProcess[str]:
        program = self.folder / f"line_{example.line}.py"
        program.write_text(example.text)
        return self._call(self.source / ".venv" / "bin" / "python", program)

    def _c(self, example: Example) -> subprocess.CompletedProcess[str]:
        program = self.folder / f"line_{example.line}.c"
        program.write_text(example.text)
        binary = program.with_suffix("")
        compiled = self._call("cc", "-std=c11", "-Wall", "-Werror", f"-I{self.source / 'include'}", program, "-o", binary,
                              f"-L{self.build / 'lib'}", "-lshardwright")
        return compiled if compiled.returncode else self._call(binary)

    def _java(self, example: Example) -> subprocess.CompletedProcess[str]:
        name = re.search(r"\bclass\s+(\w+)", example.text)
        program = self.folder / f"{name[1] if name else 'Example'}.java"
        program.write_text(example.text)
        jars = ":".join(str(jar) for jar in sorted((self.build / "java").glob("*.jar")))
        return self._call("java", "-cp", jars, f"-Dshardwright.library.path={self.build / 'lib'}", program)

    def _rust(self, example: Example) -> subprocess.CompletedProcess[str]:
        project = self.folder / f"line_{example.line}"
        (project / "src").mkdir(parents=True)
        (project / "src" / "main.rs").write_text(example.text)
        crate = self.source / "bindings" / "rust" / "shardwright"
        (project / "Cargo.toml").write_text(
            '[package]\nname = "example"\nversion = "0.0.0"\nedition = "2024"\n'
            f'[dependencies]\nshardwright = {{ path = "{crate}" }}\n[workspace]\n')
        self.environment["CARGO_TARGET_DIR"] = str(self.build / "rust" / "examples")
        return self._call("cargo", "run", "--quiet", "--offline", folder=project)
