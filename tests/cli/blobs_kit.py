# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of spots and tracks; a test makes each claim in one line, and false claims are collected."""

WRONG = []


def say(ok, text):
    print("ok  " if ok else "FAIL", text, flush=True)
    if not ok:
        WRONG.append(text)
