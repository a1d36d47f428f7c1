# SPDX-License-Identifier: Apache-2.0
"""A form of the product that computes wrongly is passed over, and the choice is remembered.

The programs run in processes of their own: which kernels and notes a process uses is settled once.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(os.environ["CLEAVE_TEST_SOURCE"])

PROGRAM = """
import numpy as np, cleave
context = cleave.Context()
x = np.random.default_rng(3).uniform(-1, 1, (2, 150, 150)).astype(np.float32)
with cleave.offload("device"):
    got = cleave.matmul(x[0], x[1], context=context)
want = x[0].astype(np.float64) @ x[1].astype(np.float64)
print(float(np.abs(got - want).max()))
"""


def multiply(cache, kernels=None):
    """Largest error of a product on the device, and the notes that were left about it."""
    given = dict(os.environ, CLEAVE_CACHE_DIR=str(cache), CLEAVE_TUNE="1")
    if kernels:
        given["CLEAVE_CL_DIR"] = str(kernels)
    result = subprocess.run([sys.executable, "-c", PROGRAM], env=given, capture_output=True,
                            text=True, timeout=500)
    assert result.returncode == 0, result.stderr
    error = float(result.stdout.split()[-1])
    notes = (cache / "tuning.txt").read_text().splitlines()
    return error, [line for line in notes if line.startswith("gemm.")]


def test_a_form_that_is_wrong_is_passed_over(device_context, tmp_path):
    kernels, cache = tmp_path / "kernels", tmp_path / "cache"
    cache.mkdir(mode=0o700)
    shutil.copytree(SOURCE / "cl", kernels)

    error, notes = multiply(cache)
    assert error < 1e-4 and len(notes) == 1
    chosen = notes[0].split(" = ", 1)[1].split()[0]
    columns = re.fullmatch(r"rows\d+x(\d+)", chosen)
    if not columns:
        pytest.skip(f"{chosen} was chosen: forms for cores are what is damaged")

    file = kernels / "blas" / "gemm_rows.cl"
    line = "acc[i][v] = fma(av, bv[v], acc[i][v]);"
    assert file.read_text().count(line) == 1
    file.write_text(file.read_text().replace(
        line, line[:-1] + f" * (NR == {columns[1]} ? 1.01f : 1.0f);"))
    (cache / "tuning.txt").unlink()
    error, notes = multiply(cache, kernels)
    assert error < 1e-4, "a wrong form was taken"
    assert notes[0].split(" = ", 1)[1].split()[0] != chosen
    assert f"{chosen}: failed" in notes[0]
    assert multiply(cache, kernels) == (error, notes), "measured again"
