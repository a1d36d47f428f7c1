# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the package's tests: contexts and made-up data."""
import contextlib
import os

import numpy as np
import pytest

import cleave


def need_devices(made):
    """Skips the test without an OpenCL device, but fails if $CLEAVE_TEST_PLATFORMS names one."""
    if made.devices:
        return
    promised = os.environ.get("CLEAVE_TEST_PLATFORMS")
    if promised:
        pytest.fail(f"no OpenCL device, {promised} promised")
    pytest.skip("no OpenCL device")


@pytest.fixture(scope="session")
def cores(device_context):
    """A context with a CPU driver, whose launches take microseconds; those of other drivers may take longer."""
    del device_context
    try:
        made = cleave.Context(devices="cpu")
    except cleave.NoDeviceError as error:
        promised = os.environ.get("CLEAVE_TEST_PLATFORMS", "")
        if "pocl" in promised or "intel" in promised:
            pytest.fail(f"{error}, {promised} promised")
        pytest.skip(str(error))
    yield made
    made.close()


def without_lapack(error):
    """Skips the test with the library's message, but fails if CI has installed a LAPACK."""
    assert "LAPACK" in error.message
    if os.environ.get("CI"):
        pytest.fail(error.message)
    pytest.skip(error.message)


def with_calls_as_asked(made):
    """Makes the calls of a context asynchronous if $CLEAVE_TEST_ASYNCHRONOUS is set, as it is for some modules' second
    run."""
    with contextlib.ExitStack() as stack:
        if os.environ.get("CLEAVE_TEST_ASYNCHRONOUS"):
            stack.enter_context(cleave.asynchronous(made))
        yield made
    made.close()


@pytest.fixture(scope="session")
def context():
    """The context of a user who sets no option."""
    yield from with_calls_as_asked(cleave.Context())


@pytest.fixture(scope="session")
def device_context(context):
    """A context in which an OpenCL device works."""
    need_devices(context)
    return context


@pytest.fixture(scope="session")
def reference():
    yield from with_calls_as_asked(cleave.Context(mode="reference"))


def star(dy, dx, fwhm=3.5):
    sigma = fwhm / 2.3548
    return np.exp(-(dy**2 + dx**2) / (2 * sigma**2))


@pytest.fixture(scope="session")
def sequence():
    """Returns (cube, angles, psf, row, column): 24 rotating frames with one planet."""
    frames, side, row, column = 24, 40, 12, 26
    noise = np.random.default_rng(8).uniform(-0.5, 0.5, (frames, side, side))
    angles = 2.5 * np.arange(frames)
    y, x = np.mgrid[:side, :side]
    dy, dx = row - side // 2, column - side // 2
    cube = np.empty((frames, side, side), np.float32)
    for t, turn in enumerate(np.radians(angles)):
        y0 = side // 2 + dy * np.cos(turn) - dx * np.sin(turn)
        x0 = side // 2 + dx * np.cos(turn) + dy * np.sin(turn)
        cube[t] = 10 + noise[t] + 0.5 * star(y - y0, x - x0)
    y, x = np.mgrid[:11, :11] - 5
    return cube, angles, star(y, x).astype(np.float32), row, column


@pytest.fixture(scope="session")
def movie():
    """Returns two spots that move by one pixel per frame, one down and one to the right."""
    frames, side = 6, 48
    y, x = np.mgrid[:side, :side]
    made = np.zeros((frames, side, side), np.float32)
    for t in range(frames):
        made[t] = 100 * star(y - 10.25 - t, x - 12.5, 4) + 80 * star(y - 34, x - 15 - t, 4)
    return made


@pytest.fixture(params=["plain", "device"])
def side(request, context, reference):
    """A context, and the side on which its work is forced to run."""
    if request.param == "device":
        need_devices(context)
    with cleave.offload("auto" if request.param == "plain" else "device"):
        yield reference if request.param == "plain" else context
