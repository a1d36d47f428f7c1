#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The wheel as a user meets it: its name tells the truth about glibc, its Python is that of 3.9, and in an environment
# that holds nothing else `pip install` and `python -m cleave demo` are all that it takes.
#
#   tests/package/wheel.sh FOLDER    the folder in which packaging/wheel.sh put it
set -euo pipefail
wheel=$(realpath "$(ls "$1"/cleave-*.whl)")
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

fail()
{
    echo "wheel: $1" >&2
    exit 1
}

check_name()
{
    local said
    python3 -m venv "$place/tools"
    if ! "$place/tools/bin/pip" -q install 'auditwheel<7' 2> "$place/pip.log"; then
        echo "auditwheel is not on offer: $(tail -n 1 "$place/pip.log")"
        return
    fi
    said=$("$place/tools/bin/auditwheel" show "$wheel" | tr -s ' \n' ' ' | grep -o 'platform tag to "[^"]*"')
    [[ $wheel == *-py3-none-$(echo "$said" | cut -d '"' -f 2).whl ]] ||
        fail "the name is ${wheel##*/}, and auditwheel finds the $said"
}

# Every file is Python 3.9, whatever Python runs here.
check_language()
{
    python3 - "$wheel" << 'END'
import ast, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    names = [name for name in wheel.namelist() if name.endswith(".py")]
    for name in names:
        ast.parse(wheel.read(name), name, feature_version=(3, 9))
        if b" | " in wheel.read(name) and b"from __future__ import annotations" not in wheel.read(name):
            sys.exit(f"{name}: types need `from __future__ import annotations` before Python 3.10")
    assert len(names) > 30, names
END
}

# bare COMMAND...: without anything of this machine's Cleave, its variables or its caches
bare()
{
    (cd "$place" && env -i HOME="$place" PATH="$place/user/bin:/usr/bin:/bin" LC_ALL=C.UTF-8 "$@")
}

check_use()
{
    python3 -m venv "$place/user"
    "$place/user/bin/pip" -q install "$wheel"
    bare python -c 'import cleave; print(cleave.__version__, cleave.LIBRARY_PATH)' |
        grep "$place/user/.*/bundle/lib/" ||
        fail "another library is loaded than the one in the wheel"
    bare python -m cleave --version
    bare python -m cleave demo -o demo > "$place/demo.log" ||
        { cat "$place/demo.log" && fail "python -m cleave demo"; }
    if grep -i 'differs\|fail' "$place/demo.log"; then fail "a check of the demo"; fi
    bare python -c '
import cleave, numpy as np
a = np.arange(12, dtype=np.float32).reshape(3, 4)
assert np.array_equal(cleave.matmul(a, a.T), a @ a.T)
print([device.label for device in cleave.devices()])'
    "$place/user/bin/pip" -q uninstall -y cleave
    [ -z "$(find "$place/user/lib" -name '*cleave*' -print -quit)" ] || fail "uninstalling leaves files"
}

check_name
check_language
check_use
echo "wheel: ${wheel##*/} installs and runs the demo in a bare environment"
