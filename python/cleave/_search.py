# SPDX-License-Identifier: Apache-2.0
"""Searches tables of vectors: finds the rows that are most similar to each query."""
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
_CODES = {"int8": 1, "binary": 2}
_PART = 1 << 24  #: the most elements of candidates' vectors in memory at a time
_SAMPLES = 16  #: number of rows whose codes are computed again, to check that the codes belong to the vectors


class Found(NamedTuple):
    """The result of search(): the most similar rows for each query, in descending order of similarity."""
    #: float32 [queries, top]: similarities, rounded from float64; -inf where the row is -1
    scores: NDArray[np.float32]
    #: int64 [queries, top]: indices of rows; -1 in the last places if there are fewer rows than `top`
    rows: NDArray[np.int64]


def _queries_of(value: Any) -> NDArray[np.float32]:
    queries = np.ascontiguousarray(numbers("search: queries", value))
    if queries.ndim == 1:
        queries = queries[None]
    if queries.ndim != 2:
        raise ShapeError(f"search: queries: got shape {queries.shape}, but [queries, width] or [width] is expected")
    return queries


def _vectors_of(value: Any, width: int) -> NDArray[np.float32]:
    """Returns vectors as rows of contiguous elements; there may be gaps between rows."""
    vectors = numbers("search: vectors", value)
    if vectors.ndim != 2 or vectors.shape[1] != width:
        raise ShapeError(f"search: vectors: got shape {vectors.shape}, but [rows, {width}] is expected, because the "
                         f"queries are {width} wide")
    apart = vectors.strides[0]
    dense = vectors.strides[1] == 4 and apart >= 4 * width and apart % 4 == 0
    return vectors if dense and vectors.flags.aligned else np.ascontiguousarray(vectors)


def _pieces_of(vectors: Any) -> Iterable[Any]:
    """Returns the arrays of `vectors`: those that an iterator yields, or a single one. A list is one array of rows."""
    return vectors if hasattr(vectors, "__next__") else (vectors,)


def _made(vectors: NDArray[np.float32], kind: int) -> NDArray[Any]:
    rows, width = vectors.shape
    codes = np.empty((rows, lib.clv_codes_bytes(kind, width)), np.int8 if kind == 1 else np.uint8)
    if rows:
        check(lib.clv_codes_make(kind, address(vectors), rows, width, vectors.strides[0] // 4, address(codes)))
    return codes


def search_codes(vectors: Any, precision: str) -> NDArray[Any]:
    """Returns vectors in fewer bits, for search(codes=...), so that each search reads much less memory.

    precision  "int8":   int8 [rows, width], 127 x / max |x| of the row, rounded: a quarter of the memory
               "binary": uint8 [rows, (width + 7) // 8], bits x > 0 as numpy.packbits orders them, the "ubinary" of
                         sentence-transformers: a 32nd of the memory
    """
    given = numbers("search_codes: vectors", vectors)
    if given.ndim != 2 or not given.shape[1]:
        raise ShapeError(f"search_codes: vectors: got shape {given.shape}, but [rows, width] is expected")
    return _made(_vectors_of(given, given.shape[1]), choice("search_codes: precision", precision, _CODES))


def _codes_of(value: Any, width: int) -> tuple[NDArray[Any], int]:
    codes = np.asarray(value)
    for kind, dtype, bytes_of_row in ((1, np.int8, width), (2, np.uint8, (width + 7) // 8)):
        if codes.ndim == 2 and codes.dtype == dtype and codes.shape[1] == bytes_of_row:
            return np.ascontiguousarray(codes), kind
    raise ShapeError(f"search: codes: got {codes.dtype} {codes.shape}, but int8 [rows, {width}] or uint8 [rows, "
                     f"{(width + 7) // 8}] is expected, as search_codes() makes them")


def _compare_codes(codes: NDArray[Any], kind: int, vectors: Any) -> Any:
    """Returns the vectors as an array, after a check of some rows; raises an error if the codes are of other
    vectors."""
    vectors = vectors if isinstance(vectors, np.ndarray) else numbers("search: vectors", vectors)
    if vectors.ndim != 2 or len(vectors) != len(codes):
        raise ShapeError(f"search: vectors: got shape {vectors.shape}, but there are codes of {len(codes)} rows")
    for row in np.unique(np.linspace(0, len(codes) - 1, min(len(codes), _SAMPLES), dtype=np.int64)):
        if (_made(_rows_of(vectors, [row]), kind) != codes[row]).any():
            raise ArgumentError(f"search: codes: row {row} is not the code of that row of vectors; make codes of these "
                                "vectors by search_codes()")
    return vectors


def _rows_of(vectors: Any, rows: Any) -> NDArray[np.float32]:
    return np.ascontiguousarray(numbers("search: vectors", vectors[rows]))


def _add_codes(handle: ctypes.c_void_p, codes: NDArray[Any], vectors: Any, watch: Watch,
               report: Report | None) -> None:
    """Runs both passes of a search: compares all codes, then the vectors of the candidates."""
    watch.done(lib.clv_search_add_codes(handle, address(codes), len(codes), report_handle(report)))
    count = ctypes.c_size_t()
    check(lib.clv_search_candidates(handle, None, ctypes.byref(count)))
    if vectors is None or not count.value:
        return
    rows = np.empty(count.value, np.int64)
    check(lib.clv_search_candidates(handle, address(rows), ctypes.byref(count)))
    step = max(1, _PART // vectors.shape[1])
    for at in range(0, len(rows), step):
        part = _rows_of(vectors, rows[at:at + step])
        check(lib.clv_search_rescore(handle, address(part), len(part), 0))


def search(queries: Any, vectors: Any, top: int = 10, *, similarity: str = "cosine", codes: Any = None,
           rescore: int | None = None, context: Context | None = None, report: Report | None = None,
           progress: Progress = None) -> Found:
    """Finds for each query the rows of `vectors` that are most similar to it. It compares all rows exactly, split over
    the context's devices. With `codes` it works in two passes, which is faster but may miss some rows.

    Parameters
    ----------
    queries     [queries, width], or [width] for one query; finite numbers
    vectors     [rows, width]: an array, also a memory-mapped one (np.load(..., mmap_mode="r")) that is larger than
                memory; or an iterator of such arrays, whose rows are numbered consecutively. It is used in place if it
                is float32 and the numbers of a row are contiguous
    top         number of rows to find, 1 to 16384
    similarity  "cosine", or "dot": the sum of products, which is the same for vectors of length 1 and takes less time
    codes       what search_codes(vectors, precision) returned, also memory-mapped. All codes are compared, and the
                `top` times `rescore` most similar rows become candidates, whose vectors are compared exactly. `vectors`
                is then one array, of which only these rows are read, or None: the result then has the similarities of
                the codes. The similarity must be the cosine
    rescore     number of candidates per row of the result: the more candidates, the fewer rows are missed; None: 10.
                `top` times `rescore` is at most 16384
    progress    see paco(); counts rows

    Returns Found(scores, rows), each [queries, top], the most similar row first; equally similar rows come in the
    order of `vectors`. A row with a NaN is never found. The lengths of rows must be between 1e-36 and 1e36, or 0.

    Devices find candidates in float32, and their similarities are computed again in float64. The result is therefore
    the same on every device, unless more than max(8, top / 8) rows differ from the last row of the result only by
    rounding errors.

    Raises ArgumentError, ShapeError, CancelledError. Ctrl-C ends the call.
    """
    wanted = _queries_of(queries)
    count, width = wanted.shape
    top = whole("search: top", top, 1, _MOST)
    rescore, kind = 0 if rescore is None else whole("search: rescore", rescore, 1, _MOST), 0
    if codes is not None:
        codes, kind = _codes_of(codes, width)
        vectors = vectors if vectors is None else _compare_codes(codes, kind, vectors)
    found = Found(np.full((count, top), -np.inf, np.float32), np.full((count, top), -1, np.int64))
    if not count:
        return found
    if not width:
        raise ShapeError(f"search: queries: got shape {wanted.shape}, but a query needs at least one number")
    context, handle = chosen(context), ctypes.c_void_p()
    held = context.acquire()
    try:
        with Watch(progress, "search") as watch:
            options = _abi.SearchOptions(_SIZE, top, choice("search: similarity", similarity, _SIMILARITY),
                                         watch.function, None, kind, rescore if kind else 0)
            check(lib.clv_search_create(held, address(wanted), count, width, ctypes.byref(options),
                                        ctypes.byref(handle)))
            if kind:
                _add_codes(handle, codes, vectors, watch, report)
            for piece in () if kind else _pieces_of(vectors):
                rows = _vectors_of(piece, width)
                watch.done(lib.clv_search_add(handle, address(rows), len(rows),
                                              rows.strides[0] // 4 if len(rows) else 0, report_handle(report)))
            check(lib.clv_search_result(handle, address(found.rows), address(found.scores)))
    finally:
        lib.clv_search_free(handle)
        context.release()
    return found


def semantic_search(query_embeddings: Any, corpus_embeddings: Any, query_chunk_size: int = 100,
                    corpus_chunk_size: int = 500000, top_k: int = 10,
                    score_function: str | Callable[..., Any] = "cosine", *, codes: Any = None,
                    rescore: int | None = None, context: Context | None = None, report: Report | None = None,
                    progress: Progress = None) -> list[list[dict[str, int | float]]]:
    """Does the same as search(), with the arguments and the result of sentence_transformers.util.semantic_search: for
    each query a list of {"corpus_id": row, "score": similarity}, the most similar first.

    The two chunk sizes are accepted but have no effect. `codes` and `rescore` are those of search(). `score_function`
    is "cosine" or "dot"; sentence-transformers' functions cos_sim and dot_score are recognised by their names, and
    other functions are refused.
    """
    if callable(score_function):
        name = getattr(score_function, "__name__", str(score_function))
        known = {"cos_sim": "cosine", "pairwise_cos_sim": "cosine", "dot_score": "dot", "pairwise_dot_score": "dot"}
        if name not in known:
            raise ArgumentError(f"semantic_search: score_function is {name}, but it must be \"cosine\", \"dot\", "
                                "or sentence-transformers' cos_sim or dot_score")
        score_function = known[name]
    whole("semantic_search: query_chunk_size", query_chunk_size, 1)
    whole("semantic_search: corpus_chunk_size", corpus_chunk_size, 1)
    found = search(query_embeddings, corpus_embeddings, top_k, similarity=score_function, codes=codes,
                   rescore=rescore, context=context, report=report, progress=progress)
    return [[{"corpus_id": int(row), "score": float(score)} for score, row in zip(scores, rows) if row >= 0]
            for scores, rows in zip(found.scores, found.rows)]
