# SPDX-License-Identifier: Apache-2.0
"""Tests finetune(): it writes the bytes of the command, also after an interruption, and a refused call leaves no file.
"""
import filecmp
import json
import os
import signal
import subprocess

import numpy as np
import pytest

import cleave
from test_encoder import folder, make_model  # noqa: F401: a small random model

FRUIT = ["red apple", "green apples", "the apple is red", "a green apple", "apples"]
ROCKS = ["red stone", "a stone", "stones", "the stone is green", "the red stones"]
TEXTS, LABELS = FRUIT + ROCKS, ["fruit"] * 5 + ["rock"] * 5
RULES = {"epochs": 4, "batch_size": 3, "rate": 0.02, "seed": 5}


def command(folder, data, output, *options):
    return subprocess.run([os.environ["CLEAVE_COMMAND"], "finetune", folder, "--mode=reference", "-q",
                           "--data", data, "-o", output, *options], capture_output=True, text=True,
                          check=False, timeout=300)


def weights(folder):
    return os.path.join(folder, "model.safetensors")


@pytest.fixture(scope="module")
def whole(folder, tmp_path_factory, reference):
    """Returns an uninterrupted run: (folder, result)."""
    output = tmp_path_factory.mktemp("whole") / "out"
    result = cleave.finetune(folder, TEXTS, LABELS, output, validation=(TEXTS, LABELS),
                             context=reference, **RULES)
    return output, result


def test_the_bytes_are_those_of_the_command(folder, whole, tmp_path):
    output, result = whole
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{text}\t{label}\n" for text, label in zip(TEXTS, LABELS)))
    done = command(folder, data, tmp_path / "same", "--epochs=4", "--batch-size=3", "--lr=0.02",
                   "--seed=5")
    assert done.returncode == 0, done.stderr
    assert filecmp.cmp(weights(output), weights(tmp_path / "same"), shallow=False)
    mine, theirs = (json.loads((path / "config.json").read_text())
                    for path in (output, tmp_path / "same"))
    assert mine == theirs and mine["id2label"] == {"0": "fruit", "1": "rock"}
    assert sorted(os.listdir(output)) == sorted(os.listdir(tmp_path / "same"))


def test_it_learns(folder, whole, reference):
    output, result = whole
    assert result.losses.shape == (16,) and result.losses[-3:].mean() < 0.7 * result.losses[:3].mean()
    assert [found.counted for found in result.validation] == [10] * 4
    assert result.validation[-1].loss < result.validation[0].loss
    with cleave.Classifier(output, context=reference) as classifier:
        said = [classifier.classes.index(one.name) for one in classifier.classify(TEXTS)]
    matrix = np.zeros((2, 2), int)
    np.add.at(matrix, ([0] * 5 + [1] * 5, said), 1)
    assert result.confusion.tolist() == matrix.tolist()
    assert matrix.trace() == result.validation[-1].right
    one, other = (2 * matrix[c, c] / (matrix[c].sum() + matrix[:, c].sum()) for c in (0, 1))
    assert abs(result.macro_f1 - (one + other) / 2) < 1e-12
    assert (result.classes, result.resumed_at, result.device) == (["fruit", "rock"], 0, "host")
    assert cleave.embed(output, FRUIT, context=reference).shape == (5, 16)


def test_a_run_that_was_cancelled_goes_on(folder, whole, reference, tmp_path):
    seen = []

    def stop(done, total):
        seen.append((done, total))
        return done < 6
    with pytest.raises(cleave.CancelledError, match="after step 6 of 16; resume=True"):
        cleave.finetune(folder, TEXTS, LABELS, tmp_path / "out", context=reference, progress=stop,
                        **RULES)
    assert seen == [(i, 16) for i in range(1, 7)]
    assert os.listdir(tmp_path / "out") == ["checkpoint.safetensors"]
    with pytest.raises(cleave.ArgumentError, match="did not finish"):
        cleave.finetune(folder, TEXTS, LABELS, tmp_path / "out", context=reference, **RULES)
    with pytest.raises(cleave.FormatError, match="another run"):
        cleave.finetune(folder, TEXTS, LABELS, tmp_path / "out", context=reference, resume=True,
                        **{**RULES, "seed": 6})
    result = cleave.finetune(folder, TEXTS, LABELS, tmp_path / "out", context=reference, resume=True,
                             **RULES)
    assert (result.resumed_at, len(result.losses)) == (6, 10)
    assert filecmp.cmp(weights(whole[0]), weights(tmp_path / "out"), shallow=False)
    assert "checkpoint.safetensors" not in os.listdir(tmp_path / "out")


def test_what_a_progress_function_raises_at_the_end_is_raised(folder, whole, reference, tmp_path):
    def broken(done, total):
        if done == total:
            raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        cleave.finetune(folder, TEXTS, LABELS, tmp_path / "out", context=reference, progress=broken,
                        **RULES)
    assert os.listdir(tmp_path / "out") == ["checkpoint.safetensors"]
    result = cleave.finetune(folder, TEXTS, LABELS, tmp_path / "out", context=reference, resume=True,
                             **RULES)
    assert (result.resumed_at, len(result.losses)) == (16, 0)
    assert filecmp.cmp(weights(whole[0]), weights(tmp_path / "out"), shallow=False)


def test_a_test_that_fails_loses_no_epoch(folder, whole, reference, tmp_path, monkeypatch):
    def broken(*_unused):
        raise cleave.DeviceError("gone")
    with monkeypatch.context() as patched, pytest.raises(cleave.DeviceError, match="gone"):
        patched.setattr("cleave._finetune._evaluate", broken)
        cleave.finetune(folder, TEXTS, LABELS, tmp_path / "out", context=reference,
                        validation=(TEXTS, LABELS), **RULES)
    assert os.listdir(tmp_path / "out") == ["checkpoint.safetensors"]
    result = cleave.finetune(folder, TEXTS, LABELS, tmp_path / "out", context=reference, resume=True,
                             validation=(TEXTS, LABELS), **RULES)
    assert (result.resumed_at, len(result.losses), len(result.validation)) == (4, 12, 4)
    assert filecmp.cmp(weights(whole[0]), weights(tmp_path / "out"), shallow=False)


def test_ctrl_c_leaves_a_state(folder, reference, tmp_path):
    def press(done, _total):
        if done == 3:
            os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        cleave.finetune(folder, TEXTS, LABELS, tmp_path / "out", context=reference, progress=press,
                        **RULES)
    assert os.listdir(tmp_path / "out") == ["checkpoint.safetensors"]


def test_pairs(context, tmp_path):
    (tmp_path / "model").mkdir()
    folder = make_model(tmp_path / "model", 2)  # one of its layers learns
    data = tmp_path / "pairs.tsv"
    data.write_text("".join(f"{one}\t{other}\n" for one, other in zip(FRUIT, ROCKS)))
    rules = {"task": "pairs", "epochs": 3, "batch_size": 5, "rate": 0.01, "freeze": 1}
    result = cleave.finetune(folder, FRUIT, ROCKS, tmp_path / "out", validation=(FRUIT, ROCKS),
                             context=context, **rules)
    assert result.classes == [] and len(result.losses) == 3 and result.losses[2] < result.losses[0]
    with cleave.Context(mode="reference") as plain:
        cleave.finetune(folder, FRUIT, ROCKS, tmp_path / "plain", context=plain, **rules)
    done = command(folder, data, tmp_path / "same", "--task=pairs", "--epochs=3", "--batch-size=5",
                   "--lr=0.01", "--freeze=1")
    assert done.returncode == 0, done.stderr
    assert filecmp.cmp(weights(tmp_path / "plain"), weights(tmp_path / "same"), shallow=False)


def test_numbers_as_labels_keep_their_order(folder, reference, tmp_path):
    result = cleave.finetune(folder, TEXTS, np.array([10] * 5 + [9] * 5), tmp_path / "out", epochs=1,
                             context=reference)
    assert result.classes == ["9", "10"]


def test_what_is_refused_leaves_nothing(folder, reference, tmp_path):
    output = tmp_path / "out"
    (tmp_path / "file").write_text("")
    cases = [
        ((folder, TEXTS, LABELS, folder), {}, "is the folder of the model"),
        ((folder, TEXTS, LABELS, tmp_path / "file"), {}, "is not a folder"),
        ((folder, TEXTS, LABELS[:3], output), {}, "10 texts, but 3 targets"),
        ((folder, "text", LABELS, output), {}, "a list of texts is expected"),
        ((folder, [1], LABELS, output), {}, "text 0: .* a str is expected"),
        ((folder, TEXTS, "labels here", output), {}, "10 texts, but 11 targets|a list is expected"),
        ((folder, TEXTS, ["a"] * 10, output), {}, "every text has the label 'a'"),
        ((folder, TEXTS, [1.5] * 10, output), {}, "all str or all int"),
        ((folder, [], [], output), {}, "got 0 texts, but at least 1"),
        ((folder, ["a"], ["b"], output), {"task": "pairs"}, "at least 2"),
        ((folder, TEXTS, LABELS, output), {"validation": (["a"], ["x"])}, "the label 'x' is not in"),
        ((folder, TEXTS, LABELS, output), {"epochs": 0}, "epochs is 0, but it must be 1 to"),
        ((folder, TEXTS, LABELS, output), {"rate": 0}, "rate is 0.0 .* must be above 0"),
        ((folder, TEXTS, LABELS, output), {"schedule": "cosine"}, "'linear', 'constant'"),
        ((folder, TEXTS, LABELS, output), {"freeze": 9}, "9 layers are to be frozen, but the model has only 1"),
        ((folder, TEXTS, LABELS, output), {"freeze": -1}, "freeze is -1, but it must be 0 to"),
        ((folder, TEXTS, LABELS, output), {"save_every": -1}, "save_every is -1, but it must be 0 to"),
        ((folder, TEXTS, LABELS, output), {"epochs": 1.5}, "epochs is 1.5, but it must be an integer"),
        ((folder, TEXTS, LABELS, output), {"clip": -2.0}, "clip is -2"),
        ((folder, FRUIT, ROCKS, output), {"task": "pairs", "freeze": 1},
         "all 1 layers of the model are frozen, .* nothing to train"),
        ((folder, TEXTS, LABELS, output), {"resume": True}, "there is no"),
    ]
    for arguments, options, why in cases:
        with pytest.raises(ValueError, match=why):
            cleave.finetune(*arguments, context=reference, **options)
        assert not os.path.exists(output), why
    with pytest.raises(cleave.ArgumentError, match="has diverged"):
        cleave.finetune(folder, TEXTS, LABELS, output, context=reference, optimizer="sgd", rate=1e3,
                        clip=0, epochs=40)
    assert not os.path.exists(weights(output))


def test_files_of_another_model_are_in_the_way(folder, reference, tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(cleave.ArgumentError, match="has a file tokenizer.json, which the trained"):
        cleave.finetune(folder, TEXTS, LABELS, tmp_path, context=reference, **RULES)
    assert os.listdir(tmp_path) == ["tokenizer.json"]


def test_what_was_learnt_outlives_a_folder_that_cannot_be_completed(folder, whole, reference, tmp_path):
    (tmp_path / "model.safetensors").mkdir()
    with pytest.raises(cleave.FileError, match="is a directory"):
        cleave.finetune(folder, TEXTS, LABELS, tmp_path, context=reference, **RULES)
    (tmp_path / "model.safetensors").rmdir()
    result = cleave.finetune(folder, TEXTS, LABELS, tmp_path, context=reference, resume=True, **RULES)
    assert result.resumed_at == 16
    assert filecmp.cmp(weights(whole[0]), weights(tmp_path), shallow=False)
    assert sorted(os.listdir(whole[0])) == sorted(os.listdir(tmp_path))
