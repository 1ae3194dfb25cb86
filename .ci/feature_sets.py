"""Prints the arguments of one `cargo check` per line: each published package that has features, without them and with each alone."""

import json
import subprocess

metadata = subprocess.run(
    ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"],
    check=True,
    stdout=subprocess.PIPE,
)
for package in json.loads(metadata.stdout)["packages"]:
    features = sorted(set(package["features"]) - {"default"})
    if package["publish"] == [] or not features:
        continue
    alone = f"--package {package['name']} --no-default-features"
    print(alone)
    for feature in features:
        print(f"{alone} --features {feature}")
