#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests --shard and `cleave merge`, in plain C: for every command that has --shard, any number of shards gives the
bytes of a local run. Records that are missing, duplicate, damaged, or of other inputs or commands are refused.

usage: shards.py CLEAVE [CASE...]"""
import os
import sys
import tempfile

import cluster_kit as kit
from text_embed import WRONG


def shard(case, number, count, record):
    return kit.run(*kit.line_of(case, "out"), "--shard", f"{number}/{count}", "--record", record)


def check_case(case, counts):
    wanted = kit.local(case)
    for count in counts:
        kit.fresh("out")
        records = [f"{case}-{i}-of-{count}" for i in range(1, count + 1)]
        for i, record in enumerate(records):
            done = shard(case, i + 1, count, record)
            if done.returncode or done.stdout or done.stderr:
                kit.wrong(f"{case} {i + 1}/{count}: {done.returncode} {done.stderr.decode()}")
            if os.listdir("out") and kit.files_in("out"):
                kit.wrong(f"{case} {i + 1}/{count}: a shard wrote {os.listdir('out')}")
        kit.same(f"{case} from {count}", kit.run("merge", "-q", *reversed(records)), wanted)


def refuses(part, *arguments, code=2):
    kit.fresh("out")
    done = kit.run(*arguments)
    said = done.stderr.decode()
    if done.returncode != code or part not in said or said.count("\n") != 1 or kit.files_in("out"):
        kit.wrong(f"{' '.join(arguments)}: {done.returncode} {said!r}, expected {code} and {part!r}")


def damaged(name, change):
    with open(name, "rb") as file:
        data = bytearray(file.read())
    data = change(data)
    with open("damaged", "wb") as file:
        file.write(data)
    return "damaged"


def flipped(at):
    def change(data):
        data[at] ^= 1
        return data
    return change


def check_refusals():
    line = kit.line_of("search", "out")
    for i in 1, 2, 3:
        shard("search", i, 3, f"part-{i}")
    kit.run(*line, "--top", "6", "--shard", "2/3", "--record", "other")
    shard("search", 2, 4, "quarter")
    rest = ["-q", "part-1", "part-3"]
    refuses("RECORD is missing", "merge")
    refuses("only 2 of the 3 shards are given; missing: 2", "merge", *rest)
    refuses("shard 1 of 3 is given twice", "merge", *rest, "part-2", "part-1")
    refuses("come from different commands", "merge", *rest, "other")
    refuses("they do not belong together", "merge", *rest, "quarter")
    refuses("cannot open", "merge", *rest, "none")
    refuses("is not a record of a shard", "merge", *rest, "rows.npy")
    size = os.path.getsize("part-2")
    for at in 16, 40, 60, size - 200, size // 2:
        refuses("damaged", "merge", *rest, damaged("part-2", flipped(at)))
    for length in size - 1, size - 96, size // 2, 40, 20, 8, 0:
        refuses("damaged" if length > 200 else "", "merge", *rest, damaged("part-2", lambda data: data[:length]))
    os.rename("rows.npy", "away.npy")
    refuses("rows.npy", "merge", *rest, "part-2")
    os.rename("away.npy", "rows.npy")
    kit.write_npy("queries.npy", "<f4", (3, kit.NUMBERS), bytes(12 * kit.NUMBERS))
    refuses("queries.npy has changed since", "merge", *rest, "part-2")
    shard("search", 2, 3, "part-2")
    refuses("has changed between the shards", "merge", *rest, "part-2")
    for text in "0/3", "4/3", "1", "1/", "/2", "x/2", "1/2/3", "-1/2", "1/200000":
        refuses(f'--shard is "{text}"', *line, "--shard", text, "--record", "r")
    refuses("--record is missing", *line, "--shard", "1/2")
    refuses("--shard is missing", *line, "--record", "r")
    refuses("--record", *line, "--shard", "1/2", "--record", "no-folder/r", code=1)
    refuses("cannot be used together", *kit.line_of("blobs", "out"), "--threshold-scope", "movie", "--shard", "1/2",
            "--record", "r")
    refuses("cannot be used together", *kit.line_of("specfit", "out"), "--resume", "--shard", "1/2", "--record", "r")
    refuses("--sub-devices cannot be used together", *line, "--devices-per-rank", "1", "--sub-devices", "2")
    if os.path.exists("r"):
        kit.wrong("a refused shard left a record")
    done = kit.run(*line, "--shard", "1/2", "--record", "/dev/full")
    if done.returncode != 1 or b"No space left" not in done.stderr:
        kit.wrong(f"a full disk: {done.returncode} {done.stderr}")
    for case in "blobs", "paco", "specfit", "embed":  # formerly bad input, exit code 2, in the commands that read files
        refuses("No space left", *kit.line_of(case, "out"), "--shard", "1/2", "--record", "/dev/full", code=1)


def check_short_names():
    """Tests the beginnings of --shard and --record. Formerly they stayed among the arguments of the record: several
    shards could not be merged, and merging a single one wrote nothing, with exit code 0."""
    wanted = kit.local("search")
    kit.fresh("out")
    for i in 1, 2:
        kit.run(*kit.line_of("search", "out"), f"--shar={i}/2", "--rec", f"short-{i}")
    kit.same("short names", kit.run("merge", "-q", "short-1", "short-2"), wanted)
    kit.fresh("out")
    kit.run(*kit.line_of("search", "out"), "--sha", "1/1", "--recor=short")
    kit.same("short names of one shard", kit.run("merge", "-q", "short"), wanted)


def check_nothing():
    """Tests a search for no query. Formerly a shard of it had exit code 0 and no record, and codes were promised."""
    kit.write_npy("none.npy", "<f4", (0, kit.NUMBERS), b"")
    done = kit.run("search", "rows.npy", "--queries", "none.npy", "--first-pass", "int8", "--codes", "none-codes.npy",
                   "-o", "none.csv", "--mode=reference")
    if done.returncode or b"next search" in done.stdout or os.path.exists("none-codes.npy"):
        kit.wrong(f"codes for no query: {done.returncode} {done.stdout.decode()}")
    kit.fresh("out")
    line = ["none.npy" if word == "queries.npy" else word for word in kit.line_of("search", "out")]
    for i in 1, 2:
        done = kit.run(*line, "--shard", f"{i}/2", "--record", f"none-{i}")
        if done.returncode or done.stdout or done.stderr or not os.path.exists(f"none-{i}"):
            kit.wrong(f"no query {i}/2: {done.returncode} {done.stderr.decode()}")
    done = kit.run("merge", "-q", "none-1", "none-2")
    if done.returncode or sorted(kit.files_in("out")) != ["found.csv"]:
        kit.wrong(f"no query: {done.returncode} {done.stderr.decode()} {sorted(kit.files_in('out'))}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        kit.make_inputs()
        for case in sys.argv[2:] or kit.CASES:
            check_case(case, (1, 3, 7) if case == "search" else (3,) if case in ("blobs", "paco") else (2,))
        if not sys.argv[2:]:
            check_short_names()
            check_nothing()
            check_refusals()
        os.chdir("/")
    print("\n".join(WRONG))
    sys.exit(bool(WRONG))


main()
