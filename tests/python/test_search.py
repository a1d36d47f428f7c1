# SPDX-License-Identifier: Apache-2.0
"""Compares search() and semantic_search() with NumPy in float64."""
import numpy as np
import pytest

import cleave


def make(queries, rows, width, seed):
    random = np.random.default_rng(seed)
    lengths = random.uniform(0.1, 10, (rows, 1))
    return (random.standard_normal((queries, width)).astype(np.float32),
            (random.standard_normal((rows, width)) * lengths).astype(np.float32))


def expected(queries, vectors, top, similarity):
    q, x = queries.astype(np.float64), vectors.astype(np.float64)
    scores = q @ x.T
    if similarity == "cosine":
        scores /= np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(x, axis=1)
    rows = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    return np.take_along_axis(scores, rows, 1), rows


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("shape", [(1, 50, 3), (7, 3000, 48), (40, 5000, 20)])
def test_it_finds_what_sorting_finds(shape, similarity):
    queries, vectors = make(*shape, seed=sum(shape))
    found = cleave.search(queries, vectors, 12, similarity=similarity)
    scores, rows = expected(queries, vectors, 12, similarity)
    assert (found.rows == rows).all()
    np.testing.assert_allclose(found.scores, scores, rtol=1e-6)


def test_every_input_gives_the_same(tmp_path):
    queries, vectors = make(5, 2000, 32, 1)
    want = cleave.search(queries, vectors)
    wide = np.full((2000, 40), np.nan, np.float32)
    wide[:, :32] = vectors
    np.save(tmp_path / "vectors.npy", vectors)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    inputs = [wide[:, :32], np.asfortranarray(vectors), vectors.astype(np.float64), vectors.tolist(), mapped,
              (vectors[at:at + 300] for at in range(0, 2000, 300)), np.repeat(vectors, 2, axis=0)[::2]]
    for given in inputs:
        found = cleave.search(queries, given)
        assert (found.rows == want.rows).all() and (found.scores == want.scores).all()
    one = cleave.search(queries[0], vectors)
    assert one.rows.shape == (1, 10) and (one.rows[0] == want.rows[0]).all()
    backwards = cleave.search(queries, vectors[::-1])
    assert (backwards.rows == 1999 - want.rows).all()


def test_fewer_rows_than_asked_for():
    queries, vectors = make(2, 3, 4, 2)
    found = cleave.search(queries, vectors, 5)
    assert (found.rows[:, 3:] == -1).all() and np.isneginf(found.scores[:, 3:]).all()
    assert sorted(found.rows[0, :3]) == [0, 1, 2]
    assert (cleave.search(queries, vectors[:0], 2).rows == -1).all()
    assert cleave.search(queries[:0], vectors, 2).rows.shape == (0, 2)


def test_semantic_search_answers_like_sentence_transformers():
    queries, vectors = make(3, 100, 16, 3)
    scores, rows = expected(queries, vectors, 4, "cosine")
    hits = cleave.semantic_search(queries, vectors, top_k=4)
    assert [[hit["corpus_id"] for hit in each] for each in hits] == rows.tolist()
    np.testing.assert_allclose([[hit["score"] for hit in each] for each in hits], scores, rtol=1e-6)
    assert len(cleave.semantic_search(queries, vectors[:3], top_k=4)[0]) == 3

    def dot_score(a, b):
        raise AssertionError("recognised by its name, never called")

    hits = cleave.semantic_search(queries, vectors, score_function=dot_score, top_k=1)
    assert [each[0]["corpus_id"] for each in hits] == expected(queries, vectors, 1, "dot")[1][:, 0].tolist()
    manhattan = lambda a, b: None  # noqa: E731
    manhattan.__name__ = "manhattan"
    with pytest.raises(cleave.ArgumentError, match="manhattan"):
        cleave.semantic_search(queries, vectors, score_function=manhattan)


@pytest.mark.parametrize("precision", ["int8", "binary"])
def test_a_first_pass_over_codes(precision, tmp_path):
    queries, vectors = make(6, 400, 70, 6)
    codes = cleave.search_codes(vectors, precision)
    if precision == "binary":
        assert (codes == np.packbits(vectors > 0, axis=1)).all()
    else:
        scale = 127 / abs(vectors.astype(np.float64)).max(1, keepdims=True)
        assert (codes == np.rint(vectors * scale)).all() and codes.dtype == np.int8
    exact = cleave.search(queries, vectors, 10)
    every = cleave.search(queries, vectors, 10, codes=codes, rescore=40)
    assert (every.rows == exact.rows).all() and (every.scores == exact.scores).all()
    np.save(tmp_path / "vectors.npy", vectors.astype(np.float64))
    np.save(tmp_path / "codes.npy", codes)
    mapped = [np.load(tmp_path / name, mmap_mode="r") for name in ("vectors.npy", "codes.npy")]
    few = cleave.search(queries, mapped[0], 10, codes=mapped[1], rescore=3)
    near = np.array([len(set(a) & set(b)) for a, b in zip(few.rows, exact.rows)]).mean()
    assert near > (9.9 if precision == "int8" else 4)
    scores, _ = expected(queries, vectors, 400, "cosine")
    assert all((np.isclose(few.scores[q], scores[q][:, None], rtol=1e-6, atol=0).any(0)).all() for q in range(6))
    alone = cleave.search(queries, None, 10, codes=codes)
    signs = codes if precision == "int8" else np.where(vectors > 0, 1, -1)
    given = queries if precision == "int8" else np.where(queries > 0, 1, -1)
    np.testing.assert_allclose(alone.scores, expected(given, signs, 10, "cosine")[0], rtol=1e-5)
    hits = cleave.semantic_search(queries, vectors, codes=codes, rescore=40)
    assert [[hit["corpus_id"] for hit in each] for each in hits] == exact.rows.tolist()
    assert (cleave.search(queries, vectors[:0], codes=codes[:0]).rows == -1).all()


@pytest.mark.parametrize("change, error, words", [
    (dict(codes=np.zeros((9, 5), np.int8)), cleave.ShapeError, r"int8 \[rows, 6\] or uint8 \[rows, 1\] is expected"),
    (dict(codes=np.zeros((9, 6), np.int16)), cleave.ShapeError, "int16"),
    (dict(codes=np.zeros((8, 6), np.int8)), cleave.ShapeError, "codes of 8 rows"),
    (dict(codes=np.zeros((9, 6), np.int8)), cleave.ArgumentError, "row 0 is not the code"),
    (dict(similarity="dot"), cleave.ArgumentError, "cosine"),
    (dict(rescore=0), cleave.ArgumentError, "rescore"),
    (dict(rescore=1639), cleave.ArgumentError, "1639"),
])
def test_wrong_codes_are_told(change, error, words):
    queries, vectors = make(2, 9, 6, 4)
    with pytest.raises(error, match=words):
        cleave.search(queries, vectors, **{"codes": cleave.search_codes(vectors, "int8"), **change})
    with pytest.raises(cleave.ArgumentError, match="int8"):
        cleave.search_codes(vectors, "int4")


@pytest.mark.parametrize("call, error, words", [
    (lambda q, x: cleave.search(q, x[:, :5]), cleave.ShapeError, r"\[rows, 6\] is expected"),
    (lambda q, x: cleave.search(q[None], x), cleave.ShapeError, "queries"),
    (lambda q, x: cleave.search(q, x, 0), cleave.ArgumentError, "top"),
    (lambda q, x: cleave.search(q, x, 16385), cleave.ArgumentError, "16384"),
    (lambda q, x: cleave.search(q, x, similarity="angle"), cleave.ArgumentError, "cosine"),
    (lambda q, x: cleave.search(q * np.inf, x), cleave.ArgumentError, "element 0 of query 0"),
    (lambda q, x: cleave.search(["a"], x), cleave.ShapeError, "real numbers"),
    (lambda q, x: cleave.search(q[:, :0], x[:, :0]), cleave.ShapeError, "at least one number"),
])
def test_wrong_use_is_told(call, error, words):
    queries, vectors = make(2, 9, 6, 4)
    with pytest.raises(error, match=words):
        call(abs(queries), vectors)


def test_progress_and_report():
    queries, vectors = make(2, 5000, 8, 5)
    report, told = cleave.Report(), []
    cleave.search(queries, vectors, report=report, progress=lambda done, total: told.append((done, total)))
    assert report.to_dict()["jobs"][0]["name"] == "search"
    assert not told or told[-1][1] == 5000
