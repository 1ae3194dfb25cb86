"""Prints the arguments for Cargo that select the packages which are no default members, each on a line."""

import json
import subprocess

metadata = json.loads(subprocess.check_output(["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"]))
names = {package["id"]: package["name"] for package in metadata["packages"]}
others = set(metadata["workspace_members"]) - set(metadata["workspace_default_members"])
for name in sorted(names[member] for member in others):
    if name != "positronic-cost":
        print(f"--package={name}")
