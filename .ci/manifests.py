"""Reads `cargo metadata` from stdin, and names what the manifest of a published crate lacks."""

import json
import sys

WANTED = ["description", "license", "readme", "rust_version", "keywords", "categories"]

missing = []
for package in json.load(sys.stdin)["packages"]:
    if package["publish"] == []:
        continue
    lacks = [field for field in WANTED if not package[field]]
    documented = ((package["metadata"] or {}).get("docs") or {}).get("rs") or {}
    if package["features"] and not documented.get("all-features"):
        lacks.append("all-features under [package.metadata.docs.rs]")
    missing += [f"{package['name']}: no {field}" for field in lacks]
if missing:
    sys.exit("\n".join(missing))
