# SPDX-License-Identifier: Apache-2.0
"""Tests wheels and `python -m cleave`."""
import os
import re
import subprocess
import sys
import zipfile

import pytest

import cleave

PYTHON = os.path.join(os.environ["CLEAVE_TEST_SOURCE"], "python")


def run(*command, **environment):
    env = {**os.environ, **environment}
    return subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          check=False, env={k: v for k, v in env.items() if v is not None})


def make_wheel(folder, **environment):
    done = run(sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1]); import backend;"
               "print(backend.build_wheel(sys.argv[2]))", PYTHON, folder, **environment)
    assert done.returncode == 0, done.stderr
    return os.path.join(folder, done.stdout.strip())


def test_versions_agree():
    with open(os.path.join(os.environ["CLEAVE_TEST_SOURCE"], "CMakeLists.txt"),
              encoding="utf-8") as file:
        assert re.search(r"project\(cleave VERSION (\S+)", file.read()).group(1) == \
            cleave.__version__


def test_pip_installs_it_without_a_network(tmp_path):
    if run(sys.executable, "-m", "pip", "--version").returncode:
        pytest.skip("no pip")
    target = tmp_path / "site"
    done = run(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
               "--disable-pip-version-check", "--target", target, PYTHON)
    assert done.returncode == 0, done.stdout + done.stderr
    asked = run(sys.executable, "-c", "import cleave; print(cleave.__file__)", PYTHONPATH=str(target))
    assert asked.stdout.startswith(str(target)), asked.stderr
    assert (target / "cleave" / "py.typed").exists()


def test_a_wheel_has_the_same_bytes_every_time(tmp_path):
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    first, second = make_wheel(tmp_path / "a"), make_wheel(tmp_path / "b")
    assert first.endswith("-py3-none-any.whl")
    with open(first, "rb") as a, open(second, "rb") as b:
        assert a.read() == b.read()
    with zipfile.ZipFile(first) as wheel:
        names = wheel.namelist()
        records = wheel.read(names[-1]).decode().splitlines()
        assert wheel.testzip() is None and len(records) == len(names)
    have = {f"cleave/{n}" for n in os.listdir(os.path.join(PYTHON, "cleave")) if n.endswith(".py")}
    assert have <= set(names)


def test_a_wheel_with_a_bundle_carries_the_library(tmp_path):
    bundle = tmp_path / "bundle"
    (bundle / "lib").mkdir(parents=True), (bundle / "bin").mkdir()
    with open(os.environ["CLEAVE_LIBRARY"], "rb") as file:
        (bundle / "lib" / "libcleave.so.0.2.0").write_bytes(file.read())
    (bundle / "lib" / "libcleave.so.0.2").symlink_to("libcleave.so.0.2.0")
    (bundle / "bin" / "cleave").write_text("#!/bin/sh\necho \"carried: $*\"\n")
    (bundle / "bin" / "cleave").chmod(0o755)
    wheel = make_wheel(tmp_path, CLEAVE_WHEEL_BUNDLE=str(bundle))
    assert "linux" in os.path.basename(wheel)
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        assert "cleave/bundle/lib/libcleave.so.0.2.0" not in archive.namelist()
        for info in archive.infolist():
            archive.extract(info, site)
            os.chmod(site / info.filename, info.external_attr >> 16 or 0o644)
    asked = run(sys.executable, "-c", "import cleave; print(cleave.LIBRARY_PATH)",
                PYTHONPATH=str(site), CLEAVE_LIBRARY=None, CLEAVE_COMMAND=None)
    assert asked.stdout.strip() == str(site / "cleave/bundle/lib/libcleave.so.0.2"), asked.stderr
    command = run(sys.executable, "-m", "cleave", "one", "two", PYTHONPATH=str(site),
                  CLEAVE_LIBRARY=None, CLEAVE_COMMAND=None)
    assert (command.stdout, command.returncode) == ("carried: one two\n", 0)


def test_python_m_cleave_is_the_command():
    done = run(sys.executable, "-m", "cleave", "--version")
    assert done.stdout.split()[:2] == ["cleave", cleave.__version__]
    assert run(sys.executable, "-m", "cleave", "nonsense").returncode == 2
    gone = run(sys.executable, "-m", "cleave", CLEAVE_COMMAND="/does/not/exist")
    assert gone.returncode == 1 and "/does/not/exist" in gone.stderr


def test_everything_public_is_described():
    for name in cleave.__all__:
        thing = getattr(cleave, name)
        if callable(thing):
            assert thing.__doc__, name
            if not isinstance(thing, type):
                hints = dict(thing.__annotations__)
                assert "return" in hints, name
    assert "{options}" not in cleave.blobs.__doc__ + cleave.BlobStream.__doc__
