"""Reads `cargo metadata` from stdin, and names what a published crate lacks in its manifest and its folder."""

import json
import pathlib
import sys

WANTED = ["description", "license", "readme", "rust_version", "keywords", "categories"]
LICENSES = ["LICENSE-APACHE", "LICENSE-MIT"]

missing = []
for package in json.load(sys.stdin)["packages"]:
    if package["publish"] == []:
        continue
    lacks = [field for field in WANTED if not package[field]]
    documented = ((package["metadata"] or {}).get("docs") or {}).get("rs") or {}
    if package["features"] and not documented.get("all-features"):
        lacks.append("all-features under [package.metadata.docs.rs]")
    folder = pathlib.Path(package["manifest_path"]).parent
    lacks += [f"{text} (a link to that of the workspace)" for text in LICENSES if not (folder / text).exists()]
    missing += [f"{package['name']}: no {field}" for field in lacks]
if missing:
    sys.exit("\n".join(missing))
