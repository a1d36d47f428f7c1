#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the recipe for Dask in docs/clusters.md on worker processes of a local cluster: every command that has shards
writes the bytes of a local run on the same device, and a command that fails raises an error.

usage: dask_recipe.py CLEAVE PAGE [--all] [CASE...]
--all: every case, on 2 and on 4 workers, in plain C and on a device of each platform, instead of a case for each
command on 2 workers and one device"""
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile

import cluster_kit as kit
import paco_kit
import testdata
from text_embed import CLEAVE, WRONG

PAGE = os.path.abspath(sys.argv[2])
ALL = "--all" in sys.argv
SHORT = [case for case in kit.CASES if case not in ("asdi", "texts")]  # one case for each command
SYSTEM = "/usr/bin/python3"  # Debian's Python, for which the package python3-distributed is


def write_recipe():
    with open(PAGE, encoding="utf-8") as file:
        block = file.read().split("```python\n", 1)[1].split("```", 1)[0]
    with open("dask_shards.py", "w", encoding="utf-8") as file:
        file.write(block)


def check_case(recipe, client, case, workers):
    kit.fresh("out")
    wanted = kit.local(case)
    kit.fresh("out")
    recipe.run(client, kit.line_of(case, "out"), workers + (case == "search"), workers)
    what = f"{case} by Dask with {workers} workers, {kit.QUIET}"
    kit.same(what, subprocess.CompletedProcess([], 0, b"", b""), wanted)
    left = [name for name in os.listdir(".") if name.startswith("record-")]
    if left:
        kit.wrong(f"{what} left {left}")


def check_failure(recipe, client):
    try:
        recipe.run(client, ["search", "nowhere.npy", "--queries", "queries.npy", "-o", "out/found.csv"], 2, 2)
    except subprocess.CalledProcessError:
        return
    kit.wrong("a shard that fails raised no error")


def sides():
    """Yields the options that choose a device of each platform under test."""
    platforms = os.environ.get("CLEAVE_TEST_PLATFORMS", "pocl").split(",")
    for platform in ["reference", *platforms] if ALL else platforms[:1]:
        yield ["-q", *paco_kit.options_for(CLEAVE, platform, os.path.abspath("cache"))]


def main():
    if importlib.util.find_spec("distributed") is None:
        if sys.prefix != "/usr" and os.access(SYSTEM, os.X_OK):  # the Python of a virtual environment, or another one
            os.execv(SYSTEM, [SYSTEM, *sys.argv])
        testdata.skip("no Python module distributed")
    from dask.distributed import Client, LocalCluster
    os.environ["PATH"] = os.path.dirname(os.path.abspath(CLEAVE)) + os.pathsep + os.environ["PATH"]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ.update(paco_kit.environment(CLEAVE_CACHE_DIR=os.path.join(folder, "cache")))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        sys.path.insert(0, folder)
        write_recipe()
        kit.make_inputs()
        recipe = importlib.import_module("dask_shards")
        for workers in (2, 4) if ALL else (2,):
            with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, \
                    Client(cluster) as client:
                for kit.QUIET in sides():
                    for case in [word for word in sys.argv[3:] if word != "--all"] or (kit.CASES if ALL else SHORT):
                        check_case(recipe, client, case, workers)
                check_failure(recipe, client)
        paco_kit.keep_programs("cache")
        os.chdir("/")
    print("\n".join(WRONG))
    sys.exit(bool(WRONG))


if __name__ == "__main__":
    main()
