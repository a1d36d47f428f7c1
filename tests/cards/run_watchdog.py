#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a job of the static schedule, and a large product, on a simulated card that drives a display. The watchdog must
end no launch. On the same card without a display, Cleave takes longer launches, which the watchdog would end: this
shows that the test would notice them.

usage: run_watchdog.py PROGRAM LAYER

PROGRAM is card_overlap. $CLEAVE_TEST_ICDS names the folder with pocl.icd.
"""
import json
import os
import subprocess
import sys
import tempfile

from card_kit import CARDS, environment, need_layer

# nanoseconds of a work-item, limit of a launch in seconds: the whole job takes 2.4 s, the whole product 2.1 s
TIMES = {"static": ("5e7", "0.5"), "product": ("4000", "1.5")}


def ended_launches(program, layer, what, display):
    with tempfile.TemporaryDirectory() as folder:
        with open(CARDS, encoding="utf-8") as file:
            cards = json.load(file)
        for card in cards["devices"]:
            card["nv_kernel_timeout"] = display
        with open(os.path.join(folder, "cards.json"), "w", encoding="utf-8") as file:
            json.dump(cards, file)
        item_ns, limit_s = TIMES[what]
        env = environment(folder, layer, "gtx-1650", CLEAVE_CARD_ITEM_NS=item_ns, CLEAVE_CARD_WATCHDOG_S=limit_s,
                          CLEAVE_CARD_RUN_UP_TO="64")
        env["CLEAVE_CARD"] = file.name + "#gtx-1650"
        done = subprocess.run([program, os.path.join(folder, "trace.json"), what], env=env, capture_output=True,
                              text=True)
        if "needs a GPU" in done.stderr:
            need_layer(env)
    ended = done.stderr.count("the watchdog ended")
    if done.returncode and not ended:
        sys.exit("card_overlap: exit code %d\n%s" % (done.returncode, done.stderr))
    return ended


def main():
    program, layer = sys.argv[1:]
    for what in TIMES:
        if ended_launches(program, layer, what, True):
            sys.exit("%s: the watchdog of a display ended a launch" % what)
        if not ended_launches(program, layer, what, False):
            sys.exit("%s: no launch was long enough for the watchdog, so that this test shows nothing" % what)


if __name__ == "__main__":
    main()
