#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipe for Dask in docs/clusters.md, on two worker processes of a local cluster: every command that has shards
gives the bytes of a local run, and a command that fails raises an error.

usage: dask_recipe.py CLEAVE PAGE [CASE...]"""
import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile

import cluster_kit as kit
import testdata
from text_embed import CLEAVE, WRONG

PAGE = os.path.abspath(sys.argv[2])


def write_recipe():
    with open(PAGE, encoding="utf-8") as file:
        block = file.read().split("```python\n", 1)[1].split("```", 1)[0]
    with open("dask_shards.py", "w", encoding="utf-8") as file:
        file.write(block)


def check_case(recipe, client, case):
    wanted = kit.local(case)
    kit.fresh("out")
    recipe.run(client, kit.line_of(case, "out"), 3, 2)
    kit.same(f"{case} by Dask", subprocess.CompletedProcess([], 0, b"", b""), wanted)
    left = [name for name in os.listdir(".") if name.startswith("record-")]
    if left:
        kit.wrong(f"{case} by Dask left {left}")


def check_failure(recipe, client):
    try:
        recipe.run(client, ["search", "nowhere.npy", "--queries", "queries.npy", "-o", "out/found.csv"], 2, 2)
    except subprocess.CalledProcessError:
        return
    kit.wrong("a shard that fails raised no error")


def main():
    if importlib.util.find_spec("distributed") is None:
        testdata.skip("no Python module distributed")
    from dask.distributed import Client, LocalCluster
    os.environ["PATH"] = os.path.dirname(os.path.abspath(CLEAVE)) + os.pathsep + os.environ["PATH"]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        sys.path.insert(0, folder)
        write_recipe()
        kit.make_inputs()
        recipe = importlib.import_module("dask_shards")
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, \
                Client(cluster) as client:
            for case in sys.argv[3:] or kit.CASES:
                check_case(recipe, client, case)
            check_failure(recipe, client)
        os.chdir("/")
    print("\n".join(WRONG))
    sys.exit(bool(WRONG))


if __name__ == "__main__":
    main()
