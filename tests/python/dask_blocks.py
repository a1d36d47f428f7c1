# SPDX-License-Identifier: Apache-2.0
"""Tests the recipe dask_blocks.py in docs/clusters.md: blocks of a dask array are computed by Cleave inside 2 and 4
worker processes of a local cluster, each with its part of the cores and of the memory.

usage: dask_blocks.py PAGE [WORKERS...]"""
import importlib.util
import os
import sys
import tempfile

SYSTEM = "/usr/bin/python3"  # Debian's, which has the package python3-distributed
MEMORY = 2 << 30  # bytes of a worker, as the scheduler is told


def write_recipe(page):
    with open(page, encoding="utf-8") as file:
        blocks = [part.split("```", 1)[0] for part in file.read().split("```python\n")[1:]]
    with open("dask_blocks_recipe.py", "w", encoding="utf-8") as file:
        file.write(next(block for block in blocks if "WorkerPlugin" in block))


def look():
    """Returns what a worker has: its process, cores, the driver's threads and the budget of its device."""
    import cleave
    devices = cleave.devices()
    budget = devices[0].memory().budget_bytes if devices else 0
    return os.getpid(), sorted(os.sched_getaffinity(0)), budget, len(devices)


def check(workers):
    import dask.array
    import numpy as np
    from dask.distributed import Client, LocalCluster

    import dask_blocks_recipe as recipe
    data = np.random.default_rng(4).random((8 * workers, 40), np.float32)
    with LocalCluster(n_workers=workers, threads_per_worker=1, memory_limit=MEMORY,
                      dashboard_address=None) as machine, Client(machine) as client:
        register = getattr(client, "register_plugin", None) or client.register_worker_plugin  # until 2023
        register(recipe.Share(workers=workers))
        made = dask.array.from_array(data, chunks=(4, 40)).map_blocks(recipe.waves, dtype=np.float32).compute()
        found = list(client.run(look).values())
    blocks = [data[i:i + 4] for i in range(0, len(data), 4)]
    wanted = np.concatenate([np.sin(b) * 2 + (b @ b.T).mean(axis=1, keepdims=True) for b in blocks])
    np.testing.assert_allclose(made, wanted, rtol=2e-5)
    assert len({process for process, *_ in found}) == workers and os.getpid() not in {one[0] for one in found}
    here = sorted(os.sched_getaffinity(0))
    used = [core for _, cores, *_ in found for core in cores]
    if workers <= len(here):  # every core belongs to one worker
        assert sorted(used) == here, found
    for _, cores, budget, devices in found:
        assert len(cores) <= max(len(here) // workers, 1) or workers > len(here), found
        assert not devices or 0 < budget <= MEMORY // 2, found
    print(f"{workers} workers: {len(blocks)} blocks, cores {[one[1] for one in found]}, "
          f"budget {found[0][2] >> 20} MiB each")


def main():
    if importlib.util.find_spec("distributed") is None:
        if sys.prefix != "/usr" and os.access(SYSTEM, os.X_OK):  # of a virtual environment, or another Python
            os.execv(SYSTEM, [SYSTEM, *sys.argv])
        print("SKIPPED: no Python module distributed")
        sys.exit(77)
    page = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path.insert(0, folder)
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        write_recipe(page)
        for workers in map(int, sys.argv[2:] or (2, 4)):
            check(workers)
        os.chdir("/")


if __name__ == "__main__":
    main()
