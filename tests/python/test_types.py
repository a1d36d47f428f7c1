# SPDX-License-Identifier: Apache-2.0
"""Tests that the package and a user's program (typed_user.py) pass `mypy --strict`."""
import importlib.util
import os
import re
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(os.environ["CLEAVE_TEST_SOURCE"], "python")
USER = os.path.join(HERE, "typed_user.py")


@pytest.fixture(name="mypy", scope="module")
def checker(tmp_path_factory):
    """Runs mypy with the package's settings; returns (exit code, output)."""
    if importlib.util.find_spec("mypy") is None:
        if os.environ.get("CI"):
            pytest.fail("no Python module mypy, CI promises it")
        pytest.skip("no Python module mypy: types are not checked")
    cache = tmp_path_factory.mktemp("mypy")

    def run(*arguments):
        done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(cache), *arguments],
                              cwd=PACKAGE, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr
    return run


def test_the_package_and_its_users_are_strict(mypy):
    with open(os.path.join(PACKAGE, "pyproject.toml"), encoding="utf-8") as file:
        assert re.search(r"^strict = true$", file.read(), re.MULTILINE)
    code, said = mypy("cleave", USER)
    assert code == 0, said


def test_a_users_mistake_is_found(mypy, tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import cleave\n"
                     "cleave.link([[0, 1, 1]], 'far')\n"
                     "cleave.matmul(1, 2, alfa=3)\n"
                     "n: str = cleave.monte_carlo_pi(9)\n"
                     "cleave.Contest()\n", encoding="utf-8")
    code, said = mypy("--no-error-summary", str(wrong))
    lines = [int(found) for found in re.findall(r"wrong\.py:(\d+): error", said)]
    assert code == 1 and lines == [2, 3, 4, 5], said
