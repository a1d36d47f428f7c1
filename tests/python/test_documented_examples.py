# SPDX-License-Identifier: Apache-2.0
"""Tests the examples of sentence-transformers' documentation that run, according to docs/texts.md, with cleave.Encoder
in place of SentenceTransformer: they run, and their results equal those of NumPy."""
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import cleave
from test_encoder import WIDTH, make_model


@pytest.fixture(scope="module")
def model(tmp_path_factory, reference):
    made = tmp_path_factory.mktemp("documented") / "model"
    made.mkdir()
    folder = make_model(made, 2)
    (made / "config_sentence_transformers.json").write_text(json.dumps(
        {"prompts": {"query": "red ", "document": "green "}, "default_prompt_name": None}))
    encoder = cleave.Encoder(folder, context=reference)
    yield encoder
    encoder.close()


SENTENCES = ["the red apple", "a green stone", "red stones"]


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_encode(model):
    embeddings = model.encode(SENTENCES)
    assert embeddings.shape == (3, WIDTH) and model.encode("the red apple").shape == (WIDTH,)
    np.testing.assert_array_equal(model.encode("the red apple"), embeddings[0])
    np.testing.assert_array_equal(model.encode(SENTENCES, batch_size=2, show_progress_bar=False), embeddings)
    np.testing.assert_allclose(model.encode(SENTENCES, normalize_embeddings=True), unit(embeddings), atol=1e-6)
    cut = model.encode(SENTENCES, truncate_dim=4, normalize_embeddings=True)
    np.testing.assert_allclose(cut, unit(embeddings[:, :4]), atol=1e-6)


def test_prompts(model):
    with_words = model.encode(["red " + one for one in SENTENCES])
    for found in (model.encode(SENTENCES, prompt_name="query"), model.encode(SENTENCES, prompt="red "),
                  model.encode_query(SENTENCES)):
        np.testing.assert_array_equal(found, with_words)
    np.testing.assert_array_equal(model.encode_document(SENTENCES), model.encode(["green " + s for s in SENTENCES]))
    np.testing.assert_array_equal(model.encode_query(SENTENCES, prompt=""), model.encode(SENTENCES))
    assert not np.array_equal(with_words, model.encode(SENTENCES))


def test_similarity(model):
    embeddings = model.encode(SENTENCES)
    similarities = model.similarity(embeddings, embeddings)
    np.testing.assert_allclose(similarities, unit(embeddings) @ unit(embeddings).T, atol=1e-6)
    pairwise = model.similarity_pairwise(embeddings, embeddings[::-1])
    np.testing.assert_allclose(pairwise, similarities[np.arange(3), [2, 1, 0]], atol=1e-6)
    with pytest.raises(cleave.ArgumentError, match="both must be"):
        model.similarity_pairwise(embeddings, embeddings[:2])


def test_similarity_functions(model, reference, tmp_path):
    a, b = model.encode(SENTENCES), model.encode(SENTENCES)[1:]
    apart = (a[:, None] - b).astype(float)
    wanted = {"cosine": unit(a) @ unit(b).T, "dot": a @ b.T, "euclidean": -np.sqrt((apart ** 2).sum(2)),
              "manhattan": -abs(apart).sum(2)}
    folder = make_model(tmp_path, 2)
    (tmp_path / "config_sentence_transformers.json").write_text('{"similarity_fn_name": "dot"}')
    with cleave.Encoder(folder, context=reference) as encoder:
        np.testing.assert_allclose(encoder.similarity(a, b), wanted["dot"], rtol=1e-5, atol=1e-5)
        assert encoder.prompts == {"query": "", "document": ""} and encoder.similarity_fn_name == "dot"
        for name, values in wanted.items():
            encoder.similarity_fn_name = SimpleNamespace(value=name)  # as SimilarityFunction.DOT_PRODUCT
            np.testing.assert_allclose(encoder.similarity(a, b), values, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(encoder.similarity_pairwise(a[1:], b), values[[1, 2], [0, 1]], rtol=1e-5,
                                       atol=1e-5)
        encoder.similarity_fn_name = None
        assert encoder.similarity_fn_name == "cosine"


def test_properties(model, reference):
    longest = model.max_seq_length
    given = {"prompts": {"mine": "red "}, "default_prompt_name": "mine", "truncate_dim": 4}
    with cleave.Encoder(model.folder, context=reference, similarity_fn_name="dot", **given) as encoder:
        np.testing.assert_array_equal(encoder.encode(SENTENCES), model.encode(SENTENCES, prompt_name="query")[:, :4])
        np.testing.assert_array_equal(encoder.encode_document(SENTENCES, truncate_dim=WIDTH),
                                      model.encode_document(SENTENCES))
        assert encoder.get_sentence_embedding_dimension() == 4 and encoder.similarity_fn_name == "dot"
        encoder.default_prompt_name = encoder.truncate_dim = None
        encoder.max_seq_length = 3
        with pytest.warns(UserWarning, match="2 of 3 texts were cut"):
            cut = encoder.encode(["green", "red stones", "red apple"])
        np.testing.assert_array_equal(cut, model.encode(["green", "red", "red"]))
        assert encoder.max_seq_length == 3 and longest > 3
        with pytest.raises(cleave.ArgumentError, match="positions of the model"):
            encoder.max_seq_length = 1 << 20
        encoder.max_seq_length = longest
        np.testing.assert_array_equal(encoder.encode(SENTENCES), model.encode(SENTENCES))
    with pytest.raises(cleave.ArgumentError, match="no prompt 'theirs'"):
        cleave.Encoder(model.folder, context=reference, default_prompt_name="theirs")


def test_tensors(model, monkeypatch):
    class Tensor:  # stands for PyTorch's, which the tests need not have
        def __init__(self, values):
            self.values = values

        def __array__(self, dtype=None, copy=None):
            return np.asarray(self.values, dtype)

    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    with pytest.raises(cleave.ArgumentError, match="needs PyTorch"):
        model.encode(SENTENCES, convert_to_tensor=True)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_numpy=Tensor, Tensor=Tensor))
    embeddings, plain = model.encode(SENTENCES, convert_to_tensor=True, convert_to_numpy=False), model.encode(SENTENCES)
    assert type(embeddings) is Tensor and type(model.encode_query("red", convert_to_tensor=True)) is Tensor
    np.testing.assert_array_equal(embeddings, plain)
    for found, wanted in ((model.similarity(embeddings, plain), model.similarity(plain, embeddings)),
                          (model.similarity_pairwise(embeddings, plain), model.similarity_pairwise(plain, plain))):
        assert type(found) is Tensor and type(wanted) is np.ndarray
        np.testing.assert_array_equal(found, wanted)


def test_semantic_search(model, reference):
    corpus, queries = model.encode(SENTENCES), model.encode(["an apple", "stones"])
    hits = cleave.semantic_search(queries, corpus, top_k=2, context=reference)
    scores = model.similarity(queries, corpus)
    for found, row in zip(hits, scores):
        assert [hit["corpus_id"] for hit in found] == list(np.argsort(-row)[:2])
        np.testing.assert_allclose([hit["score"] for hit in found], np.sort(row)[::-1][:2], atol=1e-6)


def test_precisions(model):
    embeddings = model.encode(SENTENCES)
    least, most = embeddings.min(0), embeddings.max(0)
    parts = np.floor((embeddings.astype(float) - least) / (most - least) * 255)
    with pytest.warns(UserWarning, match="3 vectors"):
        assert abs(model.encode(SENTENCES, precision="uint8") - parts).max() <= 1
    with pytest.warns(UserWarning, match="3 vectors"):
        assert abs(model.encode(SENTENCES, precision="int8") - (parts - 128)).max() <= 1
    bits = np.packbits(embeddings > 0, axis=1)
    np.testing.assert_array_equal(model.encode(SENTENCES, precision="ubinary"), bits)
    np.testing.assert_array_equal(model.encode(SENTENCES, precision="binary"), bits.astype(int) - 128)
    np.testing.assert_array_equal(model.encode(SENTENCES[0], precision="ubinary"), bits[0])
    given = cleave.quantize_embeddings([[0, 1.5, 9]], "uint8", ranges=[[0, 1, 2], [255, 2, 2]])
    assert given.tolist() == [[0, 127, 7]] and given.dtype == np.uint8
    assert cleave.quantize_embeddings(embeddings[0], "int8", calibration_embeddings=embeddings).dtype == np.int8
    with pytest.raises(cleave.ArgumentError, match="more than one vector"):
        model.encode(SENTENCES[0], precision="int8")
    with pytest.raises(cleave.ShapeError, match=r"ranges: .* \[2, 3\] is expected"):
        cleave.quantize_embeddings([[0, 1.5, 9]], "uint8", ranges=[1, 2])


def test_what_docs_say_is_refused(model, tmp_path):
    for named in ({"device": "cpu"}, {"output_value": "token_embeddings"}):
        with pytest.raises(cleave.ArgumentError, match="is supported"):
            model.encode(SENTENCES, **named)
    with pytest.raises(cleave.Error, match="hf download sentence-transformers/all-MiniLM-L6-v2"):
        cleave.Encoder("sentence-transformers/all-MiniLM-L6-v2")
    assert not hasattr(model, "encode_multi_process")
    with pytest.raises(cleave.ArgumentError, match="similarity_fn_name is 'maxsim'"):
        model.similarity_fn_name = "maxsim"
