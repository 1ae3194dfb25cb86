"""Prints one of the two commands of the README's quick start: the first, or the second.

The section has exactly two fenced blocks with one command each: the first shows an example, the second runs all tests.
Whatever reads differently is an error, so that the README and CI cannot come apart.
"""

import pathlib
import re
import sys

SECTION = "## Quick start"


def commands(text):
    lines = iter(text.splitlines())
    if not any(line.rstrip() == SECTION for line in lines):
        sys.exit(f"README.md has no section `{SECTION}`")
    blocks = []
    fence = None
    for line in lines:
        stripped = line.strip()
        opening = re.match(r"(`{3,}|~{3,})", stripped)
        if fence is not None:
            if opening and stripped == opening[1] and stripped.startswith(fence):
                fence = None
            else:
                blocks[-1].append(line)
        elif opening:
            fence = opening[1]
            blocks.append([])
        elif re.match(r"#{1,2} ", line):
            break
    if fence is not None:
        sys.exit(f"a fenced block under `{SECTION}` has no end")
    if len(blocks) != 2:
        sys.exit(f"`{SECTION}` has {len(blocks)} fenced blocks; it has to have two, of one command each")
    found = []
    for block in blocks:
        text = "\n".join(block).replace("\\\n", " ")
        wanted = [line.strip().removeprefix("$ ") for line in text.splitlines()]
        wanted = [line for line in wanted if line and not line.startswith("#")]
        if len(wanted) != 1:
            sys.exit(f"a fenced block under `{SECTION}` has {len(wanted)} commands; it has to have one")
        found += wanted
    if not re.match(r"cargo test\b", found[1]):
        sys.exit(f"the second command under `{SECTION}` has to be the tests' `cargo test`, not `{found[1]}`")
    return found


which = {"first": 0, "second": 1}[sys.argv[1]]
print(commands(pathlib.Path("README.md").read_text(encoding="utf-8"))[which])
