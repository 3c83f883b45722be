"""The kernels that time_on_gpu.py times, in the language of twins.py. Read, never executed.

Written as the textbooks have them. In the decorator: the threads of a block.
Names: tx, bx, wx, gx are thread_id, block_id, block_dim and grid_dim.
"""


# Rows: one block for each.

@kernel((256,))
def layer_norm(x: "f32[rows, cols]", gamma: "f32[cols]", beta: "f32[cols]", y: "f32[rows, cols]", eps: "f32"):
    total = 0.0
    for j in range(tx, cols, wx):
        total += x[bx, j]
    mean = sum_of_block(total) / f32(cols)
    squares = 0.0
    for j in range(tx, cols, wx):
        d = x[bx, j] - mean
        squares += d * d
    scale = rsqrt(sum_of_block(squares) / f32(cols) + eps)
    for j in range(tx, cols, wx):
        y[bx, j] = (x[bx, j] - mean) * scale * gamma[j] + beta[j]


@kernel((256,))
def rms_norm_f16(x: "f16[rows, cols]", gamma: "f16[cols]", y: "f16[rows, cols]", eps: "f32"):
    squares = 0.0
    for j in range(tx, cols, wx):
        v = f32(x[bx, j])
        squares += v * v
    scale = rsqrt(sum_of_block(squares) / f32(cols) + eps)
    for j in range(tx, cols, wx):
        y[bx, j] = f16(f32(x[bx, j]) * scale * f32(gamma[j]))


@kernel((256,))
def softmax_rows(x: "f32[rows, cols]", y: "f32[rows, cols]"):
    largest = f32(-inf)
    for j in range(tx, cols, wx):
        largest = max(largest, x[bx, j])
    top = max_of_block(largest)
    total = 0.0
    for j in range(tx, cols, wx):
        total += exp(x[bx, j] - top)
    whole = sum_of_block(total)
    for j in range(tx, cols, wx):
        y[bx, j] = exp(x[bx, j] - top) / whole


@kernel((128,))
def cross_entropy(x: "f32[rows, cols]", label: "i32[rows]", loss: "f32[rows]"):
    largest = f32(-inf)
    for j in range(tx, cols, wx):
        largest = max(largest, x[bx, j])
    top = max_of_block(largest)
    total = 0.0
    for j in range(tx, cols, wx):
        total += exp(x[bx, j] - top)
    whole = sum_of_block(total)
    if tx == 0:
        loss[bx] = log(whole) + top - x[bx, index(label[bx])]


@kernel((128,))
def gemv(a: "f32[m, n]", x: "f32[n]", y: "f32[m]"):
    total = 0.0
    for j in range(tx, n, wx):
        total += a[bx, j] * x[j]
    whole = sum_of_block(total)
    if tx == 0:
        y[bx] = whole


@kernel((256,))
def attention_row(q: "f32[rows, 64]", k: "f32[keys, 64]", v: "f32[keys, 64]", out: "f32[rows, 64]"):
    weight = shared("f32", 1024)
    part = shared("f32", 4, 64)
    largest = f32(-inf)
    for key in range(tx, keys, wx):
        s = 0.0
        for d in range(64):
            s += q[bx, d] * k[key, d]
        s = s * 0.125
        weight[key] = s
        largest = max(largest, s)
    top = max_of_block(largest)
    total = 0.0
    for key in range(tx, keys, wx):
        e = exp(weight[key] - top)
        weight[key] = e
        total += e
    whole = sum_of_block(total)
    barrier()
    d = tx % 64
    group = tx // 64
    acc = 0.0
    for key in range(group, keys, 4):
        acc += weight[key] * v[key, d]
    part[group, d] = acc
    barrier()
    if tx < 64:
        out[bx, tx] = (part[0, tx] + part[1, tx] + part[2, tx] + part[3, tx]) / whole


@kernel((256,))
def row_argmax(x: "f32[rows, cols]", at: "i32[rows]"):
    values = shared("f32", 8)
    places = shared("i32", 8)
    best = f32(-inf)
    place = i32(0)
    for j in range(tx, cols, wx):
        v = x[bx, j]
        if v > best:
            best = v
            place = i32(j)
    step = i32(0)
    b1 = shuffle_xor(best, 16)
    p1 = shuffle_xor(place, 16)
    if (b1 > best) or ((b1 == best) and (p1 < place)):
        best = b1
        place = p1
    b2 = shuffle_xor(best, 8)
    p2 = shuffle_xor(place, 8)
    if (b2 > best) or ((b2 == best) and (p2 < place)):
        best = b2
        place = p2
    b3 = shuffle_xor(best, 4)
    p3 = shuffle_xor(place, 4)
    if (b3 > best) or ((b3 == best) and (p3 < place)):
        best = b3
        place = p3
    b4 = shuffle_xor(best, 2)
    p4 = shuffle_xor(place, 2)
    if (b4 > best) or ((b4 == best) and (p4 < place)):
        best = b4
        place = p4
    b5 = shuffle_xor(best, 1)
    p5 = shuffle_xor(place, 1)
    if (b5 > best) or ((b5 == best) and (p5 < place)):
        best = b5
        place = p5
    if tx % 32 == 0:
        values[tx // 32] = best
        places[tx // 32] = place
    barrier()
    if tx == 0:
        for w in range(1, 8):
            v = values[w]
            p = places[w]
            if (v > best) or ((v == best) and (p < place)):
                best = v
                place = p
        at[bx] = place


# Stencils and convolutions.

@kernel((32, 8))
def stencil_2d(x: "f32[h, w]", y: "f32[h, w]"):
    j = bx * wx + tx
    i = by * wy + ty
    if (i > 0) and (i < h - 1) and (j > 0) and (j < w - 1):
        y[i, j] = 0.5 * x[i, j] + 0.125 * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1])


@kernel((32, 4, 2))
def stencil_3d(x: "f32[d, h, w]", y: "f32[d, h, w]", a: "f32", b: "f32"):
    j = bx * wx + tx
    i = by * wy + ty
    k = bz * wz + tz
    if (k > 0) and (k < d - 1) and (i > 0) and (i < h - 1) and (j > 0) and (j < w - 1):
        y[k, i, j] = a * x[k, i, j] + b * (x[k - 1, i, j] + x[k + 1, i, j] + x[k, i - 1, j] + x[k, i + 1, j]
                                           + x[k, i, j - 1] + x[k, i, j + 1])


@kernel((32, 8))
def stencil_3d_march(x: "f32[d, h, w]", y: "f32[d, h, w]", a: "f32", b: "f32"):
    j = bx * wx + tx
    i = by * wy + ty
    if (i > 0) and (i < h - 1) and (j > 0) and (j < w - 1):
        for k in range(1, d - 1):
            y[k, i, j] = a * x[k, i, j] + b * (x[k - 1, i, j] + x[k + 1, i, j] + x[k, i - 1, j] + x[k, i + 1, j]
                                               + x[k, i, j - 1] + x[k, i, j + 1])


@kernel((32, 8))
def stencil_3d_rotate(x: "f32[d, h, w]", y: "f32[d, h, w]", a: "f32", b: "f32"):
    j = bx * wx + tx
    i = by * wy + ty
    if (i > 0) and (i < h - 1) and (j > 0) and (j < w - 1):
        below = x[0, i, j]
        here = x[1, i, j]
        for k in range(1, d - 1):
            above = x[k + 1, i, j]
            y[k, i, j] = a * here + b * (below + above + x[k, i - 1, j] + x[k, i + 1, j] + x[k, i, j - 1] + x[k, i, j + 1])
            below = here
            here = above


@kernel((128,))
def fdtd_1d(e: "f32[cells, steps]", h: "f32[cells, steps]", c: "f32"):
    i = bx * wx + tx
    if i < cells:
        for t in range(1, steps):
            e[i, t] = e[i, t - 1] * c + h[i, t] - h[i, t - 1]


@kernel((32, 8))
def conv_2d_static(x: "f32[130, 130, 8]", filter: "f32[3, 3, 8, 16]", y: "f32[128, 128, 16]"):
    col = bx * wx + tx
    row = by * wy + ty
    out = bz
    if (row < 128) and (col < 128):
        acc = 0.0
        for r in range(3):
            for s in range(3):
                for c in range(8):
                    acc += x[row + r, col + s, c] * filter[r, s, c, out]
        y[row, col, out] = acc


@kernel((32, 8))
def conv_2d(x: "f32[ih, iw]", filter: "f32[fh, fw]", y: "f32[oh, ow]"):
    col = bx * wx + tx
    row = by * wy + ty
    if (row < oh) and (col < ow):
        acc = 0.0
        for r in range(fh):
            for s in range(fw):
                acc += x[row + r, col + s] * filter[r, s]
        y[row, col] = acc


@kernel((256,))
def conv_1d_direct(x: "f32[n]", filter: "f32[63]", y: "f32[m]"):
    i = bx * wx + tx
    if i < m:
        acc = 0.0
        for k in range(63):
            acc += x[i + k] * filter[k]
        y[i] = acc


@kernel((32, 8))
def depthwise_f16(x: "f16[c, 66, 66]", filter: "f16[c, 3, 3]", y: "f16[c, 64, 64]"):
    col = bx * wx + tx
    row = by * wy + ty
    acc = 0.0
    for r in range(3):
        for s in range(3):
            acc += f32(x[bz, row + r, col + s]) * f32(filter[bz, r, s])
    y[bz, row, col] = f16(acc)


@kernel((32, 8))
def max_pool(x: "f32[c, h, w]", y: "f32[c, oh, ow]"):
    col = bx * wx + tx
    row = by * wy + ty
    if (row < oh) and (col < ow):
        best = f32(-inf)
        for r in range(3):
            for s in range(3):
                best = max(best, x[bz, row * 2 + r, col * 2 + s])
        y[bz, row, col] = best


# Reductions over everything, and scans.

@kernel((256,))
def block_sums(x: "f32[n]", out: "f32[blocks]"):
    part = shared("f32", 256)
    total = 0.0
    for i in range(bx * wx + tx, n, gx * wx):
        total += x[i]
    part[tx] = total
    barrier()
    half = wx // 2
    while half > 0:
        if tx < half:
            part[tx] = part[tx] + part[tx + half]
        barrier()
        half = half // 2
    if tx == 0:
        out[bx] = part[0]


@kernel((256,))
def dot_f64(x: "f64[n]", y: "f64[n]", out: "f64[1]"):
    total = f64(0.0)
    for i in range(bx * wx + tx, n, gx * wx):
        total += x[i] * y[i]
    whole = sum_of_block(total)
    if tx == 0:
        atomic_add(out[0], whole)


@kernel((256,))
def column_sums(x: "f32[rows, cols]", out: "f32[cols]"):
    j = bx * wx + tx
    if j < cols:
        total = 0.0
        for i in range(rows):
            total += x[i, j]
        out[j] = total


@kernel((256,))
def histogram_shared(values: "i32[n]", bins: "i32[256]"):
    mine = shared("i32", 256)
    mine[tx] = 0
    barrier()
    for i in range(bx * wx + tx, n, gx * wx):
        v = values[i]
        if (v >= 0) and (v < 256):
            atomic_add(mine[index(v)], 1)
    barrier()
    count = mine[tx]
    if count > 0:
        atomic_add(bins[tx], count)


@kernel((256,))
def scan_blocks(x: "f32[n]", y: "f32[n]"):
    part = shared("f32", 512)
    i = bx * wx + tx
    v = 0.0
    if i < n:
        v = x[i]
    part[tx] = v
    at = index(0)
    step = index(1)
    while step < wx:
        barrier()
        sum = part[at * 256 + tx]
        if tx >= step:
            sum += part[at * 256 + tx - step]
        at = 1 - at
        part[at * 256 + tx] = sum
        step = step * 2
    barrier()
    if i < n:
        y[i] = part[at * 256 + tx]


@kernel((256,))
def warp_scan(x: "i32[n]", y: "i32[n]"):
    i = bx * wx + tx
    lane = tx % 32
    v = x[i]
    a = shuffle_up(v, 1)
    if lane >= 1:
        v += a
    b = shuffle_up(v, 2)
    if lane >= 2:
        v += b
    c = shuffle_up(v, 4)
    if lane >= 4:
        v += c
    d = shuffle_up(v, 8)
    if lane >= 8:
        v += d
    e = shuffle_up(v, 16)
    if lane >= 16:
        v += e
    y[i] = v


# Linear algebra.

@kernel((16, 16))
def matmul_naive(a: "f32[m, k]", b: "f32[k, n]", c: "f32[m, n]"):
    col = bx * wx + tx
    row = by * wy + ty
    if (row < m) and (col < n):
        acc = 0.0
        for p in range(k):
            acc += a[row, p] * b[p, col]
        c[row, col] = acc


@kernel((16, 16))
def matmul_shared(a: "f32[m, k]", b: "f32[k, n]", c: "f32[m, n]"):
    sa = shared("f32", 16, 16)
    sb = shared("f32", 16, 16)
    col = bx * 16 + tx
    row = by * 16 + ty
    acc = 0.0
    for p in range(0, k, 16):
        va = 0.0
        if (row < m) and (p + tx < k):
            va = a[row, p + tx]
        vb = 0.0
        if (p + ty < k) and (col < n):
            vb = b[p + ty, col]
        sa[ty, tx] = va
        sb[ty, tx] = vb
        barrier()
        for q in range(16):
            acc += sa[ty, q] * sb[q, tx]
        barrier()
    if (row < m) and (col < n):
        c[row, col] = acc


@kernel((8, 8))
def batched_matmul_8(a: "f32[batch, 8, 8]", b: "f32[batch, 8, 8]", c: "f32[batch, 8, 8]"):
    acc = 0.0
    for k in range(8):
        acc += a[bx, ty, k] * b[bx, k, tx]
    c[bx, ty, tx] = acc


@kernel((64,))
def batched_matvec(a: "f32[batch, 16, 16]", x: "f32[batch, 16]", y: "f32[batch, 16]"):
    i = bx * wx + tx
    row = i % 16
    which = i // 16
    if which < batch:
        acc = 0.0
        for k in range(16):
            acc += a[which, row, k] * x[which, k]
        y[which, row] = acc


@kernel((128,))
def csr_rows(start: "i32[n1]", column: "i32[nnz]", value: "f32[nnz]", x: "f32[n]", y: "f32[n]"):
    row = bx * wx + tx
    if row < n:
        acc = 0.0
        for at in range(index(start[row]), index(start[row + 1])):
            acc += value[at] * x[index(column[at])]
        y[row] = acc


@kernel((128,))
def csr_warps(start: "i32[n1]", column: "i32[nnz]", value: "f32[nnz]", x: "f32[n]", y: "f32[n]"):
    row = (bx * wx + tx) // 32
    lane = tx % 32
    acc = 0.0
    if row < n:
        for at in range(index(start[row]) + lane, index(start[row + 1]), 32):
            acc += value[at] * x[index(column[at])]
    acc += shuffle_xor(acc, 16)
    acc += shuffle_xor(acc, 8)
    acc += shuffle_xor(acc, 4)
    acc += shuffle_xor(acc, 2)
    acc += shuffle_xor(acc, 1)
    if (row < n) and (lane == 0):
        y[row] = acc


@kernel((128,))
def tridiagonal(lower: "f32[n, systems]", diagonal: "f32[n, systems]", upper: "f32[n, systems]", right: "f32[n, systems]",
                c: "f32[n, systems]", x: "f32[n, systems]"):
    s = bx * wx + tx
    if s < systems:
        c[0, s] = upper[0, s] / diagonal[0, s]
        x[0, s] = right[0, s] / diagonal[0, s]
        for i in range(1, n):
            w = 1.0 / (diagonal[i, s] - lower[i, s] * c[i - 1, s])
            c[i, s] = upper[i, s] * w
            x[i, s] = (right[i, s] - lower[i, s] * x[i - 1, s]) * w
        for r in range(1, n):
            i = n - 1 - r
            x[i, s] = x[i, s] - c[i, s] * x[i + 1, s]


# Particles and other computing.

@kernel((256,))
def n_body(p: "f32[n, 4]", a: "f32[n, 3]", eps: "f32"):
    tile = shared("f32", 256, 4)
    i = bx * wx + tx
    px = p[i, 0]
    py = p[i, 1]
    pz = p[i, 2]
    ax = 0.0
    ay = 0.0
    az = 0.0
    for base in range(0, n, 256):
        tile[tx, 0] = p[base + tx, 0]
        tile[tx, 1] = p[base + tx, 1]
        tile[tx, 2] = p[base + tx, 2]
        tile[tx, 3] = p[base + tx, 3]
        barrier()
        for j in range(256):
            dx = tile[j, 0] - px
            dy = tile[j, 1] - py
            dz = tile[j, 2] - pz
            r = rsqrt(dx * dx + dy * dy + dz * dz + eps)
            s = tile[j, 3] * r * r * r
            ax += dx * s
            ay += dy * s
            az += dz * s
        barrier()
    a[i, 0] = ax
    a[i, 1] = ay
    a[i, 2] = az


@kernel((128,))
def n_body_plain(p: "f32[n, 4]", a: "f32[n, 3]", eps: "f32"):
    i = bx * wx + tx
    if i < n:
        px = p[i, 0]
        py = p[i, 1]
        pz = p[i, 2]
        ax = 0.0
        ay = 0.0
        az = 0.0
        for j in range(n):
            dx = p[j, 0] - px
            dy = p[j, 1] - py
            dz = p[j, 2] - pz
            r = rsqrt(dx * dx + dy * dy + dz * dz + eps)
            s = p[j, 3] * r * r * r
            ax += dx * s
            ay += dy * s
            az += dz * s
        a[i, 0] = ax
        a[i, 1] = ay
        a[i, 2] = az


@kernel((16, 16))
def mandelbrot(out: "i32[h, w]", scale: "f32"):
    col = bx * wx + tx
    row = by * wy + ty
    if (row < h) and (col < w):
        cx = f32(i32(col)) * scale - 2.0
        cy = f32(i32(row)) * scale - 1.5
        zx = 0.0
        zy = 0.0
        count = i32(0)
        while (count < 256) and (zx * zx + zy * zy < 4.0):
            t = zx * zx - zy * zy + cx
            zy = 2.0 * zx * zy + cy
            zx = t
            count = count + 1
        out[row, col] = count


@kernel((256,))
def black_scholes(s: "f32[n]", k: "f32[n]", t: "f32[n]", call: "f32[n]", put: "f32[n]", r: "f32", v: "f32"):
    for i in range(bx * wx + tx, n, gx * wx):
        root = sqrt(t[i])
        d1 = (log(s[i] / k[i]) + (r + 0.5 * v * v) * t[i]) / (v * root)
        d2 = d1 - v * root
        n1 = 0.5 * (1.0 + erf(d1 * 0.70710678))
        n2 = 0.5 * (1.0 + erf(d2 * 0.70710678))
        discount = k[i] * exp(-(r * t[i]))
        call[i] = s[i] * n1 - discount * n2
        put[i] = discount * (1.0 - n2) - s[i] * (1.0 - n1)


# Element by element.

@kernel((256,))
def gelu_chain(x: "f32[n, m]", bias: "f32[m]", residual: "f32[n, m]", y: "f32[n, m]"):
    j = bx * wx + tx
    if j < m:
        v = x[by, j] + bias[j]
        g = 0.5 * v * (1.0 + tanh(0.79788456 * (v + 0.044715 * v * v * v)))
        y[by, j] = g + residual[by, j]


@kernel((256,))
def swiglu_f16(gate: "f16[n]", up: "f16[n]", y: "f16[n]"):
    for i in range(bx * wx + tx, n, gx * wx):
        g = f32(gate[i])
        y[i] = f16(g / (1.0 + exp(-g)) * f32(up[i]))


@kernel((256,))
def adam(w: "f32[n]", g: "f32[n]", m: "f32[n]", v: "f32[n]", rate: "f32"):
    i = bx * wx + tx
    if i < n:
        d = g[i]
        a = 0.9 * m[i] + 0.1 * d
        b = 0.999 * v[i] + 0.001 * d * d
        m[i] = a
        v[i] = b
        w[i] = w[i] - rate * a / (sqrt(b) + 0.00000001)


@kernel((64,))
def rope(x: "f32[tokens, heads, 128]", y: "f32[tokens, heads, 128]", base: "f32"):
    angle = f32(i32(bx)) * exp(-(base * f32(i32(tx))))
    c = cos(angle)
    s = sin(angle)
    for h in range(heads):
        a = x[bx, h, tx]
        b = x[bx, h, tx + 64]
        y[bx, h, tx] = a * c - b * s
        y[bx, h, tx + 64] = a * s + b * c


@kernel((256,))
def quantize(x: "f32[rows, cols]", scale: "f32[rows]", q: "i8[rows, cols]"):
    s = 1.0 / scale[by]
    for j in range(bx * wx + tx, cols, gx * wx):
        v = max(min(floor(x[by, j] * s + 0.5), 127.0), -127.0)
        q[by, j] = i8(v)


@kernel((32,))
def gather_rows(table: "f32[words, dim]", which: "i32[n]", y: "f32[n, dim]"):
    row = index(which[bx])
    for j in range(tx, dim, wx):
        y[bx, j] = table[row, j]


@kernel((32, 8))
def transpose_odd(x: "f32[rows, cols]", y: "f32[cols, rows]"):
    tile = shared("f32", 32, 33)
    col = bx * 32 + tx
    for r in range(ty, 32, 8):
        row = by * 32 + r
        if (row < rows) and (col < cols):
            tile[r, tx] = x[row, col]
    barrier()
    out = by * 32 + tx
    for r in range(ty, 32, 8):
        row = bx * 32 + r
        if (row < cols) and (out < rows):
            y[row, out] = tile[tx, r]


@kernel((16, 16))
def transpose_plain(x: "f32[rows, cols]", y: "f32[cols, rows]"):
    col = bx * wx + tx
    row = by * wy + ty
    if (row < rows) and (col < cols):
        y[col, row] = x[row, col]


@kernel((256,))
def monte_carlo(hits: "i32[n]", rounds: "index"):
    i = bx * wx + tx
    if i < n:
        state = i32(i) * 747796405 + 123456789
        count = i32(0)
        for k in range(rounds):
            state = state ^ (state << 13)
            state = state ^ (state >> 17)
            state = state ^ (state << 5)
            a = f32((state >> 8) & 65535) * 0.0000152587890625
            b = f32((state >> 16) & 65535) * 0.0000152587890625
            if a * a + b * b < 1.0:
                count += 1
        hits[i] = count


@kernel((256,))
def bitonic(x: "f32[n]", y: "f32[n]"):
    part = shared("f32", 256)
    part[tx] = x[bx * 256 + tx]
    barrier()
    width = index(2)
    while width <= 256:
        step = width // 2
        while step > 0:
            other = tx ^ step
            if other > tx:
                a = part[tx]
                b = part[other]
                up = (tx & width) == 0
                if (a > b) == up:
                    part[tx] = b
                    part[other] = a
            barrier()
            step = step // 2
        width = width * 2
    y[bx * 256 + tx] = part[tx]


# Kernels that were written on 2026-11-26 without a look at what the compiler makes of them.

@kernel((256,))
def group_norm(x: "f32[n, g, cg, hw]", gamma: "f32[g, cg]", beta: "f32[g, cg]", y: "f32[n, g, cg, hw]", eps: "f32"):
    total = 0.0
    squares = 0.0
    for j in range(tx, cg * hw, wx):
        v = x[by, bx, j // hw, j % hw]
        total += v
        squares += v * v
    mean = sum_of_block(total) / f32(cg * hw)
    scale = rsqrt(sum_of_block(squares) / f32(cg * hw) - mean * mean + eps)
    for j in range(tx, cg * hw, wx):
        c = j // hw
        y[by, bx, c, j % hw] = (x[by, bx, c, j % hw] - mean) * scale * gamma[bx, c] + beta[bx, c]


@kernel((128,))
def nearest_centroid(p: "f32[n, 16]", c: "f32[k, 16]", at: "i32[n]"):
    i = bx * wx + tx
    if i < n:
        best = 3.0e38
        place = i32(0)
        for j in range(k):
            d = 0.0
            for e in range(16):
                t = p[i, e] - c[j, e]
                d += t * t
            if d < best:
                best = d
                place = i32(j)
        at[i] = place


@kernel((256,))
def ell_rows(column: "i32[width, n]", value: "f32[width, n]", x: "f32[n]", y: "f32[n]"):
    i = bx * wx + tx
    if i < n:
        acc = 0.0
        for j in range(width):
            acc += value[j, i] * x[index(column[j, i])]
        y[i] = acc


@kernel((32, 8))
def bilinear(x: "f32[h, w]", y: "f32[oh, ow]", sx: "f32", sy: "f32"):
    col = bx * wx + tx
    row = by * wy + ty
    if (row < oh) and (col < ow):
        fx = f32(i32(col)) * sx
        fy = f32(i32(row)) * sy
        x0 = index(i32(floor(fx)))
        y0 = index(i32(floor(fy)))
        x1 = min(x0 + 1, w - 1)
        y1 = min(y0 + 1, h - 1)
        ax = fx - floor(fx)
        ay = fy - floor(fy)
        top = x[y0, x0] * (1.0 - ax) + x[y0, x1] * ax
        bottom = x[y1, x0] * (1.0 - ax) + x[y1, x1] * ax
        y[row, col] = top * (1.0 - ay) + bottom * ay


@kernel((256,))
def gray_packed(x: "i32[n]", y: "i32[n]"):
    for i in range(bx * wx + tx, n, gx * wx):
        v = x[i]
        r = v & 255
        g = (v >> 8) & 255
        b = (v >> 16) & 255
        y[i] = (r * 77 + g * 150 + b * 29) >> 8


@kernel((256,))
def hash_rounds(x: "i32[n]", y: "i32[n]", rounds: "index"):
    i = bx * wx + tx
    if i < n:
        v = x[i]
        for r in range(rounds):
            v = v ^ (v << 13)
            v = v ^ (v >> 17)
            v = v ^ (v << 5)
        y[i] = v


@kernel((256,))
def horner(x: "f32[n]", c: "f32[m]", y: "f32[n]"):
    i = bx * wx + tx
    if i < n:
        v = x[i]
        acc = 0.0
        for k in range(m):
            acc = acc * v + c[k]
        y[i] = acc


@kernel((32, 8))
def jacobi_f64(x: "f64[h, w]", b: "f64[h, w]", y: "f64[h, w]"):
    j = bx * wx + tx
    i = by * wy + ty
    if (i > 0) and (i < h - 1) and (j > 0) and (j < w - 1):
        y[i, j] = f64(0.25) * (x[i - 1, j] + x[i + 1, j] + x[i, j - 1] + x[i, j + 1] + b[i, j])


@kernel((128,))
def running_max(x: "f32[steps, n]", y: "f32[steps, n]"):
    i = bx * wx + tx
    if i < n:
        best = f32(-inf)
        for t in range(steps):
            best = max(best, x[t, i])
            y[t, i] = best


@kernel((256,))
def blur_tile(x: "f32[rows, cols]", filter: "f32[17]", y: "f32[rows, cols]"):
    tile = shared("f32", 272)
    j = bx * 256 + tx
    v = 0.0
    if (j >= 8) and (j - 8 < cols):
        v = x[by, j - 8]
    tile[tx] = v
    if tx < 16:
        u = 0.0
        if j + 248 < cols:
            u = x[by, j + 248]
        tile[tx + 256] = u
    barrier()
    if j < cols:
        acc = 0.0
        for k in range(17):
            acc += tile[tx + k] * filter[k]
        y[by, j] = acc


@kernel((32, 8))
def floyd_step(d: "f32[n, n]", e: "f32[n, n]", k: "index"):
    j = bx * wx + tx
    i = by * wy + ty
    if (i < n) and (j < n):
        e[i, j] = min(d[i, j], d[i, k] + d[k, j])


@kernel((128,))
def lj_forces(p: "f32[n, 4]", near: "i32[m, n]", f: "f32[n, 4]", cut: "f32"):
    i = bx * wx + tx
    if i < n:
        px = p[i, 0]
        py = p[i, 1]
        pz = p[i, 2]
        fx = 0.0
        fy = 0.0
        fz = 0.0
        for q in range(m):
            j = index(near[q, i])
            dx = px - p[j, 0]
            dy = py - p[j, 1]
            dz = pz - p[j, 2]
            r2 = dx * dx + dy * dy + dz * dz
            if r2 < cut:
                s = 1.0 / r2
                s6 = s * s * s
                w = s6 * (s6 - 0.5) * s
                fx += dx * w
                fy += dy * w
                fz += dz * w
        f[i, 0] = fx
        f[i, 1] = fy
        f[i, 2] = fz


@kernel((128,))
def gemv_i8(w: "i8[m, n]", scale: "f32[m]", x: "f32[n]", y: "f32[m]"):
    acc = 0.0
    for j in range(tx, n, wx):
        acc += f32(w[bx, j]) * x[j]
    whole = sum_of_block(acc)
    if tx == 0:
        y[bx] = whole * scale[bx]


@kernel((128,))
def embedding_bag(start: "i32[b1]", ids: "i32[t]", table: "f32[words, dim]", y: "f32[bags, dim]"):
    for d in range(tx, dim, wx):
        acc = 0.0
        for at in range(index(start[bx]), index(start[bx + 1])):
            acc += table[index(ids[at]), d]
        y[bx, d] = acc


@kernel((32,))
def softmax_warp(x: "f32[rows, cols]", y: "f32[rows, cols]"):
    top = f32(-inf)
    for j in range(tx, cols, 32):
        top = max(top, x[bx, j])
    top = max(top, shuffle_xor(top, 16))
    top = max(top, shuffle_xor(top, 8))
    top = max(top, shuffle_xor(top, 4))
    top = max(top, shuffle_xor(top, 2))
    top = max(top, shuffle_xor(top, 1))
    total = 0.0
    for j in range(tx, cols, 32):
        total += exp(x[bx, j] - top)
    total += shuffle_xor(total, 16)
    total += shuffle_xor(total, 8)
    total += shuffle_xor(total, 4)
    total += shuffle_xor(total, 2)
    total += shuffle_xor(total, 1)
    for j in range(tx, cols, 32):
        y[bx, j] = exp(x[bx, j] - top) / total


@kernel((128,))
def fft_stage(re: "f32[batch, n]", im: "f32[batch, n]", half: "index"):
    for k in range(tx, n // 2, wx):
        group = k // half
        pos = k % half
        a = group * 2 * half + pos
        b = a + half
        angle = f32(i32(pos)) * -3.14159265 / f32(i32(half))
        c = cos(angle)
        s = sin(angle)
        ur = re[bx, a]
        ui = im[bx, a]
        vr = re[bx, b] * c - im[bx, b] * s
        vi = re[bx, b] * s + im[bx, b] * c
        re[bx, a] = ur + vr
        im[bx, a] = ui + vi
        re[bx, b] = ur - vr
        im[bx, b] = ui - vi


@kernel((256,))
def lstm_cell(gates: "f32[b, 4, h]", c: "f32[b, h]", cn: "f32[b, h]", hn: "f32[b, h]"):
    j = bx * wx + tx
    if j < h:
        gi = 1.0 / (1.0 + exp(-gates[by, 0, j]))
        gf = 1.0 / (1.0 + exp(-gates[by, 1, j]))
        gg = tanh(gates[by, 2, j])
        go = 1.0 / (1.0 + exp(-gates[by, 3, j]))
        n = gf * c[by, j] + gi * gg
        cn[by, j] = n
        hn[by, j] = go * tanh(n)


@kernel((128,))
def welford_columns(x: "f32[rows, cols]", mean: "f32[cols]", variance: "f32[cols]"):
    j = bx * wx + tx
    if j < cols:
        m = 0.0
        s = 0.0
        for i in range(rows):
            v = x[i, j]
            d = v - m
            m += d / f32(i + 1)
            s += d * (v - m)
        mean[j] = m
        variance[j] = s / f32(rows)


@kernel((128,))
def causal_softmax(x: "f32[n, n]", y: "f32[n, n]"):
    largest = f32(-inf)
    for j in range(tx, bx + 1, wx):
        largest = max(largest, x[bx, j])
    top = max_of_block(largest)
    total = 0.0
    for j in range(tx, bx + 1, wx):
        e = exp(x[bx, j] - top)
        y[bx, j] = e
        total += e
    whole = 1.0 / sum_of_block(total)
    for j in range(tx, n, wx):
        v = 0.0
        if j <= bx:
            v = y[bx, j] * whole
        y[bx, j] = v


@kernel((256,))
def search_sorted(keys: "f32[m]", x: "f32[n]", at: "i32[n]"):
    i = bx * wx + tx
    if i < n:
        v = x[i]
        low = index(0)
        high = m
        while low < high:
            middle = (low + high) // 2
            if keys[middle] < v:
                low = middle + 1
            else:
                high = middle
        at[i] = i32(low)


@kernel((256,))
def im2col(x: "f32[c, h, w]", y: "f32[k, oh, ow]", kw: "index", kh: "index"):
    total = k * oh * ow
    for i in range(bx * wx + tx, total, gx * wx):
        col = i % ow
        rest = i // ow
        row = rest % oh
        which = rest // oh
        s = which % kw
        r = (which // kw) % kh
        ch = which // (kw * kh)
        y[which, row, col] = x[ch, row + r, col + s]


@kernel((128,))
def matvec_columns(a: "f32[m, n]", x: "f32[m]", y: "f32[n]"):
    j = bx * wx + tx
    if j < n:
        acc = 0.0
        for i in range(by * 64, min(by * 64 + 64, m)):
            acc += a[i, j] * x[i]
        atomic_add(y[j], acc)


@kernel((256,))
def sgd_f16(w: "f16[n]", g: "f16[n]", v: "f16[n]", rate: "f32", momentum: "f32"):
    i = bx * wx + tx
    if i < n:
        nv = momentum * f32(v[i]) + f32(g[i])
        v[i] = f16(nv)
        w[i] = f16(f32(w[i]) - rate * nv)


@kernel((256,))
def collatz(x: "i32[n]", y: "i32[n]"):
    i = bx * wx + tx
    if i < n:
        v = i64(x[i])
        steps = i32(0)
        while v > 1:
            if v % 2 == 0:
                v = v / 2
            else:
                v = 3 * v + 1
            steps = steps + 1
        y[i] = steps


@kernel((128,))
def ratio_columns(x: "f32[rows, cols]", d: "f32[rows, cols]", y: "f32[cols]"):
    j = bx * wx + tx
    if j < cols:
        acc = 0.0
        for i in range(rows):
            acc += x[i, j] / d[i, j]
        y[j] = acc


@kernel((256,))
def root_rows(x: "f32[rows, cols]", y: "f32[rows]"):
    acc = 0.0
    for j in range(tx, cols, wx):
        acc += sqrt(x[bx, j])
    whole = sum_of_block(acc)
    if tx == 0:
        y[bx] = whole


@kernel((128,))
def weighted_mean(x: "f32[n, k]", w: "f32[n, k]", y: "f32[n]"):
    i = bx * wx + tx
    if i < n:
        a = 0.0
        for q in range(k):
            a += w[i, q] / (1.0 + x[i, q])
        y[i] = a


@kernel((128,))
def pointer_mean(near: "i32[n, k]", x: "f32[n]", y: "f32[n]"):
    i = bx * wx + tx
    if i < n:
        a = 0.0
        for q in range(k):
            a += x[index(near[i, q])]
        y[i] = a / f32(k)


@kernel((128,))
def block_csr(start: "i32[n1]", column: "i32[nnz]", value: "f32[nnz, 4]", x: "f32[n, 4]", y: "f32[n]"):
    row = bx * wx + tx
    if row < n:
        acc = 0.0
        for at in range(index(start[row]), index(start[row + 1])):
            c = index(column[at])
            acc += value[at, 0] * x[c, 0] + value[at, 1] * x[c, 1] + value[at, 2] * x[c, 2] + value[at, 3] * x[c, 3]
        y[row] = acc


@kernel((128,))
def argmin_columns(x: "f32[rows, cols]", at: "i32[cols]"):
    j = bx * wx + tx
    if j < cols:
        best = 3.0e38
        place = i32(0)
        for i in range(rows):
            v = x[i, j]
            if v < best:
                best = v
                place = i32(i)
        at[j] = place


@kernel((128,))
def clip_count(x: "f32[rows, cols]", lo: "f32", total: "f32[cols]", count: "i32[cols]"):
    j = bx * wx + tx
    if j < cols:
        s = 0.0
        c = i32(0)
        for i in range(rows):
            v = x[i, j]
            if v > lo:
                s += v
                c += 1
        total[j] = s
        count[j] = c


@kernel((256,))
def bisect_root(a: "f32[n]", y: "f32[n]", rounds: "index"):
    i = bx * wx + tx
    if i < n:
        v = a[i]
        lo = 0.0
        hi = 1.0 + v
        for r in range(rounds):
            m = 0.5 * (lo + hi)
            if m * m < v:
                lo = m
            else:
                hi = m
        y[i] = 0.5 * (lo + hi)


@kernel((128,))
def row_scan(x: "f32[rows, cols]", y: "f32[rows, cols]"):
    j = bx * wx + tx
    if j < cols:
        s = 0.0
        for i in range(rows):
            s += x[i, j]
            y[i, j] = s


@kernel((32, 8))
def window_mean(x: "f32[h, w]", y: "f32[h, w]", r: "index"):
    j = bx * wx + tx
    i = by * wy + ty
    if (i >= r) and (i < h - r) and (j >= r) and (j < w - r):
        s = 0.0
        for p in range(i - r, i + r + 1):
            for q in range(j - r, j + r + 1):
                s += x[p, q]
        y[i, j] = s / f32((2 * r + 1) * (2 * r + 1))


@kernel((128,))
def moments_columns(x: "f32[rows, cols]", total: "f32[cols]", top: "f32[cols]", squares: "f32[cols]"):
    j = bx * wx + tx
    if j < cols:
        s = 0.0
        q = 0.0
        m = f32(-inf)
        for i in range(rows):
            v = x[i, j]
            s += v
            q += v * v
            m = max(m, v)
        total[j] = s
        squares[j] = q
        top[j] = m


@kernel((128,))
def nearest_point(x: "f32[n, 3]", z: "f32[m, 3]", at: "i32[n]"):
    i = bx * wx + tx
    if i < n:
        a = x[i, 0]
        b = x[i, 1]
        c = x[i, 2]
        best = 3.0e38
        place = i32(0)
        for k in range(m):
            u = z[k, 0] - a
            v = z[k, 1] - b
            w = z[k, 2] - c
            d = u * u + v * v + w * w
            if d < best:
                best = d
                place = i32(k)
        at[i] = place


@kernel((32, 8))
def rank_update(a: "f32[n, n1]", u: "f32[n, k]", v: "f32[k1, n1]"):
    j = bx * wx + tx
    i = by * wy + ty
    if (i < n) and (j < n1):
        for p in range(k):
            a[i, j] = a[i, j] - u[i, p] * v[p, j]


@kernel((256,))
def equal_bytes(x: "i8[n]", y: "i8[n]", out: "i32[1]"):
    count = i32(0)
    for i in range(bx * wx + tx, n, wx * gx):
        if x[i] == y[i]:
            count += 1
    atomic_add(out[0], count)


@kernel((128,))
def log_sum_exp_columns(x: "f32[rows, cols]", y: "f32[cols]"):
    j = bx * wx + tx
    if j < cols:
        m = f32(-inf)
        for i in range(rows):
            m = max(m, x[i, j])
        s = 0.0
        for i in range(rows):
            s += exp(x[i, j] - m)
        y[j] = m + log(s)


@kernel((128,))
def wave_sum(x: "f32[n, k]", y: "f32[n]"):
    i = bx * wx + tx
    if i < n:
        s = 0.0
        for p in range(k):
            s += sin(x[p, i % k]) * cos(f32(i32(p)) * 0.001)
        y[i] = s


@kernel((128,))
def dot_rows_f64(x: "f64[rows, cols]", z: "f64[rows, cols]", y: "f64[cols]"):
    j = bx * wx + tx
    if j < cols:
        s = f64(0.0)
        for i in range(rows):
            s += x[i, j] * z[i, j]
        y[j] = s


@kernel((256,))
def power_mod(x: "i32[n]", e: "i32[n]", y: "i32[n]", p: "i32"):
    i = bx * wx + tx
    if i < n:
        b = i64(x[i] % p)
        m = i64(p)
        k = e[i]
        r = i64(i32(1))
        while k > 0:
            if k % 2 == 1:
                r = (r * b) % m
            b = (b * b) % m
            k = k // 2
        y[i] = i32(r)


@kernel((128,))
def four_columns(x: "f32[n, m]", w: "f32[m]", y: "f32[n]"):
    i = bx * wx + tx
    if i < n:
        s = 0.0
        for p in range(0, m, 4):
            s += x[i, p] * w[p] + x[i, p + 1] * w[p + 1] + x[i, p + 2] * w[p + 2] + x[i, p + 3] * w[p + 3]
        y[i] = s


@kernel((256,))
def leapfrog(px: "f32[n]", py: "f32[n]", pz: "f32[n]", vx: "f32[n]", vy: "f32[n]", vz: "f32[n]", fx: "f32[n]", fy: "f32[n]", fz: "f32[n]", dt: "f32"):
    for i in range(bx * wx + tx, n, wx * gx):
        a = vx[i] + dt * fx[i]
        b = vy[i] + dt * fy[i]
        c = vz[i] + dt * fz[i]
        vx[i] = a
        vy[i] = b
        vz[i] = c
        px[i] = px[i] + dt * a
        py[i] = py[i] + dt * b
        pz[i] = pz[i] + dt * c


@kernel((32, 8))
def median_of_nine(x: "f32[h, w]", y: "f32[h, w]"):
    j = bx * wx + tx + 1
    i = by * wy + ty + 1
    if (i < h - 1) and (j < w - 1):
        a = x[i - 1, j - 1]
        b = x[i - 1, j]
        c = x[i - 1, j + 1]
        d = x[i, j - 1]
        e = x[i, j]
        f = x[i, j + 1]
        g = x[i + 1, j - 1]
        k = x[i + 1, j]
        o = x[i + 1, j + 1]
        lo = max(max(min(min(a, b), c), min(min(d, e), f)), min(min(g, k), o))
        hi = min(min(max(max(a, b), c), max(max(d, e), f)), max(max(g, k), o))
        m1 = max(min(a, b), min(max(a, b), c))
        m2 = max(min(d, e), min(max(d, e), f))
        m3 = max(min(g, k), min(max(g, k), o))
        mi = max(min(m1, m2), min(max(m1, m2), m3))
        y[i, j] = max(min(lo, mi), min(max(lo, mi), hi))


@kernel((128,))
def causal_row(x: "f32[n, n1]", v: "f32[n1]", y: "f32[n]"):
    i = bx * wx + tx
    if i < n:
        s = 0.0
        for p in range(i + 1):
            s += x[p, i] * v[p]
        y[i] = s


@kernel((256,))
def complex_dot(a: "f32[rows, cols, 2]", b: "f32[rows, cols, 2]", y: "f32[cols, 2]"):
    j = bx * wx + tx
    if j < cols:
        re = 0.0
        im = 0.0
        for i in range(rows):
            ar = a[i, j, 0]
            ai = a[i, j, 1]
            br = b[i, j, 0]
            bi = b[i, j, 1]
            re += ar * br - ai * bi
            im += ar * bi + ai * br
        y[j, 0] = re
        y[j, 1] = im


@kernel((128,))
def norm_backward(dy: "f32[rows, cols]", x: "f32[rows, cols]", mean: "f32[rows]", scale: "f32[rows]", dg: "f32[cols]", db: "f32[cols]"):
    j = bx * wx + tx
    if j < cols:
        g = 0.0
        b = 0.0
        for i in range(rows):
            d = dy[i, j]
            g += d * (x[i, j] - mean[i]) * scale[i]
            b += d
        dg[j] = g
        db[j] = b


@kernel((128,))
def kahan_columns(x: "f32[rows, cols]", y: "f32[cols]"):
    j = bx * wx + tx
    if j < cols:
        s = 0.0
        c = 0.0
        for i in range(rows):
            v = x[i, j] - c
            t = s + v
            c = (t - s) - v
            s = t
        y[j] = s


@kernel((256,))
def table_lookup(x: "f32[n]", t: "f32[size]", y: "f32[n]"):
    for i in range(bx * wx + tx, n, wx * gx):
        v = x[i] * f32(i32(size - 1))
        k = i32(v)
        f = v - f32(k)
        a = t[index(k)]
        b = t[index(k) + 1]
        y[i] = a + f * (b - a)


@kernel((128,))
def first_above(x: "f32[rows, cols]", limit: "f32", at: "i32[cols]"):
    j = bx * wx + tx
    if j < cols:
        i = 0
        s = 0.0
        while (i < rows) and (s < limit):
            s += x[i, j]
            i = i + 1
        at[j] = i32(i)


@kernel((256,))
def scale_rows_f16(x: "f16[rows, cols]", s: "f16[rows]", y: "f16[rows, cols]"):
    for j in range(tx, cols, wx):
        y[bx, j] = f16(f32(x[bx, j]) * f32(s[bx]))


@kernel((16, 16))
def matmul_nt(a: "f32[m, k]", b: "f32[n, k]", c: "f32[m, n]"):
    i = by * wy + ty
    j = bx * wx + tx
    if (i < m) and (j < n):
        s = 0.0
        for p in range(k):
            s += a[i, p] * b[j, p]
        c[i, j] = s


@kernel((16, 16))
def matmul_tn(a: "f32[k, m]", b: "f32[k, n]", c: "f32[m, n]"):
    i = by * wy + ty
    j = bx * wx + tx
    if (i < m) and (j < n):
        s = 0.0
        for p in range(k):
            s += a[p, i] * b[p, j]
        c[i, j] = s


@kernel((256,))
def axpy_three(x: "f32[n]", y: "f32[n]", z: "f32[n]", a: "f32", b: "f32"):
    for i in range(bx * wx + tx, n, wx * gx):
        z[i] = a * x[i] + b * y[i] + z[i]


@kernel((256,))
def batch_norm(x: "f32[n, c, hw]", mean: "f32[c]", var: "f32[c]", g: "f32[c]", b: "f32[c]", y: "f32[n, c, hw]", eps: "f32"):
    s = g[bx] * rsqrt(var[bx] + eps)
    t = b[bx] - mean[bx] * s
    for p in range(tx, hw, wx):
        y[by, bx, p] = x[by, bx, p] * s + t


@kernel((256,))
def channel_sums(x: "f32[n, c, hw]", y: "f32[c]"):
    s = 0.0
    for i in range(n):
        for p in range(tx, hw, wx):
            s += x[i, bx, p]
    whole = sum_of_block(s)
    if tx == 0:
        y[bx] = whole


@kernel((256,))
def upsample(x: "f32[h, w]", y: "f32[h2, w2]"):
    for q in range(bx * wx + tx, h2 * w2, wx * gx):
        i = q // w2
        j = q % w2
        y[i, j] = x[i // 2, j // 2]


@kernel((128,))
def outer_products(x: "f32[n, k]", y: "f32[n, k, k]"):
    i = bx * wx + tx
    if i < n:
        for p in range(k):
            for q in range(k):
                y[i, p, q] = x[i, p] * x[i, q]


@kernel((256,))
def soft_threshold(x: "f64[n]", y: "f64[n]", t: "f64"):
    for i in range(bx * wx + tx, n, wx * gx):
        v = x[i]
        if v > t:
            y[i] = v - t
        else:
            if v < f64(0.0) - t:
                y[i] = v + t
            else:
                y[i] = f64(0.0)
