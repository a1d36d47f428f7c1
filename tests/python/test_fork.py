# SPDX-License-Identifier: Apache-2.0
"""Tests that a call in a child of a fork raises an error that says what to do, where the child used to hang."""
import os
import signal
import time

import numpy as np
import pytest

import cleave


def ends(body, patience=30):
    """Returns the exit code of a child that calls the function; None if the child hung."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = body()
        finally:
            os._exit(code)
    until = time.monotonic() + patience
    while time.monotonic() < until:
        ended, state = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(state)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def refused(call):
    """Returns 0 if the error says what to do."""
    try:
        call()
    except cleave.Error as error:
        return 0 if "spawn" in str(error) else 1
    return 2


@pytest.mark.parametrize("call", [
    lambda array: cleave.devices(),
    lambda array: cleave.Context(),
    lambda array: cleave.array(np.ones(4)),
    lambda array: (array + 1).numpy(),
    lambda array: cleave.compute("x + 1", x=np.ones(4)),
])
def test_a_child_is_told(call):
    array = cleave.array(np.ones(1000, np.float32))  # the default context is in use
    if not cleave.devices():
        pytest.skip("no device")
    assert ends(lambda: refused(lambda: call(array))) == 0
    assert float(array.sum()) == 1000  # the parent can continue


def test_a_new_program_works():
    import multiprocessing
    cleave.devices()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(abs, [-1]) == [1]
