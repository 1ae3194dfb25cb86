"""Checks that `cargo run -p positronic-examples` wants each dependency with features that `cargo test` wants it with, too, so that it
is built once for both. What differs belongs in tests/features/Cargo.toml."""

import subprocess
import sys


def features(edges, *selection):
    """Returns for each package the sets of features with which it is built: macros may have one of their own."""
    tree = ["cargo", "tree", "--locked", "--edges", edges, "--prefix", "none", "--format", "{p}|{f}", *selection]
    found = {}
    for line in subprocess.check_output(tree, text=True).splitlines():
        package, _, names = line.removesuffix(" (*)").partition("|")
        found.setdefault(package, set()).add(names)
    return found


run, test = features("normal", "--package", "positronic-examples"), features("normal,dev")
twice = {package: wanted - test[package] for package, wanted in run.items() if wanted - test[package]}
for package, wanted in sorted(twice.items()):
    print(f"{package} is built twice: the examples want {sorted(wanted)}, the tests {sorted(test[package])}", file=sys.stderr)
sys.exit(bool(twice))
