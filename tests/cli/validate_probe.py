#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Validates `cleave probe --json` of every scenario, every device profile and this machine against
the installed schema, and tests that the schema refuses damaged reports.

usage: validate_probe.py COMMAND SCHEMA
Exit code 77: the Python package jsonschema is missing.
"""
import copy
import json
import os
import subprocess
import sys

import testdata

sys.path.pop(0)  # keep Python from importing files of this folder by the names of modules
try:
    import jsonschema
except ImportError:
    testdata.skip("the Python package jsonschema is not installed")

command, schema_file = sys.argv[1:]
devices_file = testdata.path_of("probe/devices.json")


def close(schema):
    """Makes the schema refuse undescribed keys. This is only for the test: a report of a user may be newer than the
    schema."""
    if isinstance(schema, dict):
        if "properties" in schema:
            schema["additionalProperties"] = False
        for value in schema.values():
            close(value)
    elif isinstance(schema, list):
        for value in schema:
            close(value)


def report(*options):
    environment = dict(os.environ, CLEAVE_CACHE="0")
    if "--in-process" in options:  # drivers leak memory in this process
        environment["ASAN_OPTIONS"] = "detect_leaks=0"
    run = subprocess.run([command, "probe", "--json", *options], env=environment,
                         stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout.decode("utf-8"))


def damages(good):
    """Yields reports, each of which is wrong in one place."""
    def one(change):
        bad = copy.deepcopy(good)
        change(bad)
        return bad
    yield "another schema", one(lambda r: r.update(schema="cleave.probe/2"))
    yield "no mode", one(lambda r: r.pop("mode"))
    yield "a mode that is none", one(lambda r: r["mode"].update(recommended="fast"))
    yield "a key too many", one(lambda r: r.update(extra=1))
    yield "a class that is none", one(lambda r: r["devices"][0].update({"class": "gpu"}))
    yield "negative bytes", one(lambda r: r["devices"][0]["memory"].update(global_bytes=-1))
    yield "a text for a flag", one(lambda r: r["devices"][0]["features"].update(fp64="yes"))
    yield "a field missing", one(lambda r: r["devices"][0]["compute"].pop("units"))


with open(schema_file, encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
close(schema)
validator = jsonschema.Draft202012Validator(schema)
with open(devices_file, encoding="utf-8") as file:
    profiles = json.load(file)

count = 0
for entry in profiles["scenarios"] + profiles["devices"]:
    validator.validate(report("--simulate", devices_file, "--scenario", entry["id"]))
    count += 1
validator.validate(report())
validator.validate(report("--in-process", "--check"))
validator.validate(report("--reproducible"))
for what, bad in damages(report("--simulate", devices_file, "--scenario", "two-gb")):
    if validator.is_valid(bad):
        sys.exit(f"the schema accepts {what}")
print(f"{count} simulated reports and this machine's are valid")
