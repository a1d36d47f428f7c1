#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the probe, the self-test and, for one card of each kind, the demo (every workload) on PoCL, which answers as a
graphics card would. run_commands.py runs all other commands on every card.

usage: run_card.py COMMAND LAYER CARD

CARD is an id of cards.json. $CLEAVE_TEST_ICDS names the folder with pocl.icd.
"""
import json
import os
import subprocess
import sys
import tempfile

from card_kit import CARDS, environment, need_layer

# class, mode, quirks that must be found, quirks that must not be found
EXPECTED = {
    "rtx-3060": ("discrete_gpu", "gpu", {"slow_fp64", "max_alloc_quarter"}, {"few_registers"}),
    "gtx-1650": ("discrete_gpu", "gpu", {"slow_fp64", "max_alloc_quarter"}, {"few_registers"}),
    "h100": ("discrete_gpu", "gpu", set(), {"slow_fp64", "few_registers"}),
    "rx-6700xt": ("discrete_gpu", "gpu", {"slow_fp64", "work_group_256"}, {"few_registers"}),
    "vega": ("discrete_gpu", "gpu", {"few_registers"}, {"slow_fp64"}),
    "arc-a770": ("discrete_gpu", "gpu", {"few_registers"}, {"slow_fp64"}),
    "iris-xe": ("integrated_gpu", "gpu", {"few_registers", "memory_is_host_ram"}, {"slow_fp64"}),
}
# One card of each kind that has kernels of its own. The others differ from these only in sizes.
DEMO = ("rtx-3060", "rx-6700xt", "vega", "iris-xe")


def run(env, folder, *command):
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True,
                          errors="replace")
    if done.returncode:
        sys.exit("%s: exit code %d\n%s%s" % (" ".join(command[1:]), done.returncode, done.stdout[-6000:],
                                             done.stderr[-3000:]))
    if "generated." in done.stderr:
        sys.exit("%s: the compiler's warnings are on standard error: %s" % (command[1], done.stderr[-3000:]))
    return done.stdout


def expect(what, got, want):
    if got != want:
        sys.exit("%s is %r, expected %r" % (what, got, want))


def check_probe(report, card, facts):
    kind, mode, some, none = EXPECTED[card]
    expect("number of devices", len(report["devices"]), 1)
    device = report["devices"][0]
    expect("name", device["name"], facts["name"])
    expect("class", device["class"], kind)
    expect("mode", report["mode"]["recommended"], mode)
    quirks = set(device["quirks"])
    if some - quirks or none & quirks:
        sys.exit("%s has the quirks %s" % (card, sorted(quirks)))


def check_selftest(results, facts):
    """Checks that all checks passed, and that the device itself computed them."""
    checks = [c for d in results["devices"] for c in d["checks"]]
    if len(checks) < 30:
        sys.exit("only %d checks were made" % len(checks))
    expect("checks that failed", [c["check"] for c in checks if not c["ok"]], [])
    expect("device", results["devices"][0]["name"], facts["name"])
    # the device's float32 differs from the reference's float64: no difference at all would mean that the host computed
    for name in ("paco shift: a", "blobs LoG: responses"):
        error = [c["error"] for c in checks if c["check"] == name]
        if not error or not error[0] > 0:
            sys.exit("%s: the device did not compute it (error %s)" % (name, error))


def main():
    command, layer, card = sys.argv[1:]
    with open(CARDS, encoding="utf-8") as file:
        facts = next(d for d in json.load(file)["devices"] if d["id"] == card)
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder, layer, card)
        env.pop("CLEAVE_SMOLLM2", None)  # the self-test has language models of its own
        report = json.loads(run(env, folder, command, "probe", "--json"))
        need_layer(env)
        check_probe(report, card, facts)
        run(env, folder, command, "selftest", "--json=selftest.json")
        with open(os.path.join(folder, "selftest.json"), encoding="utf-8") as file:
            check_selftest(json.load(file), facts)
        if card in DEMO:
            run(env, folder, command, "demo")
    print("%s: probe, self-test%s are good" % (facts["name"], " and demo" if card in DEMO else ""))


if __name__ == "__main__":
    main()
