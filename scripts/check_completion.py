#!/usr/bin/env python3
"""Checks the completions of rust-analyzer inside `brain!` and `#[tool]`.

It writes a small crate that uses the macros with unfinished code, opens it in rust-analyzer as an editor would, asks for
completion at the marked places, for what a few words mean and for errors where there are none, and says which expected
answers came.

    scripts/check_completion.py
    scripts/check_completion.py --rust-analyzer path/to/rust-analyzer --sysroot-src path/to/library

rust-analyzer and the standard library's source come with `rustup component add rust-analyzer rust-src`; the second option
is for a source that lies elsewhere. It exits with 1 when an expected answer is missing.
"""

import argparse
import json
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import unquote, urlparse

ROOT = pathlib.Path(__file__).resolve().parent.parent

MANIFEST = """
[package]
name = "completion-check"
version = "0.0.0"
edition = "2024"

[dependencies]
positronic-core = {{ path = "{core}" }}
positronic-macros = {{ path = "{macros}" }}
schemars = "1"
serde = {{ version = "1", features = ["derive"] }}

[workspace]
"""

# Each case is a file with the cursor at `$0`, the request, and the expected answers.
PRELUDE = """
use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ticket { pub customer: String, pub resolved: bool }
"""
TICKET = '.step("Open", async |_| Ok(Ticket { customer: String::new(), resolved: false }))'
CASES = {
    "plain chain, step: `cx.`": (
        'pub fn a() -> Brain<(), Ticket, ()> { brain("A") %s .step("B", async |cx| { cx.$0 }) }' % TICKET,
        ["state", "options", "services"],
    ),
    "brain!, step: `cx.`": (
        'pub fn a() -> Brain<(), Ticket, ()> { positronic_macros::brain! { "A" %s .step("B", async |cx| { cx.$0 }) } }'
        % TICKET,
        ["state", "options", "services"],
    ),
    "brain!, step: `cx.state.`": (
        'pub fn a() -> Brain<(), Ticket, ()> { positronic_macros::brain! { "A" %s .step("B", async |cx| { cx.state.$0 }) } }'
        % TICKET,
        ["customer", "resolved"],
    ),
    "brain!, loop: `cx.`": (
        'pub fn a() -> Brain<(), Ticket, ()> { positronic_macros::brain! { "A" %s .loop("B", |cx| cx.$0) } }' % TICKET,
        ["state", "system"],
    ),
    "brain!, loop: `cx.state.`": (
        'pub fn a() -> Brain<(), Ticket, ()> { positronic_macros::brain! { "A" %s .loop("B", |cx| cx.system(cx.state.$0)) } }'
        % TICKET,
        ["customer", "resolved"],
    ),
    "brain!, loop, tool: `t.`": (
        'pub fn a() -> Brain<(), Ticket, ()> { positronic_macros::brain! { "A" %s .loop("B", |cx| cx.system("x").tool("y", |t| t.$0)) } }'
        % TICKET,
        ["description", "execute"],
    ),
    "brain!, loop, in the middle of a word: `cx.sys`": (
        'pub fn a() -> Brain<(), Ticket, ()> { positronic_macros::brain! { "A" %s .loop("B", |cx| cx.sys$0) } }' % TICKET,
        ["system"],
    ),
    "brain!, after a stage: `.`": (
        'pub fn a() -> Brain<(), Ticket, ()> { positronic_macros::brain! { "A" %s .$0 } }' % TICKET,
        ["step", "loop"],
    ),
    "brain!, stages after the cursor: `cx.`": (
        'pub fn a() -> Brain<(), Ticket, ()> { positronic_macros::brain! { "A" %s .step("B", async |cx| { let t = cx.$0; Ok(cx.state) }) .loop("C", |cx| cx.system("x")) } }'
        % TICKET,
        ["state", "options", "services"],
    ),
    "#[tool], body: `query.`": (
        "/// Asks.\n#[positronic_macros::tool]\nasync fn ask(query: String) -> Result<u8> { query.$0 }",
        ["len", "trim"],
    ),
    "#[tool], body: `cx.`": (
        "/// Asks.\n#[positronic_macros::tool]\nasync fn ask(query: String, cx: ToolContext<(), Ticket>) -> Result<u8> { cx.$0 }",
        ["state", "services"],
    ),
    "#[tool], mistake in the flags, body: `query.`": (
        "/// Asks.\n#[positronic_macros::tool(nonsense)]\nasync fn ask(query: String) -> Result<u8> { query.$0 }",
        ["len", "trim"],
    ),
    "#[tool], mistake in an argument, no doc comment, body: `query.`": (
        "#[positronic_macros::tool]\nasync fn ask(query: &str) -> Result<u8> { query.$0 }",
        ["len", "trim"],
    ),
}
# A word, and the text of the line with its definition.
DEFINITIONS = {
    "brain!, a field of the state": (
        'pub fn a() -> Brain<(), Ticket, ()> { positronic_macros::brain! { "A" %s .loop("B", |cx| cx.system(cx.state.cust$0omer.clone())) } }'
        % TICKET,
        "pub customer",
    ),
    "#[tool], a flag": (
        "/// Asks.\n#[positronic_macros::tool(exi$0t)]\nasync fn ask(query: String) -> Result<usize> { Ok(query.len()) }",
        "fn exit",
    ),
    "#[tool], an argument": (
        "/// Asks.\n#[positronic_macros::tool]\nasync fn ask(query: String) -> Result<usize> { Ok(que$0ry.len()) }",
        "query: String",
    ),
}
# A word to hover over, and the expected text. (rust-analyzer finds no definition for a word that it takes for
# the keyword, so `.loop` is here and not above.)
HOVERS = {
    "brain!, `loop`": (
        'pub fn a() -> Brain<(), Ticket, ()> { positronic_macros::brain! { "A" %s .lo$0op("B", |cx| cx.system("x")) } }' % TICKET,
        "fn r#loop",
    ),
}
# Valid code, which must show no error.
SOUND = {
    "brain!": '''
pub fn a() -> Brain<(), Ticket, ()> {
    positronic_macros::brain! {
        "A"
        %s
        .loop("B", |cx| cx.system(format!("for {}", cx.state.customer)).tool("t", |t| t.description("d").execute(async |_: Ticket, _| Ok(1))))
    }
}''' % TICKET,
    "#[tool]": "/// Asks.\n#[positronic_macros::tool]\nasync fn ask(query: String) -> Result<usize> { Ok(query.len()) }\n"
    "pub fn asks() { ask::<(), (), ()>(); }",
}


class Server:
    """A language server, connected by two pipes."""

    def __init__(self, command, folder):
        self.process = subprocess.Popen(
            [command], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.messages = queue.Queue()
        self.last_id = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            length = 0
            while (line := self.process.stdout.readline().strip()):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if not length:
                return self.messages.put(None)
            self.messages.put(json.loads(self.process.stdout.read(length)))

    def send(self, **message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def request(self, method, params, seconds=120):
        self.last_id += 1
        wanted = self.last_id
        self.send(id=wanted, method=method, params=params)
        answer = self.wait_for(lambda message: message.get("id") == wanted and "method" not in message, seconds)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer.get("result")

    def wait_for(self, wanted, seconds):
        end = time.monotonic() + seconds
        while True:
            message = self.messages.get(timeout=max(0.1, end - time.monotonic()))
            if message is None:
                sys.exit("rust-analyzer ended; does it run from a shell?")
            if "id" in message and "method" in message:  # a question of the server's: nothing to say
                count = len(message["params"].get("items", [])) if isinstance(message.get("params"), dict) else 0
                self.send(id=message["id"], result=[None] * count if count else None)
            if wanted(message):
                return message


def position(text):
    before = text[: text.index("$0")]
    return {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}


class Document:
    """The open file, whose text is replaced before each request."""

    def __init__(self, server, document):
        self.server, self.document, self.version, self.text = server, document, 0, ""

    def ask(self, method, marked):
        marked = PRELUDE + marked + "\n"
        self.text, self.version = marked.replace("$0", ""), self.version + 1
        self.server.send(method="textDocument/didChange", params={
            "textDocument": {**self.document, "version": self.version}, "contentChanges": [{"text": self.text}],
        })
        where = {} if method.endswith("diagnostic") else {"position": position(marked)}
        return self.server.request(method, {"textDocument": self.document, **where}, 600)


def line_of(place, source, text):
    """Returns the line that an answer points at."""
    uri, span = place.get("targetUri", place.get("uri")), place.get("targetSelectionRange", place.get("range"))
    text = text if uri == source.as_uri() else pathlib.Path(unquote(urlparse(uri).path)).read_text()
    return text.splitlines()[span["start"]["line"]].strip()


def report(name, problem):
    print(f"{'ok' if problem is None else problem:<4} {name}")
    return problem is not None


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rust-analyzer", default="rust-analyzer", metavar="COMMAND")
    arguments.add_argument("--sysroot-src", metavar="FOLDER", help="the standard library's source, `library/` of Rust's repository")
    arguments.add_argument("--proc-macro-server", metavar="COMMAND", help="where it is not beside the toolchain's rustc")
    arguments.add_argument("--core", default=str(ROOT / "positronic-core"), metavar="FOLDER")
    arguments.add_argument("--verbose", action="store_true", help="show what was offered")
    options = arguments.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder).resolve()
        (folder / "src").mkdir()
        (folder / "Cargo.toml").write_text(MANIFEST.format(core=options.core, macros=ROOT / "positronic-macros"))
        source = folder / "src" / "lib.rs"
        source.write_text("")

        server = Server(options.rust_analyzer, folder)
        settings = {"checkOnSave": False, "cargo": {}, "procMacro": {"enable": True}, "cachePriming": {"enable": False}}
        if options.sysroot_src:
            settings["cargo"]["sysrootSrc"] = options.sysroot_src
        if options.proc_macro_server:
            settings["procMacro"]["server"] = options.proc_macro_server
        started = server.request("initialize", {
            "processId": None,
            "rootUri": folder.as_uri(),
            "capabilities": {
                "experimental": {"serverStatusNotification": True},
                "textDocument": {"completion": {"completionItem": {"snippetSupport": True}}, "hover": {"contentFormat": ["markdown"]}},
            },
            "initializationOptions": settings,
        })
        print("asked:", started.get("serverInfo", {}).get("version", "rust-analyzer"))
        server.send(method="initialized", params={})
        document = {"uri": source.as_uri()}
        server.send(method="textDocument/didOpen", params={"textDocument": {**document, "languageId": "rust", "version": 0, "text": ""}})

        def ready(message):
            status = message.get("params", {}) if message.get("method") == "experimental/serverStatus" else {}
            if status.get("message"):
                print("it says:", status["message"].strip())
            return status.get("quiescent") is True

        server.wait_for(ready, 900)

        opened = Document(server, document)
        failed = 0
        for name, (text, expected) in CASES.items():
            items = opened.ask("textDocument/completion", text)
            items = items["items"] if isinstance(items, dict) else items or []
            labels = [item["label"].split("(")[0].split("…")[0].removeprefix("r#") for item in items]
            missing = [label for label in expected if label not in labels]
            failed += report(name, f"MISSING {', '.join(missing)}" if missing else None)
            if options.verbose:
                print("    " + ", ".join(labels[:30]))
        for name, (text, expected) in DEFINITIONS.items():
            places = opened.ask("textDocument/definition", text) or []
            lines = [line_of(place, source, opened.text) for place in ([places] if isinstance(places, dict) else places)]
            failed += report("definition: " + name, None if any(expected in line for line in lines) else f"FOUND {lines}")
        for name, (text, expected) in HOVERS.items():
            shown = str(opened.ask("textDocument/hover", text))
            failed += report("hover: " + name, None if expected in shown else f"SHOWS {shown}")
        for name, text in SOUND.items():
            found = opened.ask("textDocument/diagnostic", text + "$0")["items"]
            errors = [item["message"] for item in found if item.get("severity", 1) == 1]
            failed += report("no errors: " + name, f"SHOWS {errors}" if errors else None)
        server.request("shutdown", None)
        server.send(method="exit", params=None)
        server.process.wait(timeout=20)
    total = len(CASES) + len(DEFINITIONS) + len(HOVERS) + len(SOUND)
    print(f"{total - failed} of {total} answers are as expected")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
