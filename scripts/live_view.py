#!/usr/bin/env python3
"""Renders a command's final terminal screen as an SVG: the picture of the live view in the README.

    cargo build -p positronic-examples
    scripts/live_view.py docs/live-view.svg target/debug/positronic-examples run support

Needs tmux. The terminal has 96 columns; what has scrolled up is drawn, too. The run is kept nowhere.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from html import escape

COLUMNS, ROWS = 96, 40
CELL, LINE, MARGIN = 8.4, 19, 16
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "36": "#79c0ff"}


def capture(command, store):
    session = f"live-view-{os.getpid()}"
    tmux = ["tmux", "-L", session, "-u"]
    shell = f"{shlex.join(command)} 2>&1 >/dev/null; echo done >&2; sleep 60"
    environment = {key: value for key, value in os.environ.items() if not key.endswith(("_API_KEY", "_BASE_URL", "_MODEL"))}
    environment["POSITRONIC_STORE"] = store
    subprocess.run([*tmux, "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), shell], env=environment, check=True)
    try:
        for _ in range(100):
            time.sleep(0.1)
            pane = subprocess.run([*tmux, "capture-pane", "-e", "-p", "-S", "-"], capture_output=True, text=True, check=True)
            lines = pane.stdout.rstrip().split("\n")
            if lines[-1].strip() == "done":
                return lines[:-1]
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    sys.exit("the command did not end in time")


def draw(lines):
    width, height = COLUMNS * CELL + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">'
    yield "<title>The live view of a run</title>"
    yield f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#0d1117"/>'
    yield '<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="14" fill="#e6edf3">'
    state = []
    for row, line in enumerate(lines):
        y = MARGIN + (row + 0.75) * LINE
        column = 0
        for text, codes in re.findall(r"([^\x1b]+)|\x1b\[([\d;]*)m", line):
            if not text:
                for code in codes.split(";"):
                    if code in ("", "0"):
                        state = []
                    elif code == "39":
                        state = [other for other in state if other not in COLOURS]
                    else:
                        state.append(code)
                continue
            style = "".join(f' fill="{COLOURS[code]}"' for code in state if code in COLOURS)
            style += ' font-weight="bold"' if "1" in state else ""
            style += ' opacity="0.6"' if "2" in state else ""
            if text.strip():
                x = MARGIN + column * CELL
                length = f'{len(text) * CELL:.1f}'
                yield f'<text x="{x:.1f}" y="{y:.1f}" textLength="{length}" xml:space="preserve"{style}>{escape(text)}</text>'
            column += len(text)
    yield "</g></svg>"


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        picture = "\n".join(draw(capture(sys.argv[2:], os.path.join(folder, "runs.db"))))
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(picture + "\n")
