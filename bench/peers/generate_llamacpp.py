# SPDX-License-Identifier: Apache-2.0
"""Measures llama.cpp by llama-cpp-python (PyPI), on the CPU with as many threads as this process has cores, with the
same model file and the same tokens as bench/command/generate.c."""
import ctypes
import json
import os
import time

import llama_cpp
import llama_cpp.llama_cpp as lib

SAME_FORMULAS = False
FROM_FILES = False
PROMPT, TOKENS = range(2)  # as in bench/command/generate.c
CHOSEN, OPEN, SPENT = {}, {}, {}
SILENT = lib.llama_log_callback(lambda *_: None)


def threads():
    return len(os.sched_getaffinity(0))


def name():
    return f"llama.cpp (llama-cpp-python {llama_cpp.__version__}), {threads()} threads"


def can(case):
    return case["workload"] == "generate"


def choose(case):
    CHOSEN.update(case)


def load(folder):
    """A model and its context, which are opened once for all cases."""
    if "context" not in OPEN:
        lib.llama_log_set(SILENT, ctypes.c_void_p(0))
        lib.llama_backend_init()
        with open(os.path.join(folder, "model.json"), encoding="utf-8") as file:
            path = json.load(file)["model"]
        options = lib.llama_model_default_params()
        options.n_gpu_layers = 0
        OPEN["model"] = lib.llama_model_load_from_file(path.encode(), options)
        if not OPEN["model"]:
            raise RuntimeError("llama.cpp does not open " + path)
        sizes = lib.llama_context_default_params()
        sizes.n_ctx = 1024
        sizes.n_batch, sizes.n_ubatch = 2048, 512
        sizes.n_threads = sizes.n_threads_batch = threads()
        OPEN["context"] = lib.llama_init_from_model(OPEN["model"], sizes)
    words = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(OPEN["model"]))
    return [i * 7919 % words for i in range(1024)]


def feed(ids):
    batch = (lib.llama_token * len(ids))(*ids)
    if lib.llama_decode(OPEN["context"], lib.llama_batch_get_one(batch, len(ids))):
        raise RuntimeError("llama.cpp does not take the tokens")
    return lib.llama_get_logits_ith(OPEN["context"], -1)[0]


def is_part():
    """Returns whether the case measures only a part of the work, whose time is taken here."""
    return True


def part_seconds(ids):
    count, behind = CHOSEN["size"][:2]
    lib.llama_memory_clear(lib.llama_get_memory(OPEN["context"]), True)
    if CHOSEN["variant"] == TOKENS:
        feed(ids[:behind])
    started, spent = time.perf_counter(), time.process_time()
    if CHOSEN["variant"] == PROMPT:
        feed(ids[:count])
    else:
        for i in range(count):
            feed([ids[behind + i]])
    seconds = time.perf_counter() - started
    spent, case = time.process_time() - spent, CHOSEN["case"]
    SPENT[case] = min(spent, SPENT.get(case, spent))
    return seconds


def part_note():
    return f"{1e3 * SPENT[CHOSEN['case']] / CHOSEN['size'][0]:.2f} ms of processor time per token"
