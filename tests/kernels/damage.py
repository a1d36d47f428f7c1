#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A test that passes when its code is wrong is not a test: damages one line after the other, of
every kernel and of the host's key lines, and expects the named test to fail.

usage: damage.py SOURCES BUILD [ROW...]    ROW: parts of file names, or their start
                                          ("patch/"); without: all
       damage.py --lines SOURCES           only looks whether every line is still there
Kernels are read from a damaged copy (CLEAVE_TEST_CL_DIR), so nothing is compiled again. Host lines
are compiled in a copy of the sources, which takes some minutes more.
Only under `ctest -C damage -L damage`.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time

TEST = "{build}/bin/test_paco_{name}"
# test_NAME, not test_paco_NAME
OTHERS = ("blob", "array", "gemm", "transformer", "encoder", "spectra", "training", "attention_back",
          "trainer", "generate", "few", "language_few", "volume", "templates", "search")
OCLGRIND = "{sources}/tests/kernels/under_oclgrind.sh"

# file below cl/, line as it is, damaged line, test
KERNELS = [
    ("patch/centre.cl", "(size_t)t * pitch) - mean", "(size_t)t * pitch) + mean", "centre"),
    ("patch/centre.cl", "finite = finite && isfinite(value)", "finite = finite", "centre"),
    ("patch/centre.cl", "(value - first) * scale", "value * scale", "centre"),
    ("patch/centre.cl", "(x < (int)width)", "(x <= (int)width)", "centre"),
    ("patch/centre.cl", "pick(inside && still, (ivec)2, (ivec)0)", "(ivec)0", "centre"),
    ("patch/lag_covariance.cl", "sum[k] * weight", "sum[k]", "lag_covariance"),
    ("patch/lag_covariance.cl", "at + other[k])", "at + other[k] + 1)", "lag_covariance"),
    ("patch/lag_covariance.cl", "lag0 += LAG_BLOCK", "lag0 += 2 * LAG_BLOCK", "lag_covariance"),
    ("patch/lag_covariance.cl", "lanes_store((fvec)0.0f, V", "lanes_store((fvec)1.0f, V",
     "lag_covariance"),
    ("patch/lag_covariance.cl", "< band_rows ? shift", "<= band_rows ? shift",
     "oclgrind lag_covariance"),
    ("patch/trial_rows.cl", "sum[4] = fma(r, c", "sum[4] = fma(r, r", "trial"),
    ("patch/trial_rows.cl", "value -= lanes_load", "value += lanes_load", "trial"),
    ("patch/trial_rows.cl", "places += (size_t)(first + before)", "places += (size_t)first", "trial"),
    ("patch/trial_rows.cl", "x <= 2 * half_width; x += LANES", "x < LANES; x += LANES", "trial"),
    ("patch/trial_rows.cl", "v += width;", "v += width + 1;", "trial"),
    ("patch/trial_rows.cl", "Q[(size_t)(l + f) * ROW + n]", "Q[(size_t)l * ROW + n]", "trial"),
    ("patch/trial_rows.cl", "places[at + together].col != here.col", "false", "trial"),
    ("patch/trial_rows.cl", "second = (fvec)(-next[i])", "second = (fvec)(next[i])", "trial"),
    ("patch/trial_rows.cl", "take_row(next, mine, mine[k + 1], k + 1)", "take_row(next, mine, 0.0f, k + 1)", "trial"),
    ("patch/trial_group.cl", "right[3 * P + i] = q[i];", "right[3 * P + i] = 0.0f;", "trial"),
    ("patch/trial_spots.cl", "(float)k * phi[last + k - 1]", "(float)k * phi[last + k]", "trial"),
    ("patch/trial_spots.cl", "(int)x - (origin.col - here.col)", "(int)x - (here.col - origin.col)", "trial"),
    ("patch/solve_rows.cl", "all = 2.0f * all", "all = 1.0f * all", "solve"),
    ("patch/solve_rows.cl", "vip ? trace", "!vip ? trace", "solve"),
    ("patch/solve_rows.cl", "good = good && (s > 0.0f)", "good = good", "solve"),
    ("patch/solve_rows.cl", "if (c < r) acc[r][c] *= shrink", "acc[r][c] *= shrink", "solve"),
    ("patch/solve_rows.cl", "last = fma(-l, l, last)", "last = fma(l, l, last)", "solve"),
    ("patch/solve_rows.cl", "for (int k = 0; k < i0; ++k)", "for (int k = 1; k < i0; ++k)",
     "solve"),
    ("patch/solve_rows.cl", "F[n * MA + m]", "F[n * MA]", "solve"),
    ("patch/solve_rows.cl", "int k = i0 + 4; k < P", "int k = i0 + 5; k < P", "solve"),
    ("patch/solve_group.cl", "sums.x = fma(x, x, sums.x)", "sums.x = x * x", "solve"),
    ("patch/solve_group.cl", "vip ? trace", "!vip ? trace", "solve"),
    ("patch/solve_group.cl", "if (sums.w > 0.0f)", "if (sums.w > 9.0f)", "solve"),
    ("patch/solve_group.cl", "a[e] *= 1.0f - rho", "a[e] *= 1.0f", "solve"),
    ("patch/solve_group.cl", "select(inverse, scale, i == K)", "select(inverse, scale, i == K + 1)",
     "solve"),
    ("patch/solve_group.cl", "select(0.0f, mine, own < K)", "select(0.0f, mine, own + 1 < K)",
     "solve"),
    ("patch/solve_group.cl", "w[i * Q + q] = a[e] * inverse", "w[i * Q + q] = a[e]", "solve"),
    ("patch/solve_group.cl", "isnan(rho) ? NAN : sum", "isnan(rho) ? 0.0f : sum", "solve"),
    ("patch/solve_group.cl", "half_ : NOWHERE + (int)lane", "half_ : NOWHERE", "oclgrind solve"),
    ("patch/project_group.cl", "l0 + SIDE * l, frames - 1", "l0 + l, frames - 1", "project"),
    ("patch/project_group.cl", "if (P % 2) ADD_PIXEL", "if (P % 2 == 0) ADD_PIXEL", "project"),
    ("patch/project_group.cl", "((py + px) & 1L) == 1L", "((py + px) & 1L) == 0L", "project"),
    ("patch/project_group.cl", "beta[l][q] = beta[l + 1][q]", "beta[l][q] = beta[l][q]", "project"),
    ("patch/project_group.cl", "if (q + 1 < Q) b = fma", "if (q + 2 < Q) b = fma", "project"),
    ("patch/project_group.cl", "w[e / (P * Q) * KEEP", "w[e / (P * Q) * P", "project"),
    ("array/philox.cl", "c1 = p1, c3 = p0", "c1 = p0, c3 = p1", "array_kernels"),
    ("array/philox.cl", "(x & LOW) >> 8", "x >> 8", "array_kernels"),
    ("array/philox.cl", "const vec high = (vec)(start >> 32)", "const vec high = (vec)(0)",
     "array_kernels"),
    ("array/convolve.cl", "i - r >= 0", "i - r >= -1", "array_kernels"),
    ("array/convolve.cl", "i - r < KH", "i - r <= KH", "array_kernels"),
    ("array/convolve.cl", "if (y + 3 < rows)", "if (y + 2 < rows)", "oclgrind array_kernels"),
    ("array/convolve.cl", "x < room", "x <= room", "array_kernels"),
    ("array/convolve.cl", "if (x >= width) return", "if (x > width) return",
     "oclgrind array_kernels"),
    ("array/jacobi.cl", "fma(-t, x, app)", "fma(t, x, app)", "array_kernels"),
    ("array/jacobi.cl", "which < count ?", "which <= count ?", "oclgrind array_kernels"),
    ("array/jacobi.cl", "block * LANES + l < count", "block * LANES + l <= count",
     "array_kernels"),
    ("array/jacobi.cl", "k < p ? AT(p, k) : AT(k, p)", "AT(k, p)", "array_kernels"),
    ("array/jacobi.cl", "clamp(as_ivec(largest) >> 23, (ivec)(1), (ivec)(253))", "(ivec)(127)",
     "array"),
    ("array/map.clh", "(r < ZERO) != (y < ZERO)", "(r < ZERO) != (r < ZERO)", "array_math"),
    ("array/map.clh", "if (room >= LANES) return lanes_load(p);", "return lanes_load(p);",
     "oclgrind array_math"),
    ("array/map.clh", "pick((x) != (x), ONE, ZERO)", "ZERO", "array_math"),
    ("array/reduce.cl", "b += (a - (sum_ - part_)) + (v - part_);", "", "array_math"),
    ("array/reduce.cl", "(same && where < place)", "(same && where > place)", "array_math"),
    ("array/reduce.cl", "((v != v) & (a == a))", "(v != v)", "array_math"),
    ("array/reduce.cl", "d * d, (fvec)(0.0f)", "d * v, (fvec)(0.0f)", "array_math"),
    ("array/linear.cl", "a = fma(vload16(0, x + (size_t)i * width + j), (float16)(r[i]), a);",
     "a = fma(vload16(0, x + (size_t)i * width + j), (float16)(r[first]), a);", "array_golden"),
    ("array/linear.cl", "for (uint l = 0; j + l < width; ++l)",
     "for (uint l = 1; j + l < width; ++l)", "array_golden"),
    ("array/linear.cl", "w[j] = fma(-rate, g, w[j])", "w[j] = fma(-rate, g, 0.0f)",
     "array_golden"),
    ("array/normalize.cl", "last = min(rows, first + each)", "last = min(rows - 1, first + each)",
     "array_golden"),
    ("blob/blob.clh", "2 * size - 1 - at", "2 * size - 2 - at", "blob_kernels"),
    ("blob/blob.clh", "(isfinite(v) ? ((v) - (pedestal)) * (gain) : 0.0f)",
     "(((v) - (pedestal)) * (gain))", "blob"),
    ("blob/volume.clh", "i < 40 ? !(value > other)", "i < 40 ? !(value >= other)", "volume"),
    ("blob/volume.clh", "(k % CLV_VOLUME_KEPT) * s->height + y) * planes_of(s) + (z - s->z0 + 1)",
     "(k % CLV_VOLUME_KEPT) * s->height + y) * planes_of(s) + (z - s->z0)", "volume"),
    ("blob/volume_rows.cl", "sum[r] = fma((fvec)w.x, upC[r] + dnC[r], sum[r]);",
     "sum[r] = fma((fvec)w.x, upC[r] + upC[r], sum[r]);", "volume"),
    ("blob/volume_rows.cl", "both[r] = fma((fvec)w.y, s, both[r]);", "both[r] = fma((fvec)w.x, s, both[r]);",
     "volume"),
    ("blob/volume_rows.cl", "mirror(z + STEP - 1 + i, depth), low", "mirror(z + STEP + i, depth), low", "volume"),
    ("blob/volume_rows.cl", "next < y + STEP + radius_y", "next < y + STEP + radius_y - 1", "volume"),
    ("blob/volume_items.cl", "both = fma(w.x, q[-j * TX] + q[j * TX], both);",
     "both = fma(w.x, q[-j * TX] + q[-j * TX], both);", "volume"),
    ("blob/volume_items.cl", "(size_t)(mirror(z - i, depth) - low) * pitch",
     "(size_t)(max(z - i, 0) - low) * pitch", "volume"),
    ("blob/volume_items.cl", "both = fma(taps[i].x, BX[u] + BX[d], both);",
     "both = fma(taps[i].x, BX[u] + BX[u], both);", "volume"),
    ("blob/rows.cl", "upA[r] + dnA[r], sum[r]);\n                sum[r] = fma((fvec)w.x",
     "upA[r] + upA[r], sum[r]);\n                sum[r] = fma((fvec)w.x", "blob_kernels"),
    ("blob/rows.cl", "loose(in - i) + loose(in + i)", "loose(in - i) + loose(in + i + 1)",
     "blob_kernels"),
    ("blob/rows.cl", "int first = min(l, p->levels - GROUP)", "int first = min(l, 0)", "blob"),
    ("blob/rows.cl", "*next <= to + radius", "*next <= to", "blob_kernels"),
    ("blob/rows.cl", "((y + rows - 1 + i) & mask)", "((y + rows + i) & mask)", "blob_kernels"),
    ("blob/rows.cl", "row < y + CLV_BLOB_STEP_ROWS - 1", "row < y + CLV_BLOB_STEP_ROWS - 2", "blob_kernels"),
    ("blob/rows.cl", "if (!any_of(fmax(a, b) > fmax(least, factor * fmin(cell, others))))",
     "if (!any_of(a > fmax(least, factor * fmin(cell, others))))", "blob"),
    ("blob/rows.cl", "beats(c, response_row(p, k - 1, y) + at)",
     "beats(c, response_row(p, k, y) + at)", "blob_kernels"),
    ("blob/rows.cl", "c > lanes_load(here + at - 1)", "c >= lanes_load(here + at - 1)",
     "blob_kernels"),
    ("blob/rows.cl", "k > 0 ? response_row(p, k - 1, y)[at]", "k > 0 ? response_row(p, k, y)[at]",
     "blob_kernels"),
    ("blob/rows.cl", "lanes_store(pick(good, (v - pedestal) * gain, (fvec)0.0f)",
     "lanes_store((v - pedestal) * gain", "blob"),
    ("blob/rows.cl", "++own[noise_bin(here[x] * turned)]", "++own[noise_bin(here[x])]", "blob_kernels"),
    ("blob/rows.cl", "top = c > fmax(least, factor * cell)", "top = c > fmax(least, factor)",
     "blob_kernels"),
    ("blob/blob.clh", "(y >> shift) * across", "(y >> shift)", "blob_kernels"),
    ("blob/rows.cl", "return pick(x >= 0 && x < p->width", "return pick(x >= 0 && x <= p->width",
     "blob_kernels"),
    ("blob/items.cl", "mirror(x + i, width)", "mirror(x + i + 1, width)", "blob_kernels"),
    ("blob/items.cl", "sum = fma(w.y, A[u] + A[d], sum)", "sum = fma(w.y, A[u] + A[u], sum)",
     "blob_kernels"),
    ("blob/blob.clh", "if (i < 13 && !(clear > around[i]))", "if (i < 13 && !(clear >= around[i]))",
     "blob_kernels"),
    ("blob/items.cl", "NOISE_BINS + noise_bin(size)", "NOISE_BINS + noise_bin(size) / 2",
     "blob_kernels"),
    ("blob/items.cl", "*out = (before - sum) * dog + bias", "*out = (sum - before) * dog + bias",
     "blob_kernels"),
    ("blob/cosine.cl", "b_d = times_minus_i(sub(b, d))", "b_d = sub(b, d)", "blob_kernels"),
    ("blob/cosine.cl", "turn(sub(a, b), w1), to + out", "sub(a, b), to + out", "blob_kernels"),
    ("blob/cosine.cl", "plus(a, -0.5f, sum)", "plus(a, 0.5f, sum)", "blob_kernels"),
    ("blob/cosine.cl", "plus(plus(none, s2, b_e), -s1, c_d)", "plus(plus(none, s2, b_e), s1, c_d)",
     "blob_kernels"),
    ("blob/cosine.cl", "n - 1 - (i >> 1)", "n - 2 - (i >> 1)", "blob_kernels"),
    ("blob/cosine.cl", "h.im = fma(s, b, -(c * bi))", "h.im = fma(s, b, c * bi)", "blob_kernels"),
    ("blob/cosine.cl", "high.im = a + bi, high.re = b - ai", "high.im = a - bi, high.re = b - ai",
     "blob_kernels"),
    ("blob/cosine.cl", "at + i < n ? (back", "at + i + 1 < n ? (back", "blob_kernels"),
    ("blob/cosine.cl", "bring(row[mirror(x0 + j, width)]", "bring(row[min(x0 + j, width - 1)]",
     "blob_kernels"),
    ("blob/cosine.cl", "fma(first.im, f, second.im * s)", "fma(first.im, f, second.re * s)",
     "blob_kernels"),
    ("blob/cosine.cl", "vstore, LANES)(w.re + bias", "vstore, LANES)(w.re", "blob_kernels"),
    ("blob/cosine.cl", "++bins[noise_bin", "++bins[1 + noise_bin", "blob_kernels"),
    ("blob/cosine.cl", "#define TIE 1e-6f", "#define TIE 0.0f", "blob"),
    ("blob/cosine.cl", "from + plane % scales", "from", "blob"),
    ("blob/cosine.cl", "if (inner && x > 0 && x + LANES < width)", "if (x > 0 && x + LANES < width)",
     "blob_rim"),
    ("blob/cosine.cl", "inner = y > 0 && y + 1 < height", "inner = y > 0", "blob_rim"),
    ("blob/cosine.cl", "inner && x > 0 && x + LANES < width", "inner && x + LANES < width", "blob_rim"),
    ("blob/cosine.cl", "inner && x > 0 && x + LANES < width", "inner && x > 0", "blob_rim"),
    ("blob/tile.cl", "mirror(t->y0 - 1 - t->reach + i / columns", "mirror(t->y0 - t->reach + i / columns",
     "blob_kernels"),
    ("blob/tile.cl", "j < 13 ? !(value > around[j])", "j < 13 ? !(value >= around[j])", "blob_kernels"),
    ("blob/tile.cl", "sum = fma(w.x, b[-j * RX] + b[j * RX], sum)",
     "sum = fma(w.x, b[j * RX] + b[j * RX], sum)", "blob_kernels"),
    ("blob/tile.cl", "sum = (before - sum) * dog", "sum = (before - sum)", "blob_kernels"),
    ("blob/tile.cl", "|| y % step || x % step) continue", "|| y % step) continue", "blob_kernels"),
    ("blas/gemm_rows.cl", "b_put(part[l], to", "b_put(part[0], to",
     "gemm"),
    ("blas/gemm_rows.cl", "lanes_at(from + (j + c) * col + i)", "lanes_at(from + j * col + i)", "gemm"),
    ("blas/gemm_rows.cl", "+ (size_t)j0 * k);", "+ (size_t)j0 * (k - 1));", "gemm"),
    ("blas/gemm_rows.cl", "add + v * LANES), x[v])", "add), x[v])", "gemm"),
    ("blas/gemm_rows.cl", "k < kc; ++k, a += AS", "k + 1 < kc; ++k, a += AS", "gemm"),
    ("common/lanes.clh", "next[2 * i].odd = rows[i + 4].lo", "next[2 * i].odd = rows[i].lo", "gemm"),
    ("blas/gemm_rows.cl", "vstore8(vload8(0, from), k, to)", "vstore8(vload8(0, from), 0, to)", "gemm"),
    ("blas/gemm_rows.cl", "UNROLL for (int u = 0; u < STEP", "UNROLL for (int u = 1; u < STEP", "gemm"),
    ("blas/gemm_rows.cl", "b_load(panel + i), b + i", "b_load(panel), b + i", "gemm"),
    ("blas/gemm_rows.cl", "* alpha + bias[v]", "+ bias[v]", "gemm"),
    ("blas/gemm_rows.cl", "block == 0, wait", "true, wait", "gemm"),
    ("blas/gemm_direct.cl", "(b_floats - reach) / b_row + 1", "k", "oclgrind gemm"),
    ("blas/gemm_direct.cl", "k < t->k; ++k", "k + 1 < t->k; ++k", "gemm"),
    ("blas/gemm_direct.cl", "row[i] = min(i, t->rows - 1) *", "row[i] = i *", "oclgrind gemm"),
    ("blas/gemm_direct.cl", "panels * (share + 1) / shares", "panels * share / shares", "gemm"),
    ("blas/gemm_direct.cl", "+ i * NR + c) * t->alpha", "+ i * NR + c)", "gemm"),
    ("blas/gemm_tile.cl", "acc[i][j] = r < m && c < n ?", "acc[i][j] = r > m && c < n ?", "gemm"),
    ("blas/gemm_tile.cl", "i * sa.next_term < (left) ?", "i * sa.next_term <= (left) ?", "gemm"),
    ("blas/gemm_tile.cl", "pb[i] += far_b", "pb[i] += far_a", "gemm"),
    ("blas/gemm_tile.cl", "acc[e][j] = acc[e + 1][j]", "acc[e][j] = acc[e][j]", "gemm"),
    ("blas/gemm_tile.cl", "            KEEP(buffer)\n            barrier(CLK_LOCAL_MEM_FENCE);",
     "            KEEP(buffer)", "oclgrind gemm"),
    ("blas/gemm_few.cl", "count * (quarter + 1) / 4", "count * quarter / 4", "few"),
    ("blas/gemm_few.cl", "q = first + id; q < last", "q = first + id; q + 1 < last", "few"),
    ("blas/gemm_few.cl", "for (uint s = 0; s < splits", "for (uint s = 1; s < splits", "few"),
    ("blas/gemm_few.cl", "sums[at] += sums[at + apart]", "sums[at] += sums[at]", "few"),
    ("blas/gemm_few.cl", "        barrier(CLK_LOCAL_MEM_FENCE);\n        for (uint e = id; e < m",
     "        for (uint e = id; e < m", "oclgrind few"),
    ("blas/gemm_rows.cl", "pack_panel(B + k0 * b_row", "pack_panel(B", "gemm"),
    ("blas/gemm_rows.cl", "if (g.has_bias) copy_columns(f->bias, 0, 1, columns, bias, NR);", ";", "gemm"),
    ("generate/few_cores.cl", "acc[t_] = fma(value_, (qf)(part[t_][k]), acc[t_])", "acc[t_] += value_", "language_few"),
    ("generate/few_cores.cl", "v[t] = pass ? activate", "v[t] = pass && t ? activate", "language_few"),
    ("blas/gemm_rows.cl", "n - j * NR), 0, kc, b)", "n - j * NR), 0, kc - 1, b)", "gemm"),
    ("blas/gemm_items.cl", "if (k0) {", "if (!k0) {", "gemm"),
    ("blas/gemm_items.cl", "for (uint c = n0; c < min(n0 + TX * RN", "for (uint c = n0; c < min(n0 + TX", "gemm"),
    ("blas/tiles.clh", "if (has_bias) y += bias[c]", "if (has_bias) y += bias[r]", "gemm"),
    ("common/functions.clh", "return x * normal_below(x)", "return x * sigmoid_lanes(1.702f * x)",
     "transformer"),
    ("common/functions.clh", "0.0713548162726f", "0.0703548162726f", "transformer"),
    ("common/functions.clh", "a > 6.0f", "a > 3.0f", "transformer"),
    ("transformer/rows.clh", "(b.x + b.z) + (b.y + b.w)", "(b.x + b.z) + (b.y + b.y)",
     "transformer"),
    ("transformer/tiles.clh", "d0 + d < DH ?", "d0 + d <= DH ?", "transformer"),
    ("transformer/tiles.clh", "c0 < COLUMNS; c0 += MANY", "c0 < COLUMNS - MANY; c0 += MANY",
     "transformer"),
    ("transformer/tiles.clh", "if (d + 1 < DH) to[d + 1]", "if (d + 2 < DH) to[d + 1]", "few"),
    ("transformer/attention_tile.cl", "(key <= see)", "(key < see)", "transformer"),
    ("transformer/attention_tile.cl", "out.r2 *= by.z", "out.r2 *= by.y", "transformer"),
    ("transformer/attention_tile.cl", "sum *= shrink", "sum += shrink", "transformer"),
    ("transformer/attention_tile.cl", "sum > 0.0f ? top : 0.0f", "sum > 0.0f ? 0.0f : top",
     "attention_back"),
    ("transformer/attention_tile.cl",
     "        part[id] = high;\n        barrier(CLK_LOCAL_MEM_FENCE);", "        part[id] = high;",
     "oclgrind attention_back"),
    ("transformer/attention_back_tile.cl", "d.r3 element) - less", "d.r3 element)",
     "attention_back"),
    ("transformer/attention_back_tile.cl", "(from <= i + at)", "(from < i + at)",
     "attention_back"),
    ("transformer/attention_back_tile.cl", "d += PARTS) own", "d += 2 * PARTS) own",
     "attention_back"),
    ("transformer/attention_back_tile.cl", "p.r3 element *= d.r3 element - less",
     "p.r3 element *= d.r3 element", "attention_back"),
    ("transformer/attention_split.cl", "j0 + (int)key <= see", "j0 + (int)key < see", "few"),
    ("transformer/attention_split.cl", "j = (int)share; j < last", "j = (int)share; j < KEYS - 1",
     "few"),
    ("transformer/attention_split.cl", "p[i * STRIDE + WIDTH + 1] * exp_lanes",
     "p[i * STRIDE + WIDTH + 1] + exp_lanes", "few"),
    ("transformer/attention_split.cl", "min(n + lane, (uint)QN - 1)", "min(lane, (uint)QN - 1)",
     "few"),
    ("transformer/norm.cl", "if (!rms) v +=", "if (rms) v +=", "transformer"),
    ("transformer/norm.cl", "- mean) * inside(c, width)", "- mean)", "transformer"),
    ("transformer/norm.cl", "position + (size_t)token.y", "position + (size_t)token.x", "encoder"),
    ("transformer/attention.cl", "fmax(high, s[t])", "fmin(high, s[t])", "transformer"),
    ("transformer/attention.cl", "high == -INFINITY ? 0.0f : high", "high", "transformer"),
    ("transformer/attention.cl", "causal ? i0 + keys - queries : keys", "causal ? i0 : keys",
     "transformer"),
    ("transformer/attention.cl", "o[c + i] *= shrink;", "o[c + i] *= 1.0f;", "transformer"),
    ("transformer/attention_rows.cl", "larger(s[t + i][v], high[i][v])", "-larger(-s[t + i][v], -high[i][v])",
     "transformer"),
    ("transformer/attention_rows.cl", "pick(found == -INFINITY, (fvec)(0.0f), found)", "found",
     "transformer"),
    ("transformer/attention_rows.cl", "pick(x == x, e, x)", "e", "transformer_edges"),
    ("transformer/attention_rows.cl", "causal ? keys - queries : keys", "causal ? 0 : keys",
     "transformer"),
    ("transformer/attention_rows.cl", "o[c + i][g + v] * shrink[v]", "o[c + i][g + v]", "transformer"),
    ("transformer/attention_rows.cl", "to[c / LANES * 8 + i] = x[i]", "to[i] = x[i]", "transformer"),
    ("transformer/attention_rows.cl", "h / group * k_head", "h * k_head", "transformer"),
    ("transformer/attention_rows.cl", "j + tiled > keys ||", "j > keys ||", "transformer"),
    ("transformer/attention_rows.cl", "x < -87.33654f", "x < -8.0f", "transformer"),
    ("common/lanes.clh", "next[2 * i].even = rows[i].lo", "next[2 * i].even = rows[i].hi",
     "transformer"),
    ("transformer/attention.cl", "h / group * k_head", "h * k_head", "transformer"),
    ("transformer/pool.cl", "fmax(counted, 1.0f)", "fmax(counted, 2.0f)", "transformer"),
    ("transformer/pool.cl", "put_columns(columns(to, c, width) / length",
     "put_columns(columns(to, c, width)", "transformer"),
    ("transformer/elements.cl", "* columns(from + width", "+ columns(from + width", "transformer"),
    ("transformer/rope.clh", "- b * sine;", "- b * turn[i].x;", "transformer"),
    ("transformer/elements.cl", "log(sum) + (top", "log(sum) - (top", "transformer"),
    ("transformer/norm_back.cl", "gw - middle - t * slope", "gw - t * slope", "training"),
    ("transformer/norm_back.cl", "rms ? 0.0f : lanes_sum(sum)", "0.0f * lanes_sum(sum)", "training"),
    ("transformer/norm_back.cl", "if (has_add) d +=", "if (!has_add) d -=", "attention_back"),
    ("transformer/sums.cl", "(x - moments[r].x) * moments[r].y", "(x - moments[r].x)", "training"),
    ("transformer/sums.cl", "for (uint b = 0; b < blocks; ++b)", "for (uint b = 1; b < blocks; ++b)",
     "training"),
    ("transformer/sums.cl", "list[s.x + i]", "list[s.x]", "training"),
    ("transformer/sums.cl", "(clear ? 0 : s.y)", "s.y", "trainer"),
    ("transformer/elements_back.cl", "exp_lanes(x * x * -0.5f)", "exp_lanes(x * x * -0.6f)",
     "training"),
    ("transformer/elements_back.cl", "0.2140644488178f", "0.0713548162726f", "training"),
    ("transformer/elements_back.cl", "from * activate(v, act), to + width", "from * v, to + width",
     "attention_back"),
    ("transformer/rope.clh", "sine = turn[i].y * way", "sine = turn[i].y", "attention_back"),
    ("transformer/elements_back.cl", "from / fmax(counted, 1.0f)", "from", "training"),
    ("transformer/elements_back.cl", "high = pick(hit, (fvec)(NAN), high)", "high = high + 1.0f",
     "training"),
    ("transformer/elements_back.cl", "lanes_sum(along) / (length * length)", "0.0f", "training"),
    ("transformer/attention_back_rows.cl", "own = fma(g[c], dq[c], own)", "own = g[c]",
     "attention_back"),
    ("transformer/attention_back_rows.cl", "i0 + l < queries ? both.y : 0.0f", "both.y",
     "attention_back"),
    ("transformer/attention_back_rows.cl", "(ivec)(i0 + keys - queries) + lanes_iota()",
     "(ivec)(i0 + keys - queries)", "attention_back"),
    ("transformer/attention_back_rows.cl", "part < group; ++part", "part < 1; ++part",
     "attention_back"),
    ("transformer/attention_back_rows.cl", "t += TOGETHER)", "t += 2 * TOGETHER)", "attention_back"),
    ("transformer/attention_back_rows.cl", "dv[n] = fma((fvec)(p_tile[at])",
     "dv[n] = fma((fvec)(s_tile[at])", "attention_back"),
    ("transformer/attention_back.cl", "p * (d[t] - own)", "p * d[t]", "attention_back"),
    ("transformer/attention_back.cl", "s[t] * (d[t] - own[it])", "s[t] * d[t]", "attention_back"),
    ("transformer/optimise.cl", "if (!first_step) step", "if (first_step) step", "training"),
    ("transformer/optimise.cl", "columns(w + at, 0, rest) * keep", "columns(w + at, 0, rest)",
     "training"),
    ("transformer/optimise.cl", "fma(sqrt(square), (fvec)(root)", "fma(sqrt(square), (fvec)(1.0f)",
     "training"),
    ("transformer/optimise.cl", "first + i * LANES < count; ++i)", "i < 1; ++i)", "training"),
    ("blas/finish.cl", "fma(beta, R[", "fma(-beta, R[", "gemm"),
    ("patch/project.cl", "pair ? y00 - r.s", "pair ? y00 + r.s", "project"),
    ("patch/project.cl", "((py + px) & 1L) == 1L", "((py + px) & 1L) == 0L", "project"),
    ("patch/project.cl", "phi[last + i] * y", "phi[last + i] * x", "project"),
    ("patch/project.cl", "d0 + pixel[i]", "d0 + pixel[i] + 1", "project"),
    ("patch/project.cl", "lanes_store_pairs(a[0], beta[l][0]", "lanes_store_pairs(a[0], beta[0][0]",
     "project"),
    ("patch/project.cl", "X[m * Q + q], beta", "X[m * Q], beta", "project"),
    ("patch/accumulate.cl", "value * 0x1p10f", "value * 0x1p9f", "accumulate"),
    ("patch/accumulate.cl", "here && isfinite(a)", "here", "accumulate"),
    ("patch/accumulate.cl", "+ lane) & 1)", "+ lane) & 0)", "accumulate"),
    ("patch/accumulate.cl", "(int)(width - margin)", "(int)width", "accumulate"),
    ("patch/accumulate.cl", "max(across, 0L) + max(down", "min(across, 0L) + max(down",
     "accumulate"),
    ("patch/accumulate.cl", "if (first_frame) {", "if (0) {", "accumulate"),
    ("patch/accumulate.cl", "k_row >= 0 &&", "k_row > 0 &&", "accumulate"),
    ("common/lanes.clh", "first.even = al, first.odd = bl", "first.even = bl, first.odd = al",
     "project"),
    ("common/lanes.clh", "both.even = a, both.odd = b", "both.even = b, both.odd = a", "project"),
    ("common/lanes.clh", "((p)[0] = (a), (p)[1] = (b))", "((p)[0] = (b), (p)[1] = (a))", "project"),
    ("common/lanes.clh", "select(no, yes, mask)", "select(yes, no, mask)", "centre"),
    ("patch/paco.clh", "(size_t)(x) / TILE) * (count)", "(size_t)(x) / TILE) * (count - 1)",
     "solve"),
    ("spectra/network.clh", "s9 = fma(w, (fvec)(x1[i + 4 * width]), s9)",
     "s9 = fma(w, (fvec)(x1[i + 3 * width]), s9)", "spectra_stages"),
    ("spectra/network.clh", "if (row == k + 1) q +=", "if (row == k) q +=", "spectra_stages"),
    ("spectra/network.clh", "* TILE * inputs + o % TILE", "* TILE * inputs", "spectra_stages"),
    ("spectra/network.clh", "s9 = fma(u, e, s9)", "s9 = fma(u, d, s9)", "spectra_stages"),
    ("spectra/network.clh", "{ v[0], v[0], v[1], v[2]", "{ v[0], v[0], v[2], v[2]", "spectra_stages"),
    ("spectra/network.clh", "row[2 * LANES + k]", "row[3 * LANES + k]", "spectra_stages"),
    ("spectra/network.clh", "v / (1.0f + exp(-v))", "v / (1.0f + exp(v))", "spectra_stages"),
    ("spectra/template.clh", "#define WARM 16", "#define WARM 4", "spectra_stages"),
    ("spectra/template.clh", "#define EPSILON 0.6f", "#define EPSILON 0.61f", "spectra_stages"),
    ("spectra/template.clh", "*rest = (d - whole) + lost", "*rest = d - whole", "spectra_stages"),
    ("spectra/template.clh", "here - k * 8) + load16(0, here + k * 8)",
     "here - k * 8) + load16(0, here + k * 8 + 8)", "spectra_stages"),
    ("spectra/template.clh", "clamp(k + m - half_width, 0, pixels - 1)",
     "clamp(k + m - half_width + 1, 0, pixels - 1)", "spectra_stages"),
    ("spectra/gram.clh", "fma(data_column, (float16)(point.y * scale)",
     "fma(data_column, (float16)(point.y)", "spectra_stages"),
    ("spectra/gram.clh", "if (point.x > 0.0f) good", "good", "spectra_stages"),
    ("spectra/gram.clh", "chi = fma(r, r, chi)", "chi = fma(r, r, 0.5f * chi)", "spectra_stages"),
    ("spectra/gram.clh", "det = fma((float8)(2.0f * scaled",
     "det = fma((float8)(9.0f * scaled", "spectra"),
    ("spectra/gram.clh", "slope = fma((float8)(r), g, slope)",
     "slope = fma((float8)(-r), g, slope)", "spectra"),
    ("spectra/gram_group.cl", "min(i + 1, NPOLY)", "min(i, NPOLY)", "spectra"),
    ("spectra/gram_group.cl", "change * (2.0f * scaled * length)", "change * (9.0f * scaled * length)", "spectra"),
    ("spectra/solve.clh", "a[c] += x[i] * y[i]", "a[c] += x[i]", "spectra_stages"),
    ("spectra/solve.clh", "s[CLV_S_STATUS] < (last ? 3.5f : 1.5f)",
     "s[CLV_S_STATUS] < (last ? 4.5f : 0.5f)", "spectra"),
    ("spectra/solve.clh", "a < CLV_S_UNKNOWNS && goes_on", "a < 0 && goes_on", "spectra_minimum"),
    ("spectra/small.clh", "*log_det += 2 * log(m[i][i])",
     "*log_det += log(m[i][i])", "spectra_stages"),
    ("spectra/scan.clh", "const bool linear = first + block + 1 == blocks",
     "const bool linear = first + block == blocks", "spectra_stages"),
    ("spectra/scan.clh", "t = pick(place == j, here, t)",
     "t = pick(place == j + 1, here, t)", "spectra_stages"),
    ("spectra/scan.clh", "lanes_load(t + (size_t)n * TILE), (fvec)(r[m])",
     "lanes_load(t + (size_t)k * TILE), (fvec)(r[m])", "spectra_stages"),
    ("spectra/scan.clh", "value[velocities] = (float)(sum.value",
     "value[velocities] = (float)(sum.value + 1", "spectra_stages"),
    ("spectra/scan.clh", "chi = fma(r, r, chi)", "chi = fma(r, r, 0.9f * chi)", "spectra_stages"),
    ("spectra/scan.clh", "third = fma(w * u * u, u, third)",
     "third = fma(w * u, u, third)", "spectra"),
    ("spectra/ccf.clh", "power[i] - 2.0f * cross[i]", "power[i] - cross[i]", "spectra_stages"),
    ("spectra/ccf.clh", "(q[i][n] - q[i][room + n])", "(q[i][n])", "spectra_stages"),
    ("spectra/ccf.clh", "(size_t)min(first + i, count - 1) * rows", "(size_t)first * rows", "spectra_stages"),
    ("spectra/ccf.clh", "(reach[i] - (int)whole, 1",
     "(reach[i] - (int)whole + 1, 1", "spectra_stages"),
    ("spectra/ccf.clh", "own > CLV_SPECTRA_NO_ALPHA ? own : alpha[start & 3]", "alpha[start & 3]", "spectra_grid"),
    ("spectra/smooth.cl", "const int end = start[n + 1]", "const int end = start[n + 1] - 1", "templates"),
    ("spectra/smooth.cl", "x += 16;", "x += 16 * (j + 1 < stop);", "templates"),
    ("spectra/smooth.cl", "from[n]) * 16", "from[n] + 1) * 16", "templates"),
    ("search/dots.cl", "v[i] = (uint)i < count ? x[i] : 0.0f", "v[i] = (uint)i + 1 < count ? x[i] : 0.0f", "search"),
    ("search/dots.cl", "square[i] = tail[i] * tail[i];", "square[i] = 0.0f;", "search"),
    ("search/dots.cl", "acc[i][j] = tail[i] * y;", "acc[i][j] = 0.0f;", "search"),
    ("search/dots.cl", "MULTIPLY(square[i] = fma(v[i], v[i], square[i]))", "MULTIPLY((void)0)", "search"),
    ("search/dots.cl", "acc[i][j] = fma(v[i], y, acc[i][j]);", "acc[i][j] = fma(v[0], y, acc[i][j]);", "search"),
    ("search/dots.cl", "(q0 + j) * s_row + r + i]", "(q0 + j) * s_row + r]", "search"),
    ("search/dots.cl", "sum == 0.0f ? 0.0f :", "sum == 0.0f ? INFINITY :", "search"),
    ("search/dots.cl", "if (queries == 0)", "if (queries == 1)", "search"),
    ("search/select_cores.cl", "best[c + 1] < best[c]", "best[c + 1] > best[c]", "search"),
    ("search/select_cores.cl", "at[c + 1] > at[c]", "at[c + 1] < at[c]", "search"),
    ("search/select_cores.cl", "first + r + l);", "first + r);", "search"),
    ("search/select_cores.cl", "all_at + (size_t)(query + q) * keep", "all_at + (size_t)q * keep", "search"),
    ("search/select_cores.cl", "v *= lanes_load(scale + r);", "", "search"),
    ("search/select_cores.cl", "const float v = s[r] * scale[r];", "const float v = s[r];", "search"),
    ("search/select_cores.cl", "if (v > root) {", "if (v > root && r + 1 < count) {", "search"),
    ("search/select_group.cl", "key <= LOW ? 0 : key", "key", "search"),
    ("search/select_group.cl", "wanted -= bins[b];", "wanted -= 1;", "search"),
    ("search/select_group.cl", "before++ < left", "before++ < 1", "search"),
    ("search/select_group.cl", "first_segment + seg) * keep", "first_segment) * keep", "search"),
    ("search/select_group.cl", "s[i] * scale[begin + (i)]", "s[i] * scale[i]", "search"),
    ("search/select_group.cl", "sum = fma(x[i], x[i], sum);", "sum = 1.0f;", "search"),
    ("spectra/smooth.cl", "if (n >= points) return", "if (n > points) return", "templates"),
]

# file, line, damaged line, test: a claim of test_paco, or a script of tests/cli with its arguments
HOST = [
    ("host/patch/paco_plan.c", ": INT64_C(1) << 31", ": INT64_C(1) << 30", "goldens"),
    ("host/patch/paco_plan.c", "q32(cy - cy * c + cx * s)", "q32(cy - cy * c - cx * s)", "goldens"),
    ("host/patch/paco_plan.c", "? -125 : exponent < -124 ? 125 : 1 - exponent",
     "? 0 : exponent < -124 ? 0 : 0", "rows_match_the_reference"),
    ("host/patch/paco_plan.c", "low = fmax(floor(low) - 1, 0)", "low = fmax(floor(low) + 5, 0)",
     "rows_match_the_reference"),
    ("host/patch/paco_job.c", "(plan->offset[j].dy + (int)plan->radius)",
     "(plan->offset[i].dy + (int)plan->radius)", "rows_match_the_reference"),
    ("host/patch/paco_job.c", "(p->plan->vip ? 0.5f : 1.0f)", "1.0f", "rows_match_the_reference"),
    ("host/patch/paco_job.c", "u32(p->plan->vip),\n        u32(workers)",
     "u32(0),\n        u32(workers)",
     "rows_match_the_reference"),
    ("host/patch/paco_job.c",
     "u32(p->c->centre0 - p->plan->radius - p->c->band0),\n        u32(tiles)",
     "u32(p->c->centre0 - p->c->band0),\n        u32(tiles)", "rows_match_the_reference"),
    ("host/patch/paco.c", "sum[x] += from[x]", "sum[x] = from[x]", "rows_match_the_reference"),
    ("host/patch/paco_finish.c", "plan->found[p] == plan->in.frames &&", "plan->found[p] &&",
     "goldens"),
    ("host/patch/paco_finish.c", "unit_b = s / plan->psf_scale", "unit_b = s", "goldens"),
    ("host/patch/paco_finish.c", "if (state == CLV_PIXEL_NOT_FINITE) return state;", "",
     "outputs"),
    ("host/patch/paco_ref.c", "2 * (plan->vip ? all : squares)", "2 * all", "goldens"),
    ("host/patch/paco_ref.c", "plan->vip ? 0.5 : 1.0", "1.0", "goldens_vip"),
    ("host/patch/psf_basis.c", "values[enough] > 1e-10 * values[0]", "values[enough] > values[0]",
     "rows_match_the_reference"),
    ("host/patch/psf_basis.c", "const double sign = d & 1 ? -1 : 1, u = d - s",
     "const double sign = d & 1 ? -1 : 1, u = d + s", "goldens"),
    ("host/patch/detect.c", "atan2(-dx, dy)", "atan2(dx, dy)", "outputs"),
    ("host/patch/detect.c", "other > value ||", "other > 2 * value ||", "outputs"),
    ("host/patch/psf.c", "p[3] * fwhm_per_sigma", "p[3]", "outputs"),
    ("host/patch/psf.c", "by = aperture_flux(psf, size, fwhm_px)",
     "by = aperture_flux(psf, size, 2 * fwhm_px)", "outputs"),
    ("runtime/job/items.c", "(char *)a->result + first * a->bytes", "(char *)a->result + 0 * first",
     "items"),
    ("runtime/job/items.c", "a->kind == CLV_ITEM_FIRST ? first : count",
     "a->kind == CLV_ITEM_FIRST ? 0 : count", "items"),
    ("runtime/job/items.c", "at[i] = (char *)at[i] + first * a->bytes", "at[i] = (char *)at[i]", "items"),
    ("runtime/job/items.c", "if (r->adapt) launch->local[0] = divisor(count, most);", "", "items"),
]


def replaced(path, line, damage):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if line not in text:
        sys.exit(f"{path} has no line \"{line}\": the table of damages is out of date")
    return text, text.replace(line, damage)


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def passes(command, tell=False, **variables):
    """None: skipped. `tell`: prints what a failing test said."""
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **variables)
    environment["CLEAVE_TEST_PLATFORMS"] = ""
    environment["CLEAVE_OCLGRIND_UNINITIALIZED"] = "0"  # accesses are what is damaged
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False)
    if result.returncode == 77:
        return None
    if result.returncode and tell:
        print(result.stdout.decode(errors="replace")[-3000:], flush=True)
    return result.returncode == 0


class Judge:
    """First every test must pass undamaged: else its failures say nothing."""

    def __init__(self):
        self.sound = {}
        self.unnoticed = self.noticed = self.skipped = 0

    def is_sound(self, test, command, **variables):
        if test not in self.sound:
            self.sound[test] = passes(command, tell=True, **variables)
            if self.sound[test] is False:
                print(f"FAILS WITHOUT DAMAGE: {test}", flush=True)
                self.unnoticed += 1
        return self.sound[test]

    def say(self, file, line, test, passed, started):
        verdict = "SKIPPED" if passed is None else "UNNOTICED" if passed else "noticed"
        self.skipped += passed is None
        self.unnoticed += passed is True
        self.noticed += passed is False
        print(f"{verdict}  {time.monotonic() - started:5.1f} s  {file}: "
              f"{line.splitlines()[0].strip()}  by {test}", flush=True)


def kernel_command(sources, build, test):
    *under, name = test.split()
    command = [f"{build}/bin/test_{name}" if name.startswith(OTHERS)
               else TEST.format(build=build, name=name)]
    if not under:
        return command
    icd = next((p for p in ("/usr/lib/oclgrind/liboclgrind-rt-icd.so",
                            "/usr/local/lib/oclgrind/liboclgrind-rt-icd.so") if os.path.exists(p)),
               "NOTFOUND")
    return [OCLGRIND.format(sources=sources), icd, *command]


def damage_kernels(sources, build, folder, rows, judge):
    kernels = os.path.join(folder, "cl")
    shutil.copytree(os.path.join(sources, "cl"), kernels)
    for file, line, damage, test in rows:
        command = kernel_command(sources, build, test)
        if not judge.is_sound(test, command, CLEAVE_TEST_CL_DIR=kernels):
            continue
        path, started = os.path.join(kernels, file), time.monotonic()
        good, bad = replaced(path, line, damage)
        write(path, bad)
        judge.say(file, line, test, passes(command, CLEAVE_TEST_CL_DIR=kernels), started)
        write(path, good)


def host_command(tree, build, test):
    cleave, cli = os.path.join(build, "bin", "cleave"), os.path.join(tree, "tests", "cli")
    if test.startswith("goldens"):
        conv, cases = ("vip", ["syn50"]) if test.endswith("vip") else ("paper", ["syn50", "syn45x56_bad"])
        return [sys.executable, os.path.join(cli, "paco_goldens.py"), cleave, "reference", conv, *cases]
    if test == "outputs":
        return [sys.executable, os.path.join(cli, "paco_outputs.py"), cleave]
    if test == "items":
        return [os.path.join(build, "bin", "test_items")]
    return [os.path.join(build, "bin", "test_paco"), test]


def compile_host(build, file):
    built = subprocess.run(["cmake", "--build", build, "--target", "cleave_command", "test_paco",
                            "test_items", "--parallel", "2"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           check=False)
    if built.returncode:
        sys.exit(f"{file} does not compile\n{built.stdout.decode()[-2000:]}")


def damage_host(sources, folder, rows, judge):
    tree, build = os.path.join(folder, "tree"), os.path.join(folder, "build")
    shutil.copytree(sources, tree, ignore=lambda d, names: [
        n for n in names if n == ".git" or (d == sources and n.startswith("build"))])
    subprocess.run(["cmake", "-S", tree, "-B", build, "-DCMAKE_BUILD_TYPE=Release"], check=True,
                   stdout=subprocess.DEVNULL)
    compile_host(build, "the copy")
    for test in sorted({row[3] for row in rows}):
        judge.is_sound(test, host_command(tree, build, test))
    for file, line, damage, test in rows:
        if not judge.sound[test]:
            continue
        path, started = os.path.join(tree, file), time.monotonic()
        good, bad = replaced(path, line, damage)
        write(path, bad)
        compile_host(build, file)
        judge.say(file, line, test, passes(host_command(tree, build, test)), started)
        write(path, good)


def look_for_lines(sources):
    for file, line, damage, *_ in [("cl/" + row[0], *row[1:]) for row in KERNELS] + HOST:
        replaced(os.path.join(sources, file), line, damage)


def main():
    if sys.argv[1] == "--lines":
        return look_for_lines(sys.argv[2])
    sources, build, *wanted = sys.argv[1:]

    def chosen(rows):
        return [r for r in rows if not wanted or any(
            r[0].startswith(w) if w.endswith("/") else w in r[0] for w in wanted)]

    judge = Judge()
    with tempfile.TemporaryDirectory() as folder:
        damage_kernels(sources, build, folder, chosen(KERNELS), judge)
        if chosen(HOST):
            damage_host(sources, folder, chosen(HOST), judge)
    print(f"{judge.noticed} noticed, {judge.unnoticed} unnoticed, {judge.skipped} skipped")
    return 1 if judge.unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
