"""Runs the support agent until it waits for a person and the kitchen until it has asked its model, then parses the metrics.

Usage: metrics.py ADDRESS TOKEN
"""

import json
import sys
import time
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families

address, token = sys.argv[1], sys.argv[2].strip()
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(path, body=None):
    request = urllib.request.Request(address + path, headers={"Authorization": f"Bearer {token}"})
    if body is not None:
        request.data = json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
    return opener.open(request, timeout=20).read().decode()


def start(brain, is_reached):
    """Starts a run and returns when it has reached a state."""
    run = json.loads(ask("/api/v1/runs", {"brain": brain}))["id"]
    deadline = time.monotonic() + 60
    while not is_reached(json.loads(ask(f"/api/v1/runs/{run}"))):
        assert time.monotonic() < deadline, f"the run of {brain} did not get there within 60 s"
        time.sleep(0.2)


start("Support", lambda run: run["status"] == "waiting")
# The answers of its cassette have counts of tokens.
start("Kitchen", lambda run: run["usage"].get("input", 0) > 0 and run["status"] != "running")

families = {family.name: family for family in text_string_to_metric_families(ask("/metrics"))}


def value(name, **labels):
    """Returns the value of the sample with a name and labels."""
    samples = [sample for family in families.values() for sample in family.samples]
    found = [sample.value for sample in samples if sample.name == name and labels.items() <= sample.labels.items()]
    assert found, f"no sample {name} {labels} among {sorted(families)}"
    return sum(found)


assert value("positronic_runs", status="waiting") >= 1
assert value("positronic_pending") >= 1
assert value("positronic_tokens_total", type="input") > 0
assert value("positronic_model_request_duration_seconds_count") >= 1
assert all(family.documentation for family in families.values()), "each family has a help text"
print(f"{len(families)} families of metrics, all parsed")
