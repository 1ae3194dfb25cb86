"""Brains as tools with the official client of MCP for Python: the code of docs/guide/mcp-server.md with a brain that asks, and the end of a
session, which the client logs a warning about if the server answers it with another status than 200 or 204."""

import asyncio
import contextlib
import io
import json
import logging
import os
import pathlib
import re
import subprocess

import httpx2
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

GUIDE = pathlib.Path(__file__).parents[4] / "docs/guide/mcp-server.md"
CODE = re.search(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.S | re.M)[1]

warnings = []
handler = logging.Handler(logging.WARNING)
handler.emit = lambda record: warnings.append(record.getMessage())
logging.getLogger().addHandler(handler)


async def session(address, token):
    """Begins a session of the revision 2025-11-25, and ends it."""
    http = httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60)
    async with streamable_http_client(f"{address}/api/v1/mcp", http_client=http) as streams:
        async with ClientSession(*streams[:2]) as client:
            await client.initialize()
            return [tool.name for tool in (await client.list_tools()).tools]


server = subprocess.Popen([os.environ["POSITRONIC_CLIENTS"]], stdout=subprocess.PIPE, text=True)
try:
    started = json.loads(server.stdout.readline())
    code = CODE.replace("http://127.0.0.1:4747", started["address"]).replace('"Kitchen"', '"Chat"').replace("Plan dinner.", "refund")
    printed = io.StringIO()
    os.environ["TOKEN"] = started["ann"]
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(GUIDE), "exec"), {"__name__": "guide"})
    said = printed.getvalue()
    assert "May `refund` run with {\"amount\":100}?" in said and "Done." in said, said
    assert "Chat" in asyncio.run(session(started["address"], started["ann"]))
    assert not warnings, warnings
    print("mcp for Python has found nothing")
finally:
    server.kill()
