# SPDX-License-Identifier: Apache-2.0
"""Tests that the package has the same structures and functions as the compiler."""
import ctypes
import os
import re
import subprocess
import sys

import pytest

from cleave import _abi, _functions, _library
from cleave.errors import BY_STATUS, LibraryError

SOURCE, BINARY = os.environ["CLEAVE_TEST_SOURCE"], os.environ["CLEAVE_TEST_BINARY"]


def compiled(tmp_path, body):
    """Returns the output of a C program with this body of main()."""
    file, program = tmp_path / "program.c", tmp_path / "program"
    file.write_text("#include <cleave/cleave.h>\n#include <stddef.h>\n#include <stdio.h>\n"
                    "int main(void)\n{\n" + body + "    return 0;\n}\n")
    done = subprocess.run(
        [os.environ["CLEAVE_TEST_CC"], "-std=c11", f"-I{SOURCE}/include", f"-I{BINARY}/include",
         str(file), "-o", str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout


def test_layouts_are_the_compilers(tmp_path):
    body, mine = "", []
    for kind in _abi.structures():
        name = getattr(kind, "head_of", kind.__name__)
        if not hasattr(kind, "head_of"):
            body += f'    printf("{name} %zu\\n", sizeof({name}));\n'
            mine.append(f"{name} {ctypes.sizeof(kind)}")
        for member, _ in kind._fields_:
            size = getattr(kind, member)
            body += (f'    printf("{name}.{member} %zu %zu\\n", offsetof({name}, {member}), '
                     f'sizeof((({name} *)0)->{member}));\n')
            mine.append(f"{name}.{member} {size.offset} {size.size}")
    assert len(mine) > 200
    assert compiled(tmp_path, body).split("\n")[:-1] == mine


def test_statuses_are_those_of_the_header(tmp_path):
    lines = "".join(f'    printf("%d {kind.name}\\n", {kind.name});\n'
                    for kind in BY_STATUS.values())
    assert compiled(tmp_path, lines) == "".join(f"{number} {kind.name}\n"
                                                for number, kind in BY_STATUS.items())
    with open(f"{SOURCE}/include/cleave/status.h", encoding="utf-8") as file:
        assert len(BY_STATUS) == len(re.findall(r"^    CLV_E_", file.read(), re.MULTILINE))


def test_functions_are_declared_with_as_many_arguments():
    text = ""
    for name in sorted(os.listdir(f"{SOURCE}/include/cleave")):
        if name.endswith(".h"):
            with open(f"{SOURCE}/include/cleave/{name}", encoding="utf-8") as file:
                text += re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
    for name, (_, arguments) in {**_functions.FUNCTIONS, **_functions.OPTIONAL}.items():
        found = re.search(rf"CLV_API [^;]*?\b{name}\s*\(([^;]*)\);", text)
        if found:
            given = [] if found.group(1).strip() == "void" else found.group(1).split(",")
            assert len(given) == len(arguments), name
        else:
            assert name == "clv_version" or name in _functions.OPTIONAL, name


@pytest.mark.parametrize("text, why", [
    ("const char *clv_version(void) { return \"7.1.0\"; }", "is version 7.1.0"),
    ("const char *clv_version(void) { return \"0.2.9\"; }", "an older 0.2.9"),
    ("int nothing;", "is not libcleave"),
])
def test_another_library_is_one_clear_error(tmp_path, text, why):
    file, library = tmp_path / "other.c", tmp_path / "libcleave.so.0.2"
    file.write_text(text + "\n")
    subprocess.run([os.environ["CLEAVE_TEST_CC"], "-shared", "-fPIC", str(file), "-o",
                    str(library)], check=True)
    done = subprocess.run([sys.executable, "-c", "import cleave"], capture_output=True, text=True,
                          check=False, env={**os.environ, "CLEAVE_LIBRARY": str(library)})
    assert done.returncode == 1
    last = done.stderr.strip().split("\n")[-1]
    assert last.startswith("cleave.errors.LibraryError") and why in last


def test_another_layout_is_one_clear_error(monkeypatch):
    other = type("clv_paco_input", (ctypes.Structure,), {"_fields_": [("cube", ctypes.c_void_p)]})
    monkeypatch.setattr(_abi, "structures", lambda: [other])
    with pytest.raises(LibraryError, match=r"clv_paco_input has \d+ bytes there, but 8 are expected"):
        _library.load(_library.lib, "libcleave.so.0.2")


def test_a_library_that_is_not_there_is_one_clear_error(tmp_path):
    done = subprocess.run([sys.executable, "-c", "import cleave"], capture_output=True, text=True,
                          check=False,
                          env={**os.environ, "CLEAVE_LIBRARY": str(tmp_path / "none.so")})
    assert "LibraryError: libcleave is not found" in done.stderr
    assert "none.so" in done.stderr


def test_the_library_that_was_asked_for_is_loaded():
    assert os.path.samefile(_library.LIBRARY_PATH, os.environ["CLEAVE_LIBRARY"])
