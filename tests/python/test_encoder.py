# SPDX-License-Identifier: Apache-2.0
"""Tests tokens, vectors and a few steps of training, on a small model with random weights."""
import json
import os
import shutil
import struct
import threading
import time

import numpy as np
import pytest

import cleave

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "red", "green", "apple", "stone",
         "##s", "is", "the"]
WIDTH, FFN = 16, 32


def write_tensors(path, tensors):
    header, data = {}, b""
    for name, value in tensors.items():
        raw = value.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def make_model(made, layers):
    (made / "config.json").write_text(json.dumps({
        "model_type": "bert", "hidden_size": WIDTH, "num_attention_heads": 2,
        "num_hidden_layers": layers, "intermediate_size": FFN, "hidden_act": "gelu",
        "layer_norm_eps": 1e-12, "max_position_embeddings": 32, "vocab_size": len(WORDS),
        "type_vocab_size": 2, "position_embedding_type": "absolute"}))
    (made / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (made / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": 32}))
    random = np.random.default_rng(1)
    shapes = {"embeddings.word_embeddings.weight": (len(WORDS), WIDTH),
              "embeddings.position_embeddings.weight": (32, WIDTH),
              "embeddings.token_type_embeddings.weight": (2, WIDTH)}
    norms = ["embeddings.LayerNorm"]
    for layer in (f"encoder.layer.{i}." for i in range(layers)):
        for name, shape in {"attention.self.query": (WIDTH, WIDTH),
                            "attention.self.key": (WIDTH, WIDTH),
                            "attention.self.value": (WIDTH, WIDTH),
                            "attention.output.dense": (WIDTH, WIDTH),
                            "intermediate.dense": (FFN, WIDTH), "output.dense": (WIDTH, FFN)}.items():
            shapes[layer + name + ".weight"], shapes[layer + name + ".bias"] = shape, shape[:1]
        norms += [layer + "attention.output.LayerNorm", layer + "output.LayerNorm"]
    tensors = {name: 0.3 * random.standard_normal(shape) for name, shape in shapes.items()}
    for name in norms:
        tensors[name + ".weight"], tensors[name + ".bias"] = np.ones(WIDTH), np.zeros(WIDTH)
    write_tensors(made / "model.safetensors", tensors)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("model"), 1)


def test_tokens(folder):
    ids = cleave.tokenize(folder, ["The red apples", "", "stone?"])
    assert [list(row) for row in ids] == [[2, 12, 6, 8, 10, 3], [2, 3], [2, 9, 1, 3]]
    assert cleave.tokenize(folder, []) == []
    with pytest.raises(cleave.ArgumentError):
        cleave.tokenize(folder, "one text")
    with pytest.raises(cleave.Error):
        cleave.tokenize(folder / "nothing", ["a"])


def test_vectors(folder, reference, context):
    texts = ["the apple is red", "a stone", "the apple is red", ""]
    encoder = cleave.Encoder(folder, context=reference)
    vectors = encoder.embed(texts)
    assert vectors.shape == (4, WIDTH) and encoder.width == WIDTH
    unit = encoder.encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-5)
    assert np.array_equal(vectors[0], vectors[2]) and unit[0] @ unit[1] < 0.999
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1).min() > 0.1  # without modules.json, as in sentence-transformers
    assert encoder.embed([]).shape == (0, WIDTH)
    encoder.close()
    with pytest.raises(cleave.ArgumentError, match="closed"):
        encoder.embed(texts)
    np.testing.assert_allclose(cleave.embed(folder, texts, context=context), vectors, atol=1e-5)


@pytest.mark.parametrize("normalizes", (False, True))
def test_folders_may_ask_for_shorter_vectors(folder, reference, context, tmp_path, normalizes):
    mine = tmp_path / "short"
    shutil.copytree(folder, mine)
    about = mine / "config_sentence_transformers.json"
    if normalizes:
        (mine / "1_Pooling").mkdir()
        (mine / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
        modules = (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))
        (mine / "modules.json").write_text(json.dumps([
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (kind, path) in enumerate(modules)]))
    texts = ["apple", "stone is green"]
    with cleave.Encoder(mine, context=reference) as plain:
        whole = plain.encode(texts)
    assert np.allclose(np.linalg.norm(whole, axis=1), 1) == normalizes
    for wanted in (1, 5, WIDTH, 10 * WIDTH, None):
        about.write_text(json.dumps({"truncate_dim": wanted}))
        with cleave.Encoder(mine, context=reference) as encoder, cleave.Encoder(mine, context=context) as device:
            short = encoder.encode(texts)
            assert short.shape == (2, min(wanted or WIDTH, WIDTH)) == (2, encoder.width)
            # divided by the length of the whole vector, and not a second time by its own length
            np.testing.assert_allclose(short, whole[:, :encoder.width], atol=2e-7)
            np.testing.assert_allclose(device.encode(texts), short, atol=1e-5)
    for wrong in (0, -3, 2.5, "8", True):
        about.write_text(json.dumps({"truncate_dim": wrong}))
        with pytest.raises(cleave.FormatError, match="truncate_dim is"):
            cleave.Encoder(mine, context=reference)


@pytest.mark.parametrize("name, wrong", [("prompts", ["query"]), ("prompts", "query"), ("default_prompt_name", 5),
                                         ("similarity_fn_name", ["dot"])])
def test_settings_of_another_kind_are_refused(folder, reference, tmp_path, name, wrong):
    mine = tmp_path / "wrong"
    shutil.copytree(folder, mine)
    (mine / "config_sentence_transformers.json").write_text(json.dumps({name: wrong}))
    with pytest.raises(cleave.FormatError, match=f'config_sentence_transformers.json: "{name}" is '):
        cleave.Encoder(mine, context=reference)


def test_arguments_of_sentence_transformers(folder, reference, tmp_path):
    mine = tmp_path / "prompts"
    shutil.copytree(folder, mine)
    about = mine / "config_sentence_transformers.json"
    about.write_text(json.dumps({"prompts": {"query": "the red ", "none": ""}, "default_prompt_name": "query"}))
    texts = ["apple", "stone is green"]
    with cleave.Encoder(folder, context=reference) as plain, cleave.Encoder(mine, context=reference) as encoder:
        wanted = plain.encode(["the red " + each for each in texts])
        assert np.array_equal(encoder.encode(texts), wanted)
        assert np.array_equal(encoder.embed(texts, prompt_name="none"), plain.embed(texts))
        assert np.array_equal(encoder.encode(texts, prompt=""), plain.embed(texts))
        assert np.array_equal(plain.encode(texts, None, "the red ", 8), wanted)
        assert not np.array_equal(plain.encode(texts), wanted)
        short = encoder.encode(texts, truncate_dim=5, normalize_embeddings=True)
        np.testing.assert_allclose(short, wanted[:, :5] / np.linalg.norm(wanted[:, :5], axis=1, keepdims=True),
                                   atol=1e-6)
        cosines = encoder.similarity(wanted, short.repeat(4, 1)[:, :WIDTH])
        assert cosines.shape == (2, 2) and abs(encoder.similarity(wanted, wanted)[0, 0] - 1) < 1e-6
        for named, why in (({"prompt_name": "passage"}, "no prompt 'passage'"),
                           ({"precision": "int4"}, "precision is 'int4'"), ({"device": "cuda"}, "Encoder\\(context"),
                           ({"prompt": "a", "prompt_name": "none"}, "cannot be used together"),
                           ({"truncate_dim": 99}, "truncate_dim")):
            with pytest.raises(cleave.ArgumentError, match=why):
                encoder.encode(texts, **named)
        with pytest.warns(UserWarning, match="1 of 2 texts were cut"):
            plain.encode(["apple " * 99, "stone"])
    about.write_text(json.dumps({"prompts": {}, "default_prompt_name": "query"}))
    with pytest.raises(cleave.FormatError, match="default_prompt_name is .query."):
        cleave.Encoder(mine, context=reference)


def test_how_far_it_is_is_told(folder, reference):
    encoder, seen = cleave.Encoder(folder, context=reference), []
    encoder.embed(["a red apple"] * 50, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (50, 50)
    calls = len(seen)
    encoder.embed(["a stone"])  # the function is not called any more
    assert len(seen) == calls
    with pytest.raises(KeyError, match="mine"):
        def broken(_done, _total):
            raise KeyError("mine")
        encoder.embed(["a red apple"], progress=broken)
    encoder.close()


def test_a_progress_function_may_ask_but_not_call(folder, reference):
    """The function would wait for its own call for ever, and Ctrl-C would have to wait for that call."""
    encoder, found = cleave.Encoder(folder, context=reference), []

    def asks(_done, _total):
        found.append((encoder.width, len(encoder.tokenize(["apple", "stone"]))))
        for forbidden in (encoder.close, lambda: encoder.embed(["a stone"])):
            with pytest.raises(cleave.ArgumentError, match="Encoder: called by the progress function"):
                forbidden()

    wanted = encoder.embed(["a red apple"])
    ended = threading.Timer(60, lambda: os._exit(1))
    ended.start()
    assert np.array_equal(encoder.embed(["a red apple"], progress=asks), wanted)
    ended.cancel()
    assert found and set(found) == {(WIDTH, 2)}
    encoder.close()


def test_a_model_learns(folder, reference, tmp_path):
    texts, labels = ["red apple", "green apple", "red stone", "green stones"], [0, 1, 0, 1]
    trainer = cleave.Trainer(folder, "classes", classes=2, seed=3, context=reference)
    first = trainer.step(texts, labels, rate=0.01)
    trainer.save(tmp_path / "state.safetensors")
    for _ in range(30):
        last = trainer.step(texts, labels, rate=0.01)
    assert first.counted == 4 and last.loss < first.loss / 2 and last.right == 4
    trainer.write(tmp_path / "model.safetensors")
    trainer.restore(tmp_path / "state.safetensors")
    assert last.loss < trainer.evaluate(texts, labels).loss <= first.loss
    with pytest.raises(cleave.ArgumentError, match="labels have the shape"):
        trainer.step(texts, [0], rate=0.01)
    with pytest.raises(cleave.ArgumentError, match="there is no option 'speed'"):
        cleave.Trainer(folder, speed=2)
    trainer.close()


def test_what_would_become_something_else_is_refused(folder, reference):
    for make, options, why in ((cleave.Encoder, {"max_length": -1}, "max_length is -1, but it must be .* from 0"),
                               (cleave.Encoder, {"batch_tokens": -1}, "batch_tokens is -1, but it must be .* from 0"),
                               (cleave.Encoder, {"threads": -1}, "threads is -1, but it must be 0 to"),
                               (cleave.Trainer, {"classes": -2}, "classes is -2, but it must be .* from 0")):
        with pytest.raises(cleave.ArgumentError, match=why):
            make(folder, context=reference, **options)
    with pytest.raises(cleave.ArgumentError, match="text 1: got b'a', but a str is expected"):
        cleave.tokenize(folder, ["a", b"a"])
    assert len(cleave.tokenize(folder, (text for text in ("a", "the")))) == 2
    trainer = cleave.Trainer(folder, classes=2, context=reference)
    for rows, labels in (([np.array([2, 5])], np.array([2**32])), ([np.array([2, 5])], [0.5]),
                         ([np.array([2**32 + 2, 5])], [0]), ([np.array([2, np.nan])], [0])):
        with pytest.raises(cleave.ArgumentError, match="but whole numbers of 32 bits are expected"):
            trainer.run_rows(rows, labels)
    rows, labels = [np.array([2, 5]), np.array([3])], [0, 1]
    assert trainer.run_rows(rows[:1], np.array([1.0])).counted == 1
    for scores in (np.zeros((2, 2)), np.zeros((1, 2), np.float32), np.zeros((2, 4), np.float32)[:, ::2], [[0, 0]] * 2):
        with pytest.raises(cleave.ArgumentError, match=r"a writeable float32 array of shape \(2, 2\) without gaps"):
            trainer.run_rows(rows, labels, scores=scores)
    with pytest.raises(cleave.ArgumentError, match="an evaluation, which has no rate, but rate is 0.1"):
        trainer.run_rows(rows, labels, 0.1, np.zeros((2, 2), np.float32))
    trainer.close()


def test_threads_take_turns(folder, reference):
    """Four threads use one trainer: each gets the result that it would get alone."""
    batches = [["red apple", "stone"][:1 + i % 2] * (1 + i) for i in range(4)]
    with_labels = [(batch, [0] * len(batch)) for batch in batches]
    trainer = cleave.Trainer(folder, "classes", classes=2, seed=3, context=reference)
    wanted, found = [trainer.evaluate(*one) for one in with_labels], [[] for _ in with_labels]

    def evaluate(i):
        for _ in range(10):
            found[i].append(trainer.evaluate(*with_labels[i]))

    threads = [threading.Thread(target=evaluate, args=(i,)) for i in range(4)]
    with trainer._turn:  # as during a call of another thread
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        assert found == [[], [], [], []]
    for thread in threads:
        thread.join()
    trainer.close()
    assert found == [[one] * 10 for one in wanted]


@pytest.mark.parametrize("kind, options", [(cleave.Encoder, {}), (cleave.Trainer, {"classes": 2})])
def test_closing_twice_is_closing_once(folder, kind, options):
    """Two threads that close at the same time both wait for a third thread's call."""
    context = cleave.Context(mode="reference")
    users = context._users
    made = kind(folder, context=context, **options)
    assert context._users == users + 1
    threads = [threading.Thread(target=made.close) for _ in range(2)]
    with made._turn:
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        assert context._users == users + 1
    for thread in threads:
        thread.join()
    assert context._users == users
    with pytest.raises(cleave.ArgumentError, match="it is closed"):
        made.embed(["apple"]) if kind is cleave.Encoder else made.evaluate(["apple"], [0])
    with pytest.raises(cleave.ArgumentError, match="it is closed"):
        made.tokenize(["apple"])
    with pytest.raises(cleave.ArgumentError, match="it is closed"):
        assert made.width
    context.close()


def test_what_users_of_sentence_transformers_expect(folder, reference):
    with cleave.Encoder(folder, context=reference) as encoder:
        vectors = encoder.embed(["red apple", "stone"])
        one = encoder.embed("red apple")
        assert one.shape == (WIDTH,) and np.array_equal(one, vectors[0])
        assert np.array_equal(encoder.encode(np.array(["red apple", "stone"])), vectors)
        assert np.array_equal(encoder.encode(text for text in ("red apple", "stone")), vectors)
        assert encoder.encode("stone", show_progress_bar=False).shape == (WIDTH,)
        assert repr(encoder) == f"<cleave.Encoder {folder}>"
        assert np.array_equal(cleave.embed(folder, "red apple", context=reference), one)
    assert repr(encoder).endswith(", closed>")
    with pytest.raises(cleave.ArgumentError, match="it is closed"):
        encoder.__enter__()


def test_texts_and_labels_that_are_none(folder, reference):
    with cleave.Encoder(folder, context=reference) as encoder:
        for wrong, why in ((None, "got None, but a list of texts is expected"), (["a", 7], "text 1: got 7, but a str"),
                           ([b"a"], "text 0: got b'a', but a str"), (["\ud800"], "surrogate")):
            with pytest.raises(cleave.ArgumentError, match=why):
                encoder.embed(wrong)
    with cleave.Trainer(folder, classes=2, optimizer="sgd", context=reference) as trainer:
        for labels in ([0.5, 1.7], ["x", "y"], [0, 1 << 40], [0, None]):
            with pytest.raises(cleave.ArgumentError, match="whole numbers of 32 bits"):
                trainer.step(["a", "red"], labels, rate=0.1)
        with pytest.raises(cleave.ArgumentError, match="rate is 'fast'"):
            trainer.step(["a", "red"], [0, 1], rate="fast")
        with pytest.raises(cleave.ArgumentError, match="metadata is 1"):
            trainer.write(folder / "out", {"a": 1})
        assert trainer.steps == 0 and not (folder / "out").exists()
    for option, why in (({"classes": "3"}, "classes is '3'"), ({"classes": -3}, "classes is -3"),
                        ({"optimizer": "adam"}, "'adamw', 'sgd'")):
        with pytest.raises(cleave.ArgumentError, match=why):
            cleave.Trainer(folder, context=reference, **option)
