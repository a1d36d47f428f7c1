# SPDX-License-Identifier: Apache-2.0
"""Search among vectors: the rows that are most similar to each query."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterable, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _abi
from ._arrays import address, numbers
from ._check import whole
from ._context import Context, chosen
from ._library import check, lib
from ._probe import choice
from ._report import Report, report_handle
from ._watch import Progress, Watch
from .errors import ArgumentError, ShapeError

_SIZE = ctypes.sizeof(_abi.SearchOptions)
_SIMILARITY = {"cosine": 0, "dot": 1}
_MOST = 16384


class Found(NamedTuple):
    """The best rows of each query, the most similar one first."""
    #: float32 [queries, top]: similarities, the float64 value rounded; -inf where the row is -1
    scores: NDArray[np.float32]
    #: int64 [queries, top]: numbers of rows; -1: there are fewer rows
    rows: NDArray[np.int64]


def _queries_of(value: Any) -> NDArray[np.float32]:
    queries = np.ascontiguousarray(numbers("search: queries", value))
    if queries.ndim == 1:
        queries = queries[None]
    if queries.ndim != 2:
        raise ShapeError(f"search: queries: [queries, width] or [width] expected, shape {queries.shape} given")
    return queries


def _vectors_of(value: Any, width: int) -> NDArray[np.float32]:
    """Rows whose numbers are neighbours; they may lie apart."""
    vectors = numbers("search: vectors", value)
    if vectors.ndim != 2 or vectors.shape[1] != width:
        raise ShapeError(f"search: vectors: [rows, {width}] expected, as the queries are {width} wide; "
                         f"shape {vectors.shape} given")
    apart = vectors.strides[0]
    dense = vectors.strides[1] == 4 and apart >= 4 * width and apart % 4 == 0
    return vectors if dense and vectors.flags.aligned else np.ascontiguousarray(vectors)


def _pieces_of(vectors: Any) -> Iterable[Any]:
    """One array, or what an iterator yields. A list is rows of one array, as everywhere in NumPy."""
    return vectors if hasattr(vectors, "__next__") else (vectors,)


def search(queries: Any, vectors: Any, top: int = 10, *, similarity: str = "cosine",
           context: Context | None = None, report: Report | None = None, progress: Progress = None) -> Found:
    """Finds for each query the rows of `vectors` that are most similar to it: exactly, by comparing all of them,
    split over the context's devices.

    Parameters
    ----------
    queries     [queries, width], or [width] for one query; finite numbers
    vectors     [rows, width]: an array, also a memory-mapped one (np.load(..., mmap_mode="r")) that is larger than
                memory; or an iterator of such arrays, whose rows are counted on. Used in place where it is float32
                and the numbers of a row are neighbours
    top         rows to find, 1 to 16384
    similarity  "cosine", or "dot": the sum of products, which is the same for vectors of length 1 and cheaper
    progress    see paco(); units are rows

    Returns Found(scores, rows), each [queries, top], the most similar row first; equally similar rows in their
    order in `vectors`. A row that holds NaN is never found.

    Devices find candidates in float32; what is returned was computed again in float64. The result is therefore the
    same on every device, unless more than max(8, top / 8) rows differ from the last one by rounding errors only.

    Raises ArgumentError, ShapeError, CancelledError. Ctrl-C ends it.
    """
    wanted = _queries_of(queries)
    count, width = wanted.shape
    top = whole("search: top", top, 1, _MOST)
    found = Found(np.full((count, top), -np.inf, np.float32), np.full((count, top), -1, np.int64))
    if not count:
        return found
    if not width:
        raise ShapeError(f"search: queries: shape {wanted.shape} given: a query has at least one number")
    context, handle = chosen(context), ctypes.c_void_p()
    held = context.acquire()
    try:
        with Watch(progress, "search") as watch:
            options = _abi.SearchOptions(_SIZE, top, choice("search: similarity", similarity, _SIMILARITY),
                                         watch.function)
            check(lib.clv_search_create(held, address(wanted), count, width, ctypes.byref(options),
                                        ctypes.byref(handle)))
            for piece in _pieces_of(vectors):
                rows = _vectors_of(piece, width)
                watch.done(lib.clv_search_add(handle, address(rows), len(rows), rows.strides[0] // 4 if len(rows) else 0,
                                              report_handle(report)))
            check(lib.clv_search_result(handle, address(found.rows), address(found.scores)))
    finally:
        lib.clv_search_free(handle)
        context.release()
    return found


def semantic_search(query_embeddings: Any, corpus_embeddings: Any, query_chunk_size: int = 100,
                    corpus_chunk_size: int = 500000, top_k: int = 10,
                    score_function: str | Callable[..., Any] = "cosine", *, context: Context | None = None,
                    report: Report | None = None, progress: Progress = None) -> list[list[dict[str, int | float]]]:
    """search() with the arguments and the result of sentence_transformers.util.semantic_search: for each query a list
    of {"corpus_id": row, "score": similarity}, the most similar first.

    The two chunk sizes are accepted and not needed. `score_function` is "cosine" or "dot"; sentence-transformers'
    functions cos_sim and dot_score are recognised by their names, other functions are refused.
    """
    if callable(score_function):
        name = getattr(score_function, "__name__", str(score_function))
        known = {"cos_sim": "cosine", "pairwise_cos_sim": "cosine", "dot_score": "dot", "pairwise_dot_score": "dot"}
        if name not in known:
            raise ArgumentError(f"semantic_search: score_function: {name} given; \"cosine\", \"dot\", or "
                                "sentence-transformers' cos_sim or dot_score expected")
        score_function = known[name]
    whole("semantic_search: query_chunk_size", query_chunk_size, 1)
    whole("semantic_search: corpus_chunk_size", corpus_chunk_size, 1)
    found = search(query_embeddings, corpus_embeddings, top_k, similarity=score_function, context=context,
                   report=report, progress=progress)
    return [[{"corpus_id": int(row), "score": float(score)} for score, row in zip(scores, rows) if row >= 0]
            for scores, rows in zip(found.scores, found.rows)]
