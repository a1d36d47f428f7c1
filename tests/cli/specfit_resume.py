#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a run of `cleave specfit --resume` that is killed several times ends with the bytes of a run that was not
killed.

usage: specfit_resume.py CLEAVE
A run that is killed leaves a journal and no table, and the next run continues after the journal's last star. If a
journal is cut or damaged, only the lost stars are fitted again. A journal is refused if it belongs to another run, if
it is being written, or if a number of the grid (made here) has changed. The journal is removed when the table is
complete."""
import json
import math
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import paco_kit
import testdata

AXES = (3.5, 4.1), (0, 6), (-4, 1), (-1, 2)  # log10 of the temperature, logg, [Fe/H], [alpha/Fe]


class Runs:
    def __init__(self, cleave, folder, library=None, stars=8):
        self.base = [cleave, "specfit", testdata.path_of("specfit/data/coadd-synth-a.fits.gz"),
                     "--library", library or testdata.path_of("specfit/lib"), "--mode", "reference",
                     "--no-progress", "--starts", "2", "--targets",
                     ",".join(str(39600000000000 + i) for i in range(stars))]
        self.folder = folder
        self.table, self.models = self.path("t.fits"), self.path("m.fits")
        self.journal = self.table + ".journal"
        self.resume = ["-o", self.table, "--models", self.models, "--resume", "--save-every", "2"]

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *arguments, code=0):
        done = subprocess.run([*self.base, *arguments], capture_output=True, text=True, timeout=300)
        if done.returncode != code:
            sys.exit(f"{arguments}: exit code {done.returncode}, expected {code}\n{done.stderr}")
        return done.stderr

    def start(self):
        """Starts a run, and stops it when it has saved something more."""
        before = stars_in(self.journal)
        running = subprocess.Popen([*self.base, *self.resume], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        while running.poll() is None and stars_in(self.journal) <= before:
            time.sleep(0.002)
        running.send_signal(signal.SIGSTOP)
        if running.poll() is not None:
            sys.exit("the run ended before it could be killed: not a test of anything")
        return running

    def kill(self):
        running = self.start()
        running.kill()
        running.wait(timeout=60)


def stars_in(journal):
    """Returns the number of stars in whole records; a run may be stopped while it writes one."""
    if not os.path.exists(journal):
        return 0
    data = read(journal)
    magic = data.find(b"\n") + 1
    at = magic + 8 + int.from_bytes(data[magic:magic + 8], "little")
    stars = 0
    while at + 64 <= len(data):
        count, size = struct.unpack_from("<QQ", data, at + 16)
        at += 64 + size
        stars += count if at <= len(data) else 0
    return stars


def read(path):
    with open(path, "rb") as file:
        return file.read()


def make_grid(folder):
    """Makes a grid with two nodes per axis, and lines that become deeper from corner to corner."""
    with open(os.path.join(testdata.path_of("specfit/lib"), "lib.json"), encoding="ascii") as file:
        library = json.load(file)
    for name, arm in library["arms"].items():
        own, points = os.path.join(folder, name), arm["npix"]
        os.makedirs(own)
        shutil.copy(os.path.join(testdata.path_of("specfit/lib"), name, "ccf_models.npy"), own)
        del arm["layers"]
        arm["nodes"] = [2] * 4
        write_axes(own, AXES)
        paco_kit.npy_write(os.path.join(own, "grid.npy"), [2] * 4, range(16), "<i4")
        write_flux(own, points)
    for name in os.listdir(testdata.path_of("specfit/lib")):
        if name.endswith(".npy"):
            shutil.copy(os.path.join(testdata.path_of("specfit/lib"), name), folder)
    with open(os.path.join(folder, "lib.json"), "w", encoding="ascii") as file:
        json.dump(library, file)


def write_axes(own, axes):
    for k, nodes in enumerate(axes):
        paco_kit.npy_write(os.path.join(own, f"axis_{k}.npy"), [2], nodes, "<f8")


def write_flux(own, points, last=0.0):
    flux = [0.01 * (row + 1) * math.sin(0.37 * i) for row in range(16) for i in range(points)]
    flux[-1] += last
    paco_kit.npy_write(os.path.join(own, "log_flux.npy"), [16, points], flux)


def check_grid(cleave, folder, expect):
    library = os.path.join(folder, "grid")
    make_grid(library)
    runs = Runs(cleave, folder, library, stars=5)
    runs.run("-o", runs.path("want.fits"), "--models", runs.path("want-models.fits"))
    runs.kill()
    own, points = os.path.join(library, "desi_r"), 2369

    def expect_refused(what):
        told = runs.run(*runs.resume, code=2)
        expect(f"{what}: {told!r}", "another run" in told and "library" in told)

    write_flux(own, points, 1e-3)
    expect_refused("a number of the grid")
    write_flux(own, points)
    write_axes(own, [*AXES[:3], (-1, 2.5)])
    expect_refused("a node")
    write_axes(own, AXES)
    paco_kit.npy_write(os.path.join(own, "grid.npy"), [2] * 4, [*range(15), -1], "<i4")
    expect_refused("a node without a spectrum")
    paco_kit.npy_write(os.path.join(own, "grid.npy"), [2] * 4, range(16), "<i4")
    expect("a grid as it was", "resuming after" in runs.run(*runs.resume))
    expect("a grid: other bytes", read(runs.table) == read(runs.path("want.fits")) and
           read(runs.models) == read(runs.path("want-models.fits")))


def main():
    wrong = []

    def expect(what, good):
        if not good:
            wrong.append(what)

    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(sys.argv[1], folder)
        runs.run("-o", runs.path("want.fits"), "--models", runs.path("want-models.fits"))
        want = read(runs.path("want.fits")), read(runs.path("want-models.fits"))

        def expect_same(what):
            expect(f"{what}: other bytes", (read(runs.table), read(runs.models)) == want)
            expect(f"{what}: the journal is left", not os.path.exists(runs.journal))

        runs.kill()
        expect("a table after a kill", not os.path.exists(runs.table))
        first = read(runs.journal)
        runs.kill()  # the second run continues after the first one
        second = read(runs.journal)
        expect("the second run began again", second[:len(first)] == first and
               len(second) > len(first))
        told = runs.run(*runs.resume)
        expect(f"no word on going on: {told!r}", "resuming after" in told)
        expect_same("killed twice")
        for what, damaged in (("cut", second[:-100]), ("a bit flipped", second[:-100] + bytes(
                [second[-100] ^ 1]) + second[-99:]), ("only begun", first[:40]), ("empty", b"")):
            with open(runs.journal, "wb") as file:
                file.write(damaged)
            if what == "only begun":
                expect("half a head", "damaged" in runs.run(*runs.resume, code=2))
                continue
            runs.run(*runs.resume)
            expect_same(what)
        with open(runs.journal, "wb") as file:
            file.write(second)
        told = runs.run(*runs.resume, "--npoly", "9", code=2)
        expect(f"other options: {told!r}", "another run" in told and "options" in told)
        told = runs.run(*runs.resume, "--targets", "39600000000001", code=2)
        expect(f"other stars: {told!r}", "selection" in told)
        expect("a refused journal is gone", read(runs.journal) == second)
        with open(runs.journal, "wb") as file:
            file.write(b"SIMPLE  = a file of the user's own, which nobody may overwrite")
        expect("a file that is no journal", "not a journal" in runs.run(*runs.resume, code=2))
        expect("it was overwritten", read(runs.journal).startswith(b"SIMPLE"))
        os.unlink(runs.journal)
        os.unlink(runs.table)
        running = runs.start()
        told = runs.run(*runs.resume, code=1)
        expect(f"two at once: {told!r}", "another run is writing" in told)
        running.send_signal(signal.SIGCONT)
        expect("the first of two", running.wait(timeout=300) == 0)
        expect_same("the first of two")
        expect("--resume without a file", "-o FILE" in runs.run("-o", "-", "--resume", code=2))
    with tempfile.TemporaryDirectory() as folder:
        check_grid(sys.argv[1], folder, expect)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
