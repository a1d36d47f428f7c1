# SPDX-License-Identifier: Apache-2.0
"""The README of the package is run from top to bottom: what it says it prints, it prints."""
import contextlib
import doctest
import io
import os
import re

import pytest

README = os.path.join(os.environ["CLEAVE_TEST_SOURCE"], "python", "README.md")
NOT_RUN = "<!-- not run"


def blocks():
    """(line, code, expected output or None) of each block of Python."""
    with open(README, encoding="utf-8") as file:
        text = file.read()
    fences = list(re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    for fence, after in zip(fences, [*fences[1:], None]):
        before = text[:fence.start()].rstrip().rsplit("\n", 1)[-1]
        if fence.group(1) == "python" and not before.startswith(NOT_RUN):
            follows = after is not None and after.group(1) == "text" and \
                not text[fence.end():after.start()].strip()
            yield (text[:fence.start()].count("\n") + 2, fence.group(2),
                   after.group(2) if follows else None)


def test_every_block_does_what_it_says():
    found, names = list(blocks()), {}
    assert len(found) >= 9 and all(expected for _, _, expected in found)
    same = doctest.OutputChecker().check_output
    for line, code, expected in found:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (line - 1) + code, README, "exec"), names)
        got = printed.getvalue()
        if not same(expected, got, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE):
            pytest.fail(f"README.md:{line}: expected\n{expected}\nprinted\n{got}", pytrace=False)
