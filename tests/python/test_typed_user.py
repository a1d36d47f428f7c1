# SPDX-License-Identifier: Apache-2.0
"""Tests that typed_user.py, which test_types.py checks, uses every public name and runs."""
import re

import numpy as np

import cleave
import typed_user


def test_the_program_names_all_that_is_public():
    with open(typed_user.__file__, encoding="utf-8") as file:
        text = file.read()
    assert not [name for name in cleave.__all__ if not re.search(rf"\bcleave\.{name}\b", text)]


def test_the_program_runs(sequence, movie):
    assert typed_user.machine().startswith(cleave.__version__)
    assert np.isfinite(typed_user.arrays())
    with cleave.Context(mode="reference"):
        assert (typed_user.kernels(cleave.Report()) == 2).all()
        cube, angles, psf, _, _ = sequence
        assert typed_user.observations(cube, angles, psf, movie)[0] == 0
    assert typed_user.failures()[0].startswith("2 CLV_E_SHAPE matmul: ")
