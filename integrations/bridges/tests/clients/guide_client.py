"""The Python code of a page of the guide as it stands there, against `serve --bridge` of the examples:
`guide_client.py PAGE BRIDGE TEXT…`, where the code prints the texts."""

import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from urllib.parse import urlsplit

page, bridge, *expected = sys.argv[1:]
guide = pathlib.Path(__file__).parents[4] / "docs/guide" / page
code = "\n".join(re.findall(r"^```python\n(.*?)^```$", guide.read_text(), re.S | re.M))
examples = os.environ["POSITRONIC_EXAMPLES"]

with tempfile.TemporaryDirectory() as folder:
    create = [examples, "token", "create", "web", "--user", "ann", "--scope", "read,run,decide"]
    os.environ["TOKEN"] = subprocess.run(
        create, cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ).stdout.strip()
    serve = [examples, "serve", "--listen", "127.0.0.1:0", "--bridge", bridge]
    server = subprocess.Popen(serve, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = urlsplit(server.stdout.readline())
        code = code.replace("http://127.0.0.1:4747", f"{url.scheme}://{url.netloc}")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(guide), "exec"), {"__name__": "guide"})
        for text in expected:
            assert text in printed.getvalue(), (text, printed.getvalue())
    finally:
        server.terminate()
        server.wait()
print(f"the Python code of {page} works as it stands there")
