# SPDX-License-Identifier: Apache-2.0
"""What the tests of spots and tracks share: each claim is one line, and those that are false are kept."""

WRONG = []


def say(ok, text):
    print("ok  " if ok else "FAIL", text, flush=True)
    if not ok:
        WRONG.append(text)
