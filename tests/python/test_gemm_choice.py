# SPDX-License-Identifier: Apache-2.0
"""Tests that a form of the product that computes wrongly is not used, and that this choice is kept for later runs. If
no other form is left, the product fails: it never returns the result of a wrong form.

Each program runs in a process of its own, because a process reads its kernels and kept choices only once.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ["CLEAVE_TEST_SOURCE"])

PROGRAM = """
import numpy as np, cleave
context = cleave.Context()
x = np.random.default_rng(3).uniform(-1, 1, (2, 150, 150)).astype(np.float32)
try:
    with cleave.offload("device"):
        got = cleave.matmul(x[0], x[1], context=context)
except cleave.Error as error:
    raise SystemExit(f"FAILED: {error}")
want = x[0].astype(np.float64) @ x[1].astype(np.float64)
print(float(np.abs(got - want).max()))
"""


# The line that computes a sum, and the define that distinguishes the forms, by the beginning of the name of a form.
SUMS = {"rows": ("gemm_rows.cl", "acc[i][v] = fma(av, bv[v], acc[i][v]);", "NR == {}", r"x(\d+)"),
        "tile": ("gemm_tile.cl", "acc[i][j] = fma(a[i], b[j], acc[i][j]);", "TN == {}",
                 r"(\d+)$"),
        "item": ("gemm_items.cl", "acc[i][j] = fma(a, b[j], acc[i][j]);", "RM == {}",
                 r"(\d+)x")}


def multiply(cache, kernels=None, tune="1"):
    """Returns the largest error of a product on the device, or None if it failed, and the notes about it."""
    given = dict(os.environ, CLEAVE_CACHE_DIR=str(cache), CLEAVE_TUNE=tune)
    if kernels:
        given["CLEAVE_CL_DIR"] = str(kernels)
    result = subprocess.run([sys.executable, "-c", PROGRAM], env=given, capture_output=True,
                            text=True, timeout=500)
    if "FAILED: " in result.stderr:
        return None, []
    assert result.returncode == 0, result.stderr
    file = cache / "tuning.txt"
    notes = file.read_text().splitlines() if file.exists() else []
    return float(result.stdout.split()[-1]), [line for line in notes if line.startswith("gemm.")]


def test_a_choice_without_timing_is_not_kept(device_context, tmp_path):
    """`cleave demo` takes the first form that is right, and the next program must time all of them."""
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    error, notes = multiply(cache, tune="0")
    assert error < 1e-4 and not notes
    error, notes = multiply(cache)
    assert error < 1e-4 and len(notes) == 1 and " ms" in notes[0]
    assert multiply(cache, tune="0")[1] == notes, "what was timed is kept"


def test_a_form_that_is_wrong_is_passed_over(device_context, tmp_path):
    kernels, cache = tmp_path / "kernels", tmp_path / "cache"
    cache.mkdir(mode=0o700)
    shutil.copytree(SOURCE / "cl", kernels)

    error, notes = multiply(cache)
    assert error < 1e-4 and len(notes) == 1
    chosen, figures = notes[0].split(" = ", 1)[1].split(" ", 1)
    if chosen == "clblast":  # we cannot damage this form; in that case the faster one of ours
        chosen = min(re.findall(r"(tile\d+): ([\d.e+]+) ms", figures), key=lambda f: float(f[1]))[0]

    name, line, only, size = SUMS[chosen[:4]]
    file = kernels / "blas" / name
    assert file.read_text().count(line) == 1
    only = only.format(re.search(size, chosen)[1])
    file.write_text(file.read_text().replace(line, f"{line[:-1]} * ({only} ? 1.01f : 1.0f);"))
    (cache / "tuning.txt").unlink()
    error, notes = multiply(cache, kernels)
    if error is None:
        assert figures.count(" ms") == 1, "another form was there"
        return
    assert error < 1e-4, "a wrong form was taken"
    assert notes[0].split(" = ", 1)[1].split()[0] != chosen
    assert f"{chosen}: failed" in notes[0]
    assert multiply(cache, kernels) == (error, notes), "measured again"
