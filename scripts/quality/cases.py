"""What the kernels are launched with, and what they have to compute: by CuPy, in float64."""

import math

import cupy as cp
import numpy as np
from cupyx.scipy.special import erf


def to_bf16(x):
    """CuPy has no bfloat16: arrays of its bits."""
    bits = x.astype(cp.float32).view(cp.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(cp.uint16)


def from_bf16(bits):
    return (bits.astype(cp.uint32) << np.uint32(16)).view(cp.float32).astype(cp.float64)


class Case:
    """One launch: arguments by name, and for each array that is written what it has to hold.

    `own` has the tolerance of arrays that have another; the arrays of `bf16` hold the bits of bfloat16.
    """

    def __init__(self, grid, arguments, expected, tolerance=1e-5, own=None, bf16=()):
        self.grid, self.arguments, self.expected, self.tolerance = grid, arguments, expected, tolerance
        self.own, self.bf16 = own or {}, bf16
        self.before = {name: arguments[name].copy() for name in expected}

    def prepare(self):
        for name, start in self.before.items():
            self.arguments[name][...] = start

    def values(self, name, held):
        """The numbers that an array holds."""
        return from_bf16(held) if name in self.bf16 else held.astype(cp.float64)

    def error(self):
        """The largest relative error of an array, in the 2-norm; scaled, where an array has its own tolerance."""
        worst = 0.0
        for name, expected in self.expected.items():
            difference = cp.linalg.norm((self.values(name, self.arguments[name]) - expected).ravel())
            error = float(difference / cp.maximum(cp.linalg.norm(expected.astype(cp.float64).ravel()), 1e-300))
            own = self.own.get(name, self.tolerance)
            if own != self.tolerance:
                error = error * self.tolerance / own if own else math.inf if error else 0.0
            worst = max(worst, error if error == error else math.inf)
        return worst


def ceil(a, b):
    return -(-a // b)


class Maker:
    def __init__(self, seed):
        self.random = cp.random.default_rng(seed)

    def normal(self, *shape, dtype=cp.float32):
        return self.random.standard_normal(shape, dtype=cp.float32).astype(dtype)

    def uniform(self, *shape, dtype=cp.float32):
        return self.random.random(shape, dtype=cp.float32).astype(dtype)

    def integers(self, low, high, shape, dtype):
        return self.random.integers(low, high, shape).astype(dtype)

    # Rows.

    def layer_norm(self, rows=8192, cols=1500):
        x, g, b = self.normal(rows, cols), self.normal(cols), self.normal(cols)
        wide = x.astype(cp.float64)
        wide = (wide - wide.mean(1, keepdims=True)) / cp.sqrt(wide.var(1, keepdims=True) + 1e-5) * g + b
        return Case((rows,), dict(x=x, gamma=g, beta=b, y=cp.zeros_like(x), eps=np.float32(1e-5)), dict(y=wide))

    def rms_norm_f16(self, rows=8192, cols=2048):
        x, g = self.normal(rows, cols, dtype=cp.float16), self.normal(cols, dtype=cp.float16)
        wide = x.astype(cp.float64)
        wide = wide / cp.sqrt((wide * wide).mean(1, keepdims=True) + 1e-5) * g
        return Case((rows,), dict(x=x, gamma=g, y=cp.zeros_like(x), eps=np.float32(1e-5)), dict(y=wide), 1e-3)

    def softmax_rows(self, rows=8192, cols=1500):
        x = self.normal(rows, cols)
        e = cp.exp(x.astype(cp.float64) - x.max(1, keepdims=True))
        return Case((rows,), dict(x=x, y=cp.zeros_like(x)), dict(y=e / e.sum(1, keepdims=True)))

    def cross_entropy(self, rows=4096, cols=3000):
        x, label = self.normal(rows, cols), self.random.integers(0, cols, rows).astype(cp.int32)
        wide = x.astype(cp.float64)
        loss = cp.log(cp.exp(wide).sum(1)) - wide[cp.arange(rows), label]
        return Case((rows,), dict(x=x, label=label, loss=cp.zeros(rows, cp.float32)), dict(loss=loss))

    def gemv(self, m=8192, n=2000):
        a, x = self.normal(m, n), self.normal(n)
        return Case((m,), dict(a=a, x=x, y=cp.zeros(m, cp.float32)), dict(y=a.astype(cp.float64) @ x.astype(cp.float64)))

    def attention_row(self, rows=1056, keys=1024):
        q, k, v = self.normal(rows, 64), self.normal(keys, 64), self.normal(keys, 64)
        s = q.astype(cp.float64) @ k.T.astype(cp.float64) * 0.125
        s = cp.exp(s - s.max(1, keepdims=True))
        s /= s.sum(1, keepdims=True)
        return Case((rows,), dict(q=q, k=k, v=v, out=cp.zeros_like(q)), dict(out=s @ v.astype(cp.float64)))

    def row_argmax(self, rows=8192, cols=1000):
        x = self.normal(rows, cols)
        return Case((rows,), dict(x=x, at=cp.zeros(rows, cp.int32)), dict(at=x.argmax(1)), 0)

    # Stencils and convolutions.

    def stencil_2d(self, h=4001, w=4001):
        x = self.normal(h, w)
        y, wide = cp.zeros_like(x), x.astype(cp.float64)
        out = cp.zeros_like(wide)
        out[1:-1, 1:-1] = 0.5 * wide[1:-1, 1:-1] + 0.125 * (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:])
        return Case((ceil(w, 32), ceil(h, 8)), dict(x=x, y=y), dict(y=out))

    def of_7_points(self, grid, d, h, w):
        x = self.normal(d, h, w)
        wide = x.astype(cp.float64)
        out = cp.zeros_like(wide)
        i = slice(1, -1)
        out[i, i, i] = 0.4 * wide[i, i, i] + 0.1 * (wide[:-2, i, i] + wide[2:, i, i] + wide[i, :-2, i] + wide[i, 2:, i]
                                                   + wide[i, i, :-2] + wide[i, i, 2:])
        return Case(grid, dict(x=x, y=cp.zeros_like(x), a=np.float32(0.4), b=np.float32(0.1)), dict(y=out))

    def stencil_3d(self, d=258, h=258, w=258):
        return self.of_7_points((ceil(w, 32), ceil(h, 4), ceil(d, 2)), d, h, w)

    def stencil_3d_march(self, d=130, h=514, w=514):
        return self.of_7_points((ceil(w, 32), ceil(h, 8)), d, h, w)

    stencil_3d_rotate = stencil_3d_march

    def fdtd_1d(self, cells=132 * 256, steps=100):
        h, e = self.normal(cells, steps), self.normal(cells, steps)
        wide, out = h.astype(cp.float64), e.astype(cp.float64)
        for t in range(1, steps):
            out[:, t] = out[:, t - 1] * 0.5 + wide[:, t] - wide[:, t - 1]
        return Case((ceil(cells, 128),), dict(e=e, h=h, c=np.float32(0.5)), dict(e=out))

    def conv_2d_static(self):
        x, f = self.normal(130, 130, 8), self.normal(3, 3, 8, 16)
        out = cp.zeros((128, 128, 16))
        for r in range(3):
            for s in range(3):
                out += cp.tensordot(x[r:r + 128, s:s + 128].astype(cp.float64), f[r, s].astype(cp.float64), 1)
        return Case((4, 16, 16), dict(x=x, filter=f, y=cp.zeros((128, 128, 16), cp.float32)), dict(y=out))

    def conv_2d(self, oh=2000, ow=2000, k=5):
        x, f = self.normal(oh + k - 1, ow + k - 1), self.normal(k, k)
        out = sum(x[r:r + oh, s:s + ow].astype(cp.float64) * float(f[r, s]) for r in range(k) for s in range(k))
        return Case((ceil(ow, 32), ceil(oh, 8)), dict(x=x, filter=f, y=cp.zeros((oh, ow), cp.float32)), dict(y=out))

    def conv_1d_direct(self, m=2**21):
        x, f = self.normal(m + 62), self.normal(63)
        out = sum(x[k:k + m].astype(cp.float64) * float(f[k]) for k in range(63))
        return Case((ceil(m, 256),), dict(x=x, filter=f, y=cp.zeros(m, cp.float32)), dict(y=out))

    def depthwise_f16(self, c=2048):
        x, f = self.normal(c, 66, 66, dtype=cp.float16), self.normal(c, 3, 3, dtype=cp.float16)
        out = sum(x[:, r:r + 64, s:s + 64].astype(cp.float64) * f[:, r, s].astype(cp.float64)[:, None, None]
                  for r in range(3) for s in range(3))
        return Case((2, 8, c), dict(x=x, filter=f, y=cp.zeros((c, 64, 64), cp.float16)), dict(y=out), 1e-3)

    def max_pool(self, c=64, oh=255, ow=255):
        x = self.normal(c, 2 * oh + 1, 2 * ow + 1)
        out = x[:, 0:2 * oh:2, 0:2 * ow:2]
        for r in range(3):
            for s in range(3):
                out = cp.maximum(out, x[:, r:r + 2 * oh:2, s:s + 2 * ow:2])
        return Case((ceil(ow, 32), ceil(oh, 8), c), dict(x=x, y=cp.zeros((c, oh, ow), cp.float32)), dict(y=out), 0)

    # Reductions over everything, and scans.

    def block_sums(self, n=2**24 + 77, blocks=1056):
        x = self.uniform(n)
        items = blocks * 256
        padded = cp.zeros(ceil(n, items) * items)
        padded[:n] = x
        return Case((blocks,), dict(x=x, out=cp.zeros(blocks, cp.float32)), dict(out=padded.reshape(-1, blocks, 256).sum((0, 2))))

    def dot_f64(self, n=2**23):
        x, y = self.uniform(n, dtype=cp.float64), self.uniform(n, dtype=cp.float64)
        return Case((528,), dict(x=x, y=y, out=cp.zeros(1)), dict(out=cp.dot(x, y).reshape(1)), 1e-12)

    def column_sums(self, rows=512, cols=40000):
        x = self.uniform(rows, cols)
        return Case((ceil(cols, 256),), dict(x=x, out=cp.zeros(cols, cp.float32)), dict(out=x.sum(0, dtype=cp.float64)))

    def histogram_shared(self, n=2**23):
        values = self.random.integers(-20, 300, n).astype(cp.int32)
        counted = cp.bincount(values[(values >= 0) & (values < 256)], minlength=256)
        return Case((528,), dict(values=values, bins=cp.zeros(256, cp.int32)), dict(bins=counted), 0)

    def scan_blocks(self, n=2**23 - 5):
        x = self.uniform(n)
        padded = cp.zeros(ceil(n, 256) * 256)
        padded[:n] = x
        out = cp.cumsum(padded.reshape(-1, 256), 1).ravel()[:n]
        return Case((ceil(n, 256),), dict(x=x, y=cp.zeros_like(x)), dict(y=out))

    def warp_scan(self, n=2**23):
        x = self.random.integers(0, 9, n).astype(cp.int32)
        return Case((n // 256,), dict(x=x, y=cp.zeros_like(x)), dict(y=cp.cumsum(x.reshape(-1, 32), 1).ravel()), 0)

    # Linear algebra.

    def product(self, tile, m, n, k):
        a, b = self.normal(m, k), self.normal(k, n)
        return Case((ceil(n, tile), ceil(m, tile)), dict(a=a, b=b, c=cp.zeros((m, n), cp.float32)),
                    dict(c=a.astype(cp.float64) @ b.astype(cp.float64)))

    def matmul_naive(self):
        return self.product(16, 1000, 1000, 500)

    def matmul_shared(self):
        return self.product(16, 1024, 1023, 513)

    def batched_matmul_8(self, batch=65536):
        a, b = self.normal(batch, 8, 8), self.normal(batch, 8, 8)
        return Case((batch,), dict(a=a, b=b, c=cp.zeros_like(a)), dict(c=a.astype(cp.float64) @ b.astype(cp.float64)))

    def batched_matvec(self, batch=100000):
        a, x = self.normal(batch, 16, 16), self.normal(batch, 16)
        return Case((ceil(batch * 16, 64),), dict(a=a, x=x, y=cp.zeros_like(x)),
                    dict(y=(a.astype(cp.float64) @ x.astype(cp.float64)[:, :, None])[:, :, 0]))

    def sparse(self, grid, n=200000, each=24):
        counts = self.random.integers(0, 2 * each, n)
        start = cp.zeros(n + 1, cp.int32)
        start[1:] = cp.cumsum(counts)
        nnz = int(start[-1])
        column, value, x = self.random.integers(0, n, nnz).astype(cp.int32), self.normal(nnz), self.normal(n)
        rows = cp.repeat(cp.arange(n), counts.tolist())
        y = cp.bincount(rows, weights=value.astype(cp.float64) * x.astype(cp.float64)[column], minlength=n)
        return Case((ceil(grid(n), 128),), dict(start=start, column=column, value=value, x=x, y=cp.zeros(n, cp.float32)),
                    dict(y=y))

    def csr_rows(self):
        return self.sparse(lambda n: n)

    def csr_warps(self):
        return self.sparse(lambda n: 32 * n)

    def tridiagonal(self, n=64, systems=132 * 512):
        lower, upper, right = (self.uniform(n, systems) for _ in range(3))
        diagonal = self.uniform(n, systems) + 4
        low, d, u, x = (part.astype(cp.float64) for part in (lower, diagonal, upper, right))
        for i in range(1, n):
            w = low[i] / d[i - 1]
            d[i] -= w * u[i - 1]
            x[i] -= w * x[i - 1]
        x[n - 1] /= d[n - 1]
        for i in range(n - 2, -1, -1):
            x[i] = (x[i] - u[i] * x[i + 1]) / d[i]
        return Case((ceil(systems, 128),), dict(lower=lower, diagonal=diagonal, upper=upper, right=right,
                                                c=cp.zeros_like(lower), x=cp.zeros_like(lower)), dict(x=x))

    # Particles and other computing.

    def bodies(self, block, n=16384):
        p = self.uniform(n, 4)
        wide, out = p.astype(cp.float64), cp.zeros((n, 3))
        for first in range(0, n, 2048):
            d = wide[None, :, :3] - wide[first:first + 2048, None, :3]
            r = 1 / cp.sqrt((d * d).sum(2) + 0.01)
            out[first:first + 2048] = (d * (wide[None, :, 3] * r ** 3)[:, :, None]).sum(1)
        return Case((n // block,), dict(p=p, a=cp.zeros((n, 3), cp.float32), eps=np.float32(0.01)), dict(a=out), 1e-4)

    def n_body(self):
        return self.bodies(256)

    def n_body_plain(self):
        return self.bodies(128)

    def mandelbrot(self, h=1024, w=1024):
        return Case((w // 16, h // 16), dict(out=cp.zeros((h, w), cp.int32), scale=np.float32(3.0 / 1024)), dict(out=None), 0.05)

    def black_scholes(self, n=2**22):
        s, k, t = self.uniform(n) * 20 + 5, self.uniform(n) * 90 + 10, self.uniform(n) * 9 + 0.25
        ws, wk, wt = (part.astype(cp.float64) for part in (s, k, t))
        d1 = (cp.log(ws / wk) + (0.02 + 0.045) * wt) / (0.3 * cp.sqrt(wt))
        n1, n2 = (0.5 * (1 + erf(d / math.sqrt(2))) for d in (d1, d1 - 0.3 * cp.sqrt(wt)))
        c = wk * cp.exp(-0.02 * wt)
        return Case((2112,), dict(s=s, k=k, t=t, call=cp.zeros_like(s), put=cp.zeros_like(s), r=np.float32(0.02),
                                  v=np.float32(0.3)), dict(call=ws * n1 - c * n2, put=c * (1 - n2) - ws * (1 - n1)))

    # Element by element.

    def gelu_chain(self, n=4096, m=3000):
        x, bias, residual = self.normal(n, m), self.normal(m), self.normal(n, m)
        v = x.astype(cp.float64) + bias
        y = 0.5 * v * (1 + cp.tanh(0.79788456 * (v + 0.044715 * v ** 3))) + residual
        return Case((ceil(m, 256), n), dict(x=x, bias=bias, residual=residual, y=cp.zeros_like(x)), dict(y=y))

    def swiglu_f16(self, n=2**24):
        g, u = self.normal(n, dtype=cp.float16), self.normal(n, dtype=cp.float16)
        w = g.astype(cp.float64)
        return Case((2112,), dict(gate=g, up=u, y=cp.zeros_like(g)), dict(y=w / (1 + cp.exp(-w)) * u), 1e-3)

    def adam(self, n=2**23 - 3):
        w, g, m, v = self.normal(n), self.normal(n), self.normal(n), self.uniform(n)
        a = 0.9 * m.astype(cp.float64) + 0.1 * g
        b = 0.999 * v.astype(cp.float64) + 0.001 * g.astype(cp.float64) ** 2
        return Case((ceil(n, 256),), dict(w=w, g=g, m=m, v=v, rate=np.float32(1e-3)),
                    dict(m=a, v=b, w=w - 1e-3 * a / (cp.sqrt(b) + 1e-8)))

    def rope(self, tokens=4096, heads=16):
        x = self.normal(tokens, heads, 128)
        base = np.float32(math.log(10000.0) / 64)
        angle = cp.arange(tokens)[:, None] * cp.exp(-float(base) * cp.arange(64))[None, :]
        c, s, w = cp.cos(angle)[:, None], cp.sin(angle)[:, None], x.astype(cp.float64)
        y = cp.concatenate((w[..., :64] * c - w[..., 64:] * s, w[..., :64] * s + w[..., 64:] * c), 2)
        return Case((tokens,), dict(x=x, y=cp.zeros_like(x), base=base), dict(y=y), 1e-3)

    def quantize(self, rows=2048, cols=5000):
        x, scale = self.normal(rows, cols), self.uniform(rows) * 0.05 + 0.02
        q = cp.clip(cp.floor(x * (np.float32(1) / scale)[:, None] + np.float32(0.5)), -127, 127)
        return Case((4, rows), dict(x=x, scale=scale, q=cp.zeros((rows, cols), cp.int8)), dict(q=q), 1e-3)

    def gather_rows(self, words=50000, dim=768, n=20000):
        table, which = self.normal(words, dim), self.random.integers(0, words, n).astype(cp.int32)
        return Case((n,), dict(table=table, which=which, y=cp.zeros((n, dim), cp.float32)), dict(y=table[which]), 0)

    def transpose_odd(self, rows=4099, cols=3001):
        x = self.normal(rows, cols)
        return Case((ceil(cols, 32), ceil(rows, 32)), dict(x=x, y=cp.zeros((cols, rows), cp.float32)), dict(y=x.T), 0)

    def transpose_plain(self, rows=2047, cols=2049):
        x = self.normal(rows, cols)
        return Case((ceil(cols, 16), ceil(rows, 16)), dict(x=x, y=cp.zeros((cols, rows), cp.float32)), dict(y=x.T), 0)

    def monte_carlo(self, n=132 * 2048, rounds=500):
        return Case((n // 256,), dict(hits=cp.zeros(n, cp.int32), rounds=np.int64(rounds)), dict(hits=None), 0)

    def bitonic(self, blocks=16384):
        x = self.normal(blocks * 256)
        return Case((blocks,), dict(x=x, y=cp.zeros_like(x)), dict(y=cp.sort(x.reshape(blocks, 256), 1).ravel()), 0)

    # Kernels of 2026-11-26.

    def group_norm(self, n=64, g=32, cg=8, hw=900):
        x, a, b = (self.normal(n, g, cg, hw), self.normal(g, cg), self.normal(g, cg))
        w = x.astype(cp.float64)
        m = w.mean((2, 3), keepdims=True)
        v = w.var((2, 3), keepdims=True)
        y = (w - m) / cp.sqrt(v + 1e-05) * a[None, :, :, None] + b[None, :, :, None]
        return Case((g, n), dict(x=x, gamma=a, beta=b, y=cp.zeros_like(x), eps=np.float32(1e-05)), dict(y=y))

    def nearest_centroid(self, n=132 * 1024, k=256):
        p, c = (self.normal(n, 16), self.normal(k, 16))
        d = (p * p).sum(1)[:, None] - 2 * p @ c.T + (c * c).sum(1)[None]
        return Case((ceil(n, 128),), dict(p=p, c=c, at=cp.zeros(n, cp.int32)), dict(at=d.argmin(1)), 0.02)

    def ell_rows(self, width=24, n=400000):
        col, v, x = (self.random.integers(0, n, (width, n)).astype(cp.int32), self.normal(width, n), self.normal(n))
        return Case((ceil(n, 256),), dict(column=col, value=v, x=x, y=cp.zeros_like(x)), dict(y=(v.astype(cp.float64) * x[col]).sum(0)))

    def bilinear(self, h=1500, w=1700, oh=2900, ow=3100):
        x = self.normal(h, w)
        sx, sy = (np.float32((w - 1) / ow), np.float32((h - 1) / oh))
        fx, fy = (cp.arange(ow, dtype=cp.float32) * sx, cp.arange(oh, dtype=cp.float32) * sy)
        x0, y0 = (cp.floor(fx).astype(int), cp.floor(fy).astype(int))
        x1, y1 = (cp.minimum(x0 + 1, w - 1), cp.minimum(y0 + 1, h - 1))
        ax, ay = ((fx - cp.floor(fx)).astype(cp.float64)[None], (fy - cp.floor(fy)).astype(cp.float64)[:, None])
        X = x.astype(cp.float64)
        t = X[y0][:, x0] * (1 - ax) + X[y0][:, x1] * ax
        b = X[y1][:, x0] * (1 - ax) + X[y1][:, x1] * ax
        return Case(
            (ceil(ow, 32), ceil(oh, 8)), dict(x=x, y=cp.zeros((oh, ow), cp.float32), sx=sx, sy=sy), dict(y=t * (1 - ay) + b * ay), 0.001
        )

    def gray_packed(self, n=2**23 + 5):
        x = self.random.integers(0, 2**24, n).astype(cp.int32)
        y = (x & 255) * 77 + (x >> 8 & 255) * 150 + (x >> 16 & 255) * 29 >> 8
        return Case((1056,), dict(x=x, y=cp.zeros_like(x)), dict(y=y), 0)

    def hash_rounds(self, n=2**21, rounds=64):
        x = self.random.integers(-(2**31), 2**31, n).astype(cp.int32)
        v = x.view(cp.uint32).copy()
        for _ in range(rounds):
            v ^= v << cp.uint32(13)
            v ^= v >> cp.uint32(17)
            v ^= v << cp.uint32(5)
        return Case((ceil(n, 256),), dict(x=x, y=cp.zeros_like(x), rounds=np.int64(rounds)), dict(y=v.view(cp.int32)), 0)

    def horner(self, n=2**22, m=24):
        x, c = (self.uniform(n), self.normal(m))
        a = cp.zeros(n)
        for k in range(m):
            a = a * x + float(c[k])
        return Case((ceil(n, 256),), dict(x=x, c=c, y=cp.zeros_like(x)), dict(y=a))

    def jacobi_f64(self, h=3001, w=3003):
        x, b = (self.normal(h, w, dtype=cp.float64), self.normal(h, w, dtype=cp.float64))
        o = cp.zeros_like(x)
        o[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + b[1:-1, 1:-1])
        return Case((ceil(w, 32), ceil(h, 8)), dict(x=x, b=b, y=cp.zeros_like(x)), dict(y=o), 1e-12)

    def running_max(self, steps=200, n=132 * 512):
        x = self.normal(steps, n)
        y = x.copy()
        for t in range(1, steps):
            y[t] = cp.maximum(y[t - 1], x[t])
        return Case((ceil(n, 128),), dict(x=x, y=cp.zeros_like(x)), dict(y=y), 0)

    def blur_tile(self, rows=2000, cols=4001):
        x, f = (self.normal(rows, cols), self.normal(17))
        p = cp.zeros((rows, cols + 16))
        p[:, 8:-8] = x
        y = sum(p[:, k : k + cols] * float(f[k]) for k in range(17))
        return Case((ceil(cols, 256), rows), dict(x=x, filter=f, y=cp.zeros_like(x)), dict(y=y))

    def floyd_step(self, n=4000):
        d = self.uniform(n, n)
        return Case(
            (ceil(n, 32), ceil(n, 8)), dict(d=d, e=cp.zeros_like(d), k=np.int64(77)), dict(e=cp.minimum(d, d[:, 77:78] + d[77:78])), 1e-06
        )

    def lj_forces(self, n=132 * 1024, m=48):
        p, near = (self.uniform(n, 4) * 20, self.random.integers(0, n, (m, n)).astype(cp.int32))
        f = cp.zeros((n, 4))
        near = cp.where(near == cp.arange(n, dtype=cp.int32)[None], (near + 1) % n, near).astype(cp.int32)
        w = p.astype(cp.float64)[:, :3]
        for q in range(m):
            d = w - w[near[q]]
            r2 = (d * d).sum(1)
            s = 1 / r2
            s6 = s**3
            f[:, :3] += cp.where((r2 < 150)[:, None], d * (s6 * (s6 - 0.5) * s)[:, None], 0)
        return Case((ceil(n, 128),), dict(p=p, near=near, f=cp.zeros((n, 4), cp.float32), cut=np.float32(150)), dict(f=f), 0.01)

    def gemv_i8(self, m=8192, n=4000):
        w, s, x = (self.random.integers(-127, 128, (m, n)).astype(cp.int8), self.uniform(m), self.normal(n))
        return Case(
            (m,), dict(w=w, scale=s, x=x, y=cp.zeros(m, cp.float32)), dict(y=w.astype(cp.float64) @ x.astype(cp.float64) * s), 0.0001
        )

    def embedding_bag(self, bags=8192, words=50000, dim=256):
        c = self.random.integers(1, 40, bags)
        start = cp.zeros(bags + 1, cp.int32)
        start[1:] = cp.cumsum(c)
        t = int(start[-1])
        ids, table = (self.random.integers(0, words, t).astype(cp.int32), self.normal(words, dim))
        cs = cp.zeros((t + 1, dim))
        cs[1:] = cp.cumsum(table[ids].astype(cp.float64), 0)
        return Case(
            (bags,), dict(start=start, ids=ids, table=table, y=cp.zeros((bags, dim), cp.float32)), dict(y=cs[start[1:]] - cs[start[:-1]])
        )

    def softmax_warp(self, rows=132 * 256, cols=500):
        x = self.normal(rows, cols)
        e = cp.exp(x.astype(cp.float64) - x.max(1, keepdims=True))
        return Case((rows,), dict(x=x, y=cp.zeros_like(x)), dict(y=e / e.sum(1, keepdims=True)))

    def fft_stage(self, batch=4096, n=1024, half=64):
        re, im = (self.normal(batch, n), self.normal(batch, n))
        z = (re + 1j * im).astype(cp.complex128).reshape(batch, -1, 2, half)
        t = cp.exp(-1j * math.pi * cp.arange(half) / half)
        u, v = (z[:, :, 0], z[:, :, 1] * t)
        o = cp.stack((u + v, u - v), 2).reshape(batch, n)
        return Case((batch,), dict(re=re, im=im, half=np.int64(half)), dict(re=o.real.copy(), im=o.imag.copy()), 0.0001)

    def lstm_cell(self, b=2048, h=1500):
        g, c = (self.normal(b, 4, h), self.normal(b, h))
        w = g.astype(cp.float64)
        s = [1 / (1 + cp.exp(-w[:, k])) for k in range(4)]
        n = s[1] * c + s[0] * cp.tanh(w[:, 2])
        return Case((ceil(h, 256), b), dict(gates=g, c=c, cn=cp.zeros_like(c), hn=cp.zeros_like(c)), dict(cn=n, hn=s[3] * cp.tanh(n)))

    def welford_columns(self, rows=500, cols=132 * 256):
        x = self.normal(rows, cols)
        w = x.astype(cp.float64)
        return Case(
            (ceil(cols, 128),),
            dict(x=x, mean=cp.zeros(cols, cp.float32), variance=cp.zeros(cols, cp.float32)),
            dict(mean=w.mean(0), variance=w.var(0)),
            0.0001,
        )

    def causal_softmax(self, n=4096):
        x = self.normal(n, n)
        w = cp.where(cp.tri(n, dtype=bool), x.astype(cp.float64), -cp.inf)
        e = cp.exp(w - w.max(1, keepdims=True))
        return Case((n,), dict(x=x, y=cp.zeros_like(x)), dict(y=e / e.sum(1, keepdims=True)))

    def search_sorted(self, m=100000, n=2**21):
        k, x = (cp.sort(self.normal(m)), self.normal(n))
        return Case((ceil(n, 256),), dict(keys=k, x=x, at=cp.zeros(n, cp.int32)), dict(at=cp.searchsorted(k, x)), 0)

    def im2col(self, c=32, oh=250, ow=251):
        x = self.normal(c, oh + 2, ow + 2)
        y = cp.stack([x[i, r : r + oh, s : s + ow] for i in range(c) for r in range(3) for s in range(3)])
        return Case((1056,), dict(x=x, y=cp.zeros_like(y), kw=np.int64(3), kh=np.int64(3)), dict(y=y), 0)

    def matvec_columns(self, m=4001, n=6000):
        a, x = (self.normal(m, n), self.normal(m))
        return Case(
            (ceil(n, 128), ceil(m, 64)),
            dict(a=a, x=x, y=cp.zeros(n, cp.float32)),
            dict(y=x.astype(cp.float64) @ a.astype(cp.float64)),
            0.0001,
        )

    def sgd_f16(self, n=2**23 + 9):
        w, g, v = (self.normal(n, dtype=cp.float16) for _ in range(3))
        nv = 0.9 * v.astype(cp.float64) + g
        return Case(
            (ceil(n, 256),), dict(w=w, g=g, v=v, rate=np.float32(0.01), momentum=np.float32(0.9)), dict(v=nv, w=w - 0.01 * nv), 0.002
        )

    def collatz(self, n=2**20):
        x = cp.arange(1, n + 1, dtype=cp.int32)
        v = x.astype(cp.int64)
        s = cp.zeros(n, cp.int32)
        while True:
            a = v > 1
            if not a.any():
                break
            s += a
            v = cp.where(a, cp.where(v % 2 == 0, v // 2, 3 * v + 1), v)
        return Case((ceil(n, 256),), dict(x=x, y=cp.zeros_like(x)), dict(y=s), 0)

    def ratio_columns(self, rows=400, cols=132 * 256):
        x, d = (self.normal(rows, cols), self.uniform(rows, cols) + 1)
        return Case((ceil(cols, 128),), dict(x=x, d=d, y=cp.zeros(cols, cp.float32)), dict(y=(x.astype(cp.float64) / d).sum(0)), 0.0001)

    def root_rows(self, rows=8192, cols=2000):
        x = self.uniform(rows, cols)
        return Case((rows,), dict(x=x, y=cp.zeros(rows, cp.float32)), dict(y=cp.sqrt(x.astype(cp.float64)).sum(1)))

    def weighted_mean(self, n=132 * 1024, k=64):
        x, w = (self.uniform(n, k), self.normal(n, k))
        return Case(
            (ceil(n, 128),),
            dict(x=x, w=w, y=cp.zeros(n, cp.float32)),
            dict(y=(w.astype(cp.float64) / (1 + x.astype(cp.float64))).sum(1)),
            0.0001,
        )

    def pointer_mean(self, n=132 * 1024, k=40):
        near, x = (self.random.integers(0, n, (n, k)).astype(cp.int32), self.normal(n))
        return Case((ceil(n, 128),), dict(near=near, x=x, y=cp.zeros_like(x)), dict(y=x.astype(cp.float64)[near].mean(1)), 0.0001)

    def block_csr(self, n=100000, each=16):
        counts = self.random.integers(0, 2 * each, n)
        start = cp.zeros(n + 1, cp.int32)
        start[1:] = cp.cumsum(counts)
        nnz = int(start[-1])
        col, v, x = (self.random.integers(0, n, nnz).astype(cp.int32), self.normal(nnz, 4), self.normal(n, 4))
        rows = cp.repeat(cp.arange(n), counts.tolist())
        y = cp.bincount(rows, weights=(v.astype(cp.float64) * x.astype(cp.float64)[col]).sum(1), minlength=n)
        return Case((ceil(n, 128),), dict(start=start, column=col, value=v, x=x, y=cp.zeros(n, cp.float32)), dict(y=y), 0.0001)

    def argmin_columns(self, rows=400, cols=132 * 256):
        x = self.normal(rows, cols)
        return Case((ceil(cols, 128),), dict(x=x, at=cp.zeros(cols, cp.int32)), dict(at=x.argmin(0)), 0)

    def clip_count(self, rows=400, cols=132 * 256):
        x = self.normal(rows, cols)
        k = x > 0.3
        return Case(
            (ceil(cols, 128),),
            dict(x=x, lo=np.float32(0.3), total=cp.zeros(cols, cp.float32), count=cp.zeros(cols, cp.int32)),
            dict(total=(x * k).astype(cp.float64).sum(0), count=k.sum(0)),
            0.0001,
        )

    def bisect_root(self, n=2**21, rounds=40):
        a = self.uniform(n) * 9
        return Case((ceil(n, 256),), dict(a=a, y=cp.zeros_like(a), rounds=np.int64(rounds)), dict(y=cp.sqrt(a.astype(cp.float64))), 0.0001)

    # Upstream's lowering of linalg: the grid is what it has of the block.

    def tiled(self, block, *sizes):
        return tuple(ceil(size, part) for size, part in zip(sizes, block))

    def products(self, a, b, type, block, tolerance=1e-5):
        c = cp.zeros((*a.shape[:-1], b.shape[-1]), type)
        return Case(self.tiled(block, *c.shape), dict(a=a, b=b, c=c), dict(c=a.astype(cp.float64) @ b.astype(cp.float64)), tolerance)

    def linalg_matmul(self, m=1000, n=1010, k=500):
        return self.products(self.normal(m, k), self.normal(k, n), cp.float32, (32, 8))

    def linalg_matmul_f16(self, m=1000, n=1010, k=500):
        return self.products(self.normal(m, k, dtype=cp.float16), self.normal(k, n, dtype=cp.float16), cp.float32, (8, 32))

    def linalg_matmul_i8(self, m=1000, n=1010, k=500):
        a, b = (self.random.integers(-100, 100, shape).astype(cp.int8) for shape in ((m, k), (k, n)))
        return self.products(a, b, cp.int32, (8, 32), 0)

    def linalg_batch_matmul(self, batch=64, m=128, n=130, k=96):
        return self.products(self.normal(batch, m, k), self.normal(batch, k, n), cp.float32, (2, 8, 16))

    def linalg_matvec(self, m=33792, n=500):
        a, x = self.normal(m, n), self.normal(n)
        return Case(self.tiled((128,), m), dict(a=a, x=x, y=cp.zeros(m, cp.float32)), dict(y=a.astype(cp.float64) @ x))

    def linalg_vecmat(self, m=500, n=33792):
        a, x = self.normal(m, n), self.normal(m)
        return Case(self.tiled((128,), n), dict(a=a, x=x, y=cp.zeros(n, cp.float32)), dict(y=x.astype(cp.float64) @ a))

    def linalg_conv_1d(self, n=2**20, taps=33):
        x, f = self.normal(n + taps - 1), self.normal(taps)
        y = sum(x[at:at + n].astype(cp.float64) * f[at] for at in range(taps))
        return Case(self.tiled((128,), n), dict(x=x, f=f, y=cp.zeros(n, cp.float32)), dict(y=y))

    def windows(self, x, f, shape, step=1):
        """What each of the filter's places is multiplied with."""
        h, w = shape
        return [(x[..., i:i + step * (h - 1) + 1:step, j:j + step * (w - 1) + 1:step, :].astype(cp.float64), (i, j))
                for i in range(f[0]) for j in range(f[1])]

    def linalg_conv_2d(self, h=1500, w=1500):
        x, f = self.normal(h + 2, w + 2), self.normal(3, 3)
        y = sum(part[..., 0] * f[at] for part, at in self.windows(x[..., None], (3, 3), (h, w)))
        return Case(self.tiled((8, 32), h, w), dict(x=x, f=f, y=cp.zeros((h, w), cp.float32)), dict(y=y))

    def linalg_conv_nhwc(self):
        x, f = self.normal(1, 66, 66, 32), self.normal(3, 3, 32, 64)
        y = sum(part @ f[at].astype(cp.float64) for part, at in self.windows(x, (3, 3), (64, 64)))
        return Case(self.tiled((1, 4, 32), 1, 64, 64), dict(x=x, f=f, y=cp.zeros((1, 64, 64, 64), cp.float32)), dict(y=y))

    def linalg_depthwise(self, n=8, h=112, w=112, c=32):
        x, f = self.normal(n, h + 2, w + 2, c), self.normal(3, 3, c)
        y = sum(part * f[at] for part, at in self.windows(x, (3, 3), (h, w)))
        return Case(self.tiled((1, 8, 32), n, h, w), dict(x=x, f=f, y=cp.zeros((n, h, w, c), cp.float32)), dict(y=y))

    def linalg_max_pool(self, n=8, h=96, w=96, c=32):
        x = self.normal(n, 2 * h + 1, 2 * w + 1, c)
        y = cp.stack([part for part, _ in self.windows(x, (3, 3), (h, w), 2)]).max(0)
        return Case(self.tiled((1, 8, 32), n, h, w), dict(x=x, y=cp.full((n, h, w, c), -cp.inf, cp.float32)), dict(y=y))

    def linalg_row_sums(self, rows=33792, cols=500):
        x = self.normal(rows, cols)
        return Case(self.tiled((128,), rows), dict(x=x, y=cp.zeros(rows, cp.float32)), dict(y=x.astype(cp.float64).sum(1)))

    def linalg_column_sums(self, rows=500, cols=33792):
        x = self.normal(rows, cols)
        return Case(self.tiled((128,), cols), dict(x=x, y=cp.zeros(cols, cp.float32)), dict(y=x.astype(cp.float64).sum(0)))

    def linalg_column_max(self, rows=500, cols=33792):
        x = self.normal(rows, cols, dtype=cp.float16)
        return Case(self.tiled((128,), cols), dict(x=x, y=cp.full(cols, -cp.inf, cp.float16)), dict(y=x.astype(cp.float64).max(0)), 0)

    def linalg_transpose(self, rows=3000, cols=2001):
        x = self.normal(rows, cols)
        return Case(self.tiled((32, 8), cols, rows), dict(x=x, y=cp.zeros((cols, rows), cp.float32)), dict(y=x.T.astype(cp.float64)))

    def linalg_exp_rows(self, rows=4000, cols=2000):
        x, top = self.normal(rows, cols), self.normal(rows)
        y = cp.exp(x.astype(cp.float64) - top[:, None])
        return Case(self.tiled((1, 256), rows, cols), dict(x=x, top=top, y=cp.zeros_like(x)), dict(y=y))

    def linalg_normalise(self, rows=4000, cols=2000):
        x, mean, var, g, b = self.normal(rows, cols), self.normal(rows), self.uniform(rows), self.normal(cols), self.normal(cols)
        y = (x.astype(cp.float64) - mean[:, None]) / cp.sqrt(var[:, None] + 1e-5) * g + b
        return Case(self.tiled((8, 32), rows, cols), dict(x=x, mean=mean, var=var, g=g, b=b, y=cp.zeros_like(x)), dict(y=y))

    def linalg_gelu(self, n=2**24):
        x = self.normal(n)
        wide = x.astype(cp.float64)
        y = 0.5 * wide * (1 + cp.tanh(0.797884583 * (wide + 0.0447150 * wide**3)))
        return Case(self.tiled((256,), n), dict(x=x, y=cp.zeros_like(x)), dict(y=y))

    def linalg_bias_relu(self, rows=4000, cols=2000):
        x, b = self.normal(rows, cols, dtype=cp.float16), self.normal(cols, dtype=cp.float16)
        y = cp.maximum(x.astype(cp.float64) + b, 0)
        return Case(self.tiled((8, 32), rows, cols), dict(x=x, b=b, y=cp.zeros_like(x)), dict(y=y), 1e-3)

    def linalg_distances(self, n=1000, m=1010, k=128):
        x, z = self.normal(n, k), self.normal(m, k)
        wide, other = x.astype(cp.float64), z.astype(cp.float64)
        y = (wide**2).sum(1)[:, None] + (other**2).sum(1) - 2 * wide @ other.T
        return Case(self.tiled((8, 32), n, m), dict(x=x, z=z, y=cp.zeros((n, m), cp.float32)), dict(y=y))

    def row_scan(self, rows=400, cols=132 * 256):
        x = self.normal(rows, cols)
        return Case((ceil(cols, 128),), dict(x=x, y=cp.zeros_like(x)), dict(y=x.astype(cp.float64).cumsum(0)), 1e-4)

    def window_mean(self, h=1200, w=1200, r=3):
        x = self.normal(h, w)
        y = cp.zeros((h, w))
        wide = x.astype(cp.float64)
        for p in range(-r, r + 1):
            for q in range(-r, r + 1):
                y[r:h - r, r:w - r] += wide[r + p:h - r + p, r + q:w - r + q]
        return Case((ceil(w, 32), ceil(h, 8)), dict(x=x, y=cp.zeros_like(x), r=np.int64(r)), dict(y=y / (2 * r + 1) ** 2))

    def moments_columns(self, rows=400, cols=132 * 256):
        x = self.normal(rows, cols)
        w = x.astype(cp.float64)
        return Case((ceil(cols, 128),), dict(x=x, total=cp.zeros(cols, cp.float32), top=cp.zeros(cols, cp.float32), squares=cp.zeros(cols, cp.float32)),
                    dict(total=w.sum(0), top=w.max(0), squares=(w * w).sum(0)), 1e-4)

    def nearest_point(self, n=132 * 256, m=1000):
        x, z = self.normal(n, 3), self.normal(m, 3)
        return Case((ceil(n, 128),), dict(x=x, z=z, at=cp.zeros(n, cp.int32)), dict(at=None), 0)

    def rank_update(self, n=1500, k=32):
        a, u, v = self.normal(n, n + 1), self.normal(n, k), self.normal(k, n + 1)
        return Case((ceil(n + 1, 32), ceil(n, 8)), dict(a=a, u=u, v=v), dict(a=a - u.astype(cp.float64) @ v))

    def equal_bytes(self, n=2**26):
        x, y = (self.random.integers(0, 4, n).astype(cp.int8) for _ in range(2))
        return Case((528,), dict(x=x, y=y, out=cp.zeros(1, cp.int32)), dict(out=(x == y).sum().reshape(1)), 0)

    def log_sum_exp_columns(self, rows=300, cols=132 * 256):
        x = self.normal(rows, cols)
        return Case((ceil(cols, 128),), dict(x=x, y=cp.zeros(cols, cp.float32)), dict(y=cp.log(cp.exp(x.astype(cp.float64)).sum(0))))

    def wave_sum(self, n=132 * 256, k=64):
        x = self.normal(n, k)
        p = cp.arange(k)
        y = (cp.sin(x[:k].astype(cp.float64)) * cp.cos(p * 0.001)[:, None]).sum(0)
        return Case((ceil(n, 128),), dict(x=x, y=cp.zeros(n, cp.float32)), dict(y=y[cp.arange(n) % k]), 1e-4)

    def dot_rows_f64(self, rows=300, cols=132 * 256):
        x, z = self.normal(rows, cols).astype(cp.float64), self.normal(rows, cols).astype(cp.float64)
        return Case((ceil(cols, 128),), dict(x=x, z=z, y=cp.zeros(cols)), dict(y=(x * z).sum(0)))

    def power_mod(self, n=2**20):
        x, e = self.random.integers(1, 2**30, n).astype(cp.int32), self.random.integers(0, 2**20, n).astype(cp.int32)
        return Case((ceil(n, 256),), dict(x=x, e=e, y=cp.zeros_like(x), p=np.int32(1000003)), dict(y=None), 0)

    def four_columns(self, n=132 * 256, m=512):
        x, w = self.normal(n, m), self.normal(m)
        return Case((ceil(n, 128),), dict(x=x, w=w, y=cp.zeros(n, cp.float32)), dict(y=x.astype(cp.float64) @ w), 1e-4)

    def leapfrog(self, n=2**23):
        a = {name: self.normal(n) for name in ("px", "py", "pz", "vx", "vy", "vz", "fx", "fy", "fz")}
        want = {}
        for k in "xyz":
            v = a["v" + k].astype(cp.float64) + 0.01 * a["f" + k]
            want["v" + k], want["p" + k] = v, a["p" + k] + 0.01 * v
        return Case((1056,), dict(**a, dt=np.float32(0.01)), want)

    def median_of_nine(self, h=2500, w=2500):
        x = self.normal(h, w)
        y = cp.zeros((h, w))
        parts = [x[1 + p:h - 1 + p, 1 + q:w - 1 + q] for p in (-1, 0, 1) for q in (-1, 0, 1)]
        y[1:-1, 1:-1] = cp.median(cp.stack(parts), axis=0)
        return Case((ceil(w - 2, 32), ceil(h - 2, 8)), dict(x=x, y=cp.zeros_like(x)), dict(y=y))

    def causal_row(self, n=4000):
        x, v = self.normal(n, n), self.normal(n)
        return Case((ceil(n, 128),), dict(x=x, v=v, y=cp.zeros(n, cp.float32)), dict(y=v.astype(cp.float64) @ cp.triu(x.astype(cp.float64))), 1e-4)

    def complex_dot(self, rows=200, cols=132 * 256):
        a, b = self.normal(rows, cols, 2), self.normal(rows, cols, 2)
        one, other = (v[..., 0].astype(cp.complex128) + 1j * v[..., 1] for v in (a, b))
        y = (one * other).sum(0)
        return Case((ceil(cols, 256),), dict(a=a, b=b, y=cp.zeros((cols, 2), cp.float32)), dict(y=cp.stack([y.real, y.imag], 1)), 1e-4)

    def norm_backward(self, rows=300, cols=132 * 256):
        dy, x, mean, scale = self.normal(rows, cols), self.normal(rows, cols), self.normal(rows), self.uniform(rows)
        w = dy.astype(cp.float64)
        dg = (w * (x - mean[:, None].astype(cp.float64)) * scale[:, None]).sum(0)
        return Case((ceil(cols, 128),), dict(dy=dy, x=x, mean=mean, scale=scale, dg=cp.zeros(cols, cp.float32), db=cp.zeros(cols, cp.float32)),
                    dict(dg=dg, db=w.sum(0)), 1e-4)

    def kahan_columns(self, rows=400, cols=132 * 256):
        x = self.normal(rows, cols)
        return Case((ceil(cols, 128),), dict(x=x, y=cp.zeros(cols, cp.float32)), dict(y=x.astype(cp.float64).sum(0)))

    def table_lookup(self, n=2**23, size=4096):
        x, t = self.uniform(n) * 0.999, self.normal(size + 1)
        v = x * np.float32(size)
        k = v.astype(cp.int32)
        f = v - k
        y = t[k].astype(cp.float64) + f * (t[k + 1].astype(cp.float64) - t[k])
        return Case((1056,), dict(x=x, t=t, y=cp.zeros_like(x)), dict(y=y), 1e-4)

    def first_above(self, rows=400, cols=132 * 256):
        x = self.uniform(rows, cols)
        return Case((ceil(cols, 128),), dict(x=x, limit=np.float32(150), at=cp.zeros(cols, cp.int32)), dict(at=None), 0)

    def scale_rows_f16(self, rows=8192, cols=3000):
        x, s = self.normal(rows, cols, dtype=cp.float16), self.normal(rows, dtype=cp.float16)
        return Case((rows,), dict(x=x, s=s, y=cp.zeros_like(x)), dict(y=x.astype(cp.float64) * s[:, None]), 1e-3)

    def matmul_nt(self, m=700, n=700, k=500):
        a, b = self.normal(m, k), self.normal(n, k)
        return Case((ceil(n, 16), ceil(m, 16)), dict(a=a, b=b, c=cp.zeros((m, n), cp.float32)), dict(c=a.astype(cp.float64) @ b.T.astype(cp.float64)))

    def matmul_tn(self, m=700, n=700, k=500):
        a, b = self.normal(k, m), self.normal(k, n)
        return Case((ceil(n, 16), ceil(m, 16)), dict(a=a, b=b, c=cp.zeros((m, n), cp.float32)), dict(c=a.T.astype(cp.float64) @ b.astype(cp.float64)))

    def axpy_three(self, n=2**24):
        x, y, z = self.normal(n), self.normal(n), self.normal(n)
        return Case((1056,), dict(x=x, y=y, z=z, a=np.float32(0.5), b=np.float32(2)), dict(z=0.5 * x.astype(cp.float64) + 2.0 * y + z))

    def batch_norm(self, n=64, c=64, hw=3136):
        x, mean, var, g, b = self.normal(n, c, hw), self.normal(c), self.uniform(c), self.normal(c), self.normal(c)
        s = g.astype(cp.float64) / cp.sqrt(var.astype(cp.float64) + 1e-5)
        y = (x - mean[:, None].astype(cp.float64)) * s[:, None] + b[:, None]
        return Case((c, n), dict(x=x, mean=mean, var=var, g=g, b=b, y=cp.zeros_like(x), eps=np.float32(1e-5)), dict(y=y))

    def channel_sums(self, n=64, c=264, hw=784):
        x = self.normal(n, c, hw)
        return Case((c,), dict(x=x, y=cp.zeros(c, cp.float32)), dict(y=x.astype(cp.float64).sum((0, 2))), 1e-4)

    def upsample(self, h=1500, w=1501):
        x = self.normal(h, w)
        return Case((1056,), dict(x=x, y=cp.zeros((2 * h, 2 * w), cp.float32)), dict(y=x.repeat(2, 0).repeat(2, 1)))

    def outer_products(self, n=132 * 512, k=12):
        x = self.normal(n, k)
        w = x.astype(cp.float64)
        return Case((ceil(n, 128),), dict(x=x, y=cp.zeros((n, k, k), cp.float32)), dict(y=w[:, :, None] * w[:, None, :]))

    def soft_threshold(self, n=2**23):
        x = self.normal(n).astype(cp.float64)
        return Case((1056,), dict(x=x, y=cp.zeros_like(x), t=np.float64(0.5)), dict(y=cp.sign(x) * cp.maximum(cp.abs(x) - 0.5, 0)))

    # Of written/: machine learning.

    def kl_divergence(self, rows=8192, cols=1500):
        p = self.uniform(rows, cols)
        p = cp.where(p < 0.1, 0, p)
        p = (p / p.sum(1, keepdims=True)).astype(cp.float32)
        z = self.normal(rows, cols).astype(cp.float64)
        logq = (z - cp.log(cp.exp(z).sum(1, keepdims=True))).astype(cp.float32)
        wide = p.astype(cp.float64)
        out = cp.where(wide > 0, wide * (cp.log(cp.where(wide > 0, wide, 1)) - logq), 0).sum(1)
        return Case((rows,), dict(p=p, logq=logq, out=cp.zeros(rows, cp.float32)), dict(out=out), 2e-5)

    def add_rms_norm_bf16(self, rows=8192, cols=2048):
        x, residual, gamma = (to_bf16(self.normal(*shape)) for shape in ((rows, cols), (rows, cols), (cols,)))
        v = from_bf16(x) + from_bf16(residual)
        h = from_bf16(to_bf16(v.astype(cp.float32)))
        y = h / cp.sqrt((v * v).mean(1, keepdims=True) + 1e-5) * from_bf16(gamma)
        return Case((rows,), dict(x=x, residual=residual, gamma=gamma, h=cp.zeros_like(x), y=cp.zeros_like(x), eps=np.float32(1e-5)),
                    dict(h=h, y=y), 3e-3, dict(h=0), ("h", "y"))

    def gemv_int4(self, m=16384, n=8192):
        w = self.integers(0, 2**32, (m, n // 8), cp.uint32).view(cp.int32)
        scale, x = self.uniform(m, n // 128, dtype=cp.float16), self.normal(n, dtype=cp.float16)
        y = cp.zeros(m)
        for e in range(8):
            q = ((w.view(cp.uint32) >> np.uint32(4 * e)) & np.uint32(15)).astype(cp.float64) - 8
            part = (q * x[e::8].astype(cp.float64)).reshape(m, n // 128, 16).sum(2)
            y += (part * scale.astype(cp.float64)).sum(1)
        return Case((ceil(m, 4),), dict(w=w, scale=scale, x=x, y=cp.zeros(m, cp.float32)), dict(y=y))

    def softmax_backward_f16(self, rows=8192, cols=2048):
        e = cp.exp(self.normal(rows, cols).astype(cp.float64))
        y, dy = (e / e.sum(1, keepdims=True)).astype(cp.float16), self.normal(rows, cols, dtype=cp.float16)
        a, b = y.astype(cp.float64), dy.astype(cp.float64)
        return Case((rows,), dict(y=y, dy=dy, dx=cp.zeros_like(y)), dict(dx=a * (b - (a * b).sum(1, keepdims=True))), 1e-3)

    def moe_top2(self, tokens=132 * 1024, experts=64):
        x = self.normal(tokens, experts)
        rest, all = x.astype(cp.float64), cp.arange(tokens)
        first = rest.argmax(1)
        v1 = rest[all, first]
        rest[all, first] = -cp.inf
        second = rest.argmax(1)
        w = 1 / (1 + cp.exp(rest[all, second] - v1))
        return Case((ceil(tokens, 128),), dict(logits=x, expert=cp.zeros((tokens, 2), cp.int32), weight=cp.zeros((tokens, 2), cp.float32)),
                    dict(expert=cp.stack([first, second], 1), weight=cp.stack([w, 1 - w], 1)), own=dict(expert=0))

    def focal_loss(self, n=2**24):
        x, label = self.normal(n) * 3, self.integers(0, 2, n, cp.int8)
        v, yes = x.astype(cp.float64), label != 0
        p = 1 / (1 + cp.exp(-v))
        right = cp.where(yes, p, 1 - p)
        loss = cp.where(yes, 0.25, 0.75) * (1 - right)**2 * -cp.log(right)
        return Case((1056,), dict(x=x, label=label, loss=cp.zeros_like(x), total=cp.zeros(1, cp.float32), alpha=np.float32(0.25)),
                    dict(loss=loss, total=loss.sum().reshape(1)))

    def silu_backward_bf16(self, n=2**25):
        x, dy = to_bf16(self.normal(n)), to_bf16(self.normal(n))
        v = from_bf16(x)
        s = 1 / (1 + cp.exp(-v))
        return Case((1056,), dict(x=x, dy=dy, dx=cp.zeros_like(x)), dict(dx=from_bf16(dy) * s * (1 + v * (1 - s))), 3e-3, bf16=("dx",))

    def alibi_softmax(self, heads=16, n=1022):
        score = self.normal(heads, n, n)
        at = cp.arange(n)
        slope = 2.0 ** (-8.0 * cp.arange(1, heads + 1) / heads)
        v = score.astype(cp.float64) * 0.125 - slope[:, None, None] * (at[:, None] - at)
        v = cp.where(at[:, None] >= at, v, -cp.inf)
        e = cp.exp(v - v.max(2, keepdims=True))
        return Case((ceil(n, 4), heads), dict(score=score, y=cp.zeros_like(score), scale=np.float32(0.125)), dict(y=e / e.sum(2, keepdims=True)))

    def quantize_absmax(self, rows=8192, cols=2048):
        x = self.normal(rows, cols)
        wide = x.astype(cp.float64)
        most = cp.abs(wide).max(1)
        return Case((rows,), dict(x=x, q=cp.zeros((rows, cols), cp.int8), scale=cp.zeros(rows, cp.float32)),
                    dict(q=cp.rint(wide * (127 / most)[:, None]), scale=most / 127), own=dict(q=3e-4))

    # Grids, sparse matrices, and computing for each thread.

    def stencil_27(self, d=258, h=258, w=258):
        x, weight = self.normal(d, h, w), self.normal(3, 3, 3)
        y, wide = cp.zeros((d, h, w)), x.astype(cp.float64)
        for k in range(3):
            for i in range(3):
                for j in range(3):
                    y[1:-1, 1:-1, 1:-1] += wide[k:k + d - 2, i:i + h - 2, j:j + w - 2] * float(weight[k, i, j])
        return Case((ceil(w, 32), ceil(h, 4), ceil(d, 2)), dict(x=x, weight=weight, y=cp.zeros_like(x)), dict(y=y))

    def wave_step(self, h=4001, w=4001):
        u, before, velocity = self.normal(h, w), self.normal(h, w), self.uniform(h, w) + 1
        a, s = u.astype(cp.float64), slice(2, -2)
        near = a[1:-3, s] + a[3:-1, s] + a[s, 1:-3] + a[s, 3:-1]
        far = a[:-4, s] + a[4:, s] + a[s, :-4] + a[s, 4:]
        after = cp.zeros((h, w))
        after[s, s] = 2 * a[s, s] - before[s, s] + (velocity[s, s].astype(cp.float64) * 0.25)**2 * (-5 * a[s, s] + 4 / 3 * near - far / 12)
        return Case((ceil(w, 32), ceil(h, 8)), dict(u=u, before=before, velocity=velocity, after=cp.zeros_like(u), dt=np.float32(0.25)),
                    dict(after=after))

    def jacobi_tile(self, h=3001, w=3003):
        x, b = self.normal(h, w).astype(cp.float64), self.normal(h, w).astype(cp.float64)
        wide = cp.zeros((h + 2, w + 2))
        wide[1:-1, 1:-1] = x
        y = 0.25 * (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:] + b)
        return Case((ceil(w, 16), ceil(h, 16)), dict(x=x, b=b, y=cp.zeros_like(x)), dict(y=y), 1e-13)

    def coo_spmv(self, n=200000, nnz=2**23):
        row, column = cp.sort(self.integers(0, n, nnz, cp.int32)), self.integers(0, n, nnz, cp.int32)
        value, x = self.normal(nnz), self.normal(n)
        y = cp.bincount(row, weights=value.astype(cp.float64) * x.astype(cp.float64)[column], minlength=n)
        return Case((1056,), dict(row=row, column=column, value=value, x=x, y=cp.zeros(n, cp.float32)), dict(y=y))

    def small_lu(self, n=2**18 - 3):
        a, b = self.normal(n, 6, 6), self.normal(n, 6)
        for i in range(6):
            a[:, i, i] += 12
        x = cp.linalg.solve(a.astype(cp.float64), b.astype(cp.float64)[:, :, None])[:, :, 0]
        return Case((ceil(n, 64),), dict(a=a, b=b, x=cp.zeros_like(b)), dict(x=x))

    def fft_256(self, batch=16384):
        x = self.normal(batch, 256, 2)
        y = cp.fft.fft(x[..., 0].astype(cp.float64) + 1j * x[..., 1], axis=1)
        return Case((batch,), dict(x=x, y=cp.zeros_like(x)), dict(y=cp.stack([y.real, y.imag], 2)))

    def philox(self, n=2**23 - 9):
        low = np.uint64(0xFFFFFFFF)
        x = [cp.arange(n).astype(cp.uint64), *(cp.zeros(n, cp.uint64) for _ in range(3))]
        k = [12345, 67890]
        for _ in range(10):
            p, q = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
            x = [(q >> np.uint64(32)) ^ x[1] ^ np.uint64(k[0]), q & low, (p >> np.uint64(32)) ^ x[3] ^ np.uint64(k[1]), p & low]
            k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
        out = cp.stack([(part >> np.uint64(8)).astype(cp.float64) / 2**24 for part in x], 1)
        return Case((ceil(n, 256),), dict(out=cp.zeros((n, 4), cp.float32), seed=np.int32(12345), stream=np.int32(67890)), dict(out=out), 0)

    def runge_kutta(self, n=2**18 + 5, steps=64):
        x, v = self.normal(n).astype(cp.float64), self.normal(n).astype(cp.float64)
        mu = self.uniform(n).astype(cp.float64) * 3

        def slope(a, b):
            return b, mu * (1 - a * a) * b - a

        a, b, dt = x.copy(), v.copy(), 0.01
        for _ in range(steps):
            p1, q1 = slope(a, b)
            p2, q2 = slope(a + dt / 2 * p1, b + dt / 2 * q1)
            p3, q3 = slope(a + dt / 2 * p2, b + dt / 2 * q2)
            p4, q4 = slope(a + dt * p3, b + dt * q3)
            a, b = a + dt / 6 * (p1 + 2 * p2 + 2 * p3 + p4), b + dt / 6 * (q1 + 2 * q2 + 2 * q3 + q4)
        return Case((ceil(n, 128),), dict(x=x, v=v, mu=mu, dt=np.float64(dt), steps=np.int64(steps)), dict(x=a, v=b), 1e-11)

    def kepler(self, n=2**20):
        mean = self.uniform(n).astype(cp.float64) * 2 * math.pi
        eccentricity = self.uniform(n).astype(cp.float64) * 0.6
        a, steps, running = mean.copy(), cp.zeros(n, cp.int32), cp.ones(n, cp.bool_)
        for _ in range(50):
            d = (a - eccentricity * cp.sin(a) - mean) / (1 - eccentricity * cp.cos(a))
            a = cp.where(running, a - d, a)
            steps += running
            running = running & (cp.abs(d) > 1e-10)
        return Case((ceil(n, 128),), dict(mean=mean, eccentricity=eccentricity, anomaly=cp.zeros_like(mean), steps=cp.zeros(n, cp.int32)),
                    dict(anomaly=a, steps=steps), 1e-12, dict(steps=1e-2))

    # Images.

    def bilateral(self, h=1501, w=1503, r=3):
        x = self.uniform(h, w)
        wide, rows, cols = x.astype(cp.float64), cp.arange(h), cp.arange(w)
        top, total = cp.zeros((h, w)), cp.zeros((h, w))
        for p in range(-r, r + 1):
            for q in range(-r, r + 1):
                v = wide[cp.clip(rows + p, 0, h - 1)][:, cp.clip(cols + q, 0, w - 1)]
                weight = cp.exp(-((p * p + q * q) * 0.125 + (v - wide)**2 * 8))
                top, total = top + weight * v, total + weight
        return Case((ceil(w, 16), ceil(h, 16)), dict(x=x, y=cp.zeros_like(x), radius=np.int64(r), space=np.float32(0.125), range=np.float32(8)),
                    dict(y=top / total))

    def sobel_u8(self, h=4001, w=5003):
        x = self.integers(0, 100, (h, w), cp.uint8)
        v = [[x[i:i + h - 2, j:j + w - 2].astype(cp.float64) for j in range(3)] for i in range(3)]
        gx = v[0][2] + 2 * v[1][2] + v[2][2] - v[0][0] - 2 * v[1][0] - v[2][0]
        gy = v[2][0] + 2 * v[2][1] + v[2][2] - v[0][0] - 2 * v[0][1] - v[0][2]
        y = cp.zeros((h, w))
        y[1:-1, 1:-1] = cp.minimum(cp.floor(cp.sqrt(gx * gx + gy * gy)), 255)
        return Case((ceil(w, 32), ceil(h, 8)), dict(x=x, y=cp.zeros_like(x)), dict(y=y), 0)

    def rgb_to_yuv(self, n=2**24 + 5):
        rgb = self.integers(0, 256, (n, 3), cp.uint8)
        wide = rgb.astype(cp.float64)
        expected = {}
        for name, factors, more in (("luma", (66, 129, 25), 16), ("cb", (-38, -74, 112), 128), ("cr", (112, -94, -18), 128)):
            expected[name] = cp.floor((wide[:, 0] * factors[0] + wide[:, 1] * factors[1] + wide[:, 2] * factors[2] + 128) / 256) + more
        return Case((1056,), dict(rgb=rgb, **{name: cp.zeros(n, cp.uint8) for name in expected}), expected, 0)

    def bicubic(self, h=1050, w=1225):
        x = self.normal(h, w)
        oh, ow = h * 16 // 7, w * 16 // 7

        def taps(size, out):
            """A matrix with the weights of a direction."""
            at = (cp.arange(out) + 0.5) * 0.4375 - 0.5
            first = cp.floor(at).astype(cp.int64)
            matrix = cp.zeros((out, size))
            for m in range(-1, 3):
                d = cp.abs(m - (at - first))
                weight = cp.where(d < 1, 1.5 * d**3 - 2.5 * d**2 + 1, -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2)
                # Those of one m are different rows.
                matrix[cp.arange(out), cp.clip(first + m, 0, size - 1)] += cp.where(d < 2, weight, 0)
            return matrix

        y = taps(h, oh) @ x.astype(cp.float64) @ taps(w, ow).T
        return Case((ceil(ow, 32), ceil(oh, 8)), dict(x=x, y=cp.zeros((oh, ow), cp.float32), sy=np.float32(0.4375), sx=np.float32(0.4375)), dict(y=y))

    def hysteresis(self, h=6001, w=6002):
        pick = self.uniform(h, w)
        state = cp.where(pick < 0.05, 2, cp.where(pick < 0.3, 1, 0)).astype(cp.uint8)
        wide = cp.zeros((h + 2, w + 2), cp.bool_)
        wide[1:-1, 1:-1] = state == 2
        near = cp.zeros((h, w), cp.bool_)
        for i in range(3):
            for j in range(3):
                near |= wide[i:i + h, j:j + w]
        rise = near & (state == 1)
        return Case((ceil(w, 32), ceil(h, 8)), dict(state=state, next=cp.zeros_like(state), changed=cp.zeros(1, cp.int32)),
                    dict(next=cp.where(rise, 2, state), changed=rise.any().astype(cp.int32).reshape(1)), 0)

    # Data.

    def unpack_bits(self, n=2**24, width=11):
        packed = self.integers(0, 2**32, ceil(n * width, 32) + 1, cp.uint32)
        bits = cp.stack([((packed >> np.uint32(k)) & np.uint32(1)).astype(cp.uint8) for k in range(32)], 1).ravel()[:n * width].reshape(n, width)
        out = sum(bits[:, k].astype(cp.int64) << k for k in range(width))
        return Case((1056,), dict(packed=packed, out=cp.zeros(n, cp.uint32), width=np.int64(width)), dict(out=out), 0)

    def crc32_rows(self, rows=132 * 512, most=96):
        data, length = self.integers(0, 256, (rows, most), cp.uint8), self.integers(most // 3, most + 1, rows, cp.int32)
        table = np.arange(256, dtype=np.uint32)
        for _ in range(8):
            table = np.where(table & 1, np.uint32(0xEDB88320) ^ (table >> np.uint32(1)), table >> np.uint32(1)).astype(np.uint32)
        table = cp.asarray(table)
        crc = cp.full(rows, 0xFFFFFFFF, cp.uint32)
        for k in range(most):
            step = table[((crc ^ data[:, k]) & np.uint32(255)).astype(cp.int64)] ^ (crc >> np.uint32(8))
            crc = cp.where(k < length, step, crc)
        return Case((ceil(rows, 128),), dict(data=data, length=length, table=table, out=cp.zeros(rows, cp.uint32)),
                    dict(out=crc ^ np.uint32(0xFFFFFFFF)), 0)

    def scan_i64_rows(self, rows=1056, cols=8001):
        x = self.integers(-2**36, 2**37, (rows, cols), cp.int64)
        return Case((rows,), dict(x=x, y=cp.zeros_like(x)), dict(y=cp.cumsum(x, axis=1)), 0)

    def run_heads(self, n=2**25 - 100):
        x = self.integers(-2, 3, n, cp.int16)
        head = cp.ones(n, cp.int32)
        head[1:] = x[1:] != x[:-1]
        blocks = ceil(n, 256)
        padded = cp.zeros(blocks * 256, cp.int32)
        padded[:n] = head
        return Case((blocks,), dict(x=x, head=cp.zeros(n, cp.uint8), count=cp.zeros(blocks, cp.int32)),
                    dict(head=head, count=padded.reshape(blocks, 256).sum(1)), 0)

    def radix_counts(self, n=2**24 - 77, blocks=1056, shift=12):
        keys = self.integers(0, 2**32, n, cp.uint32)
        each = ceil(n, blocks)
        digit = ((keys >> np.uint32(shift)) & np.uint32(15)).astype(cp.int64)
        count = cp.bincount(digit * blocks + cp.arange(n) // each, minlength=16 * blocks).reshape(16, blocks)
        return Case((blocks,), dict(keys=keys, count=cp.zeros((16, blocks), cp.int32), each=np.int64(each), shift=np.int32(shift)),
                    dict(count=count), 0)

    def string_match(self, n=2**24, m=9):
        text, pattern = self.integers(97, 100, n, cp.uint8), self.integers(97, 100, m, cp.uint8)
        places = n - m + 1
        same, length = cp.ones(places, cp.bool_), cp.zeros(places, cp.int32)
        for k in range(m):
            same = same & (text[k:k + places] == pattern[k])
            length += same
        return Case((ceil(n, 256),), dict(text=text, pattern=pattern, length=cp.zeros(places, cp.uint8), total=cp.zeros(1, cp.int32)),
                    dict(length=length, total=(length == m).sum().reshape(1)), 0)

    def bloom_probe(self, n=2**23, words=2**18, hashes=6):
        keys = self.integers(0, 2**62, n, cp.uint64)
        bits = self.integers(0, 2**32, words, cp.uint32) | self.integers(0, 2**32, words, cp.uint32)
        k = keys ^ (keys >> np.uint64(33))
        k = k * np.uint64(0xFF51AFD7ED558CCD)
        k = k ^ (k >> np.uint64(33))
        k = k * np.uint64(0xC4CEB9FE1A85EC53)
        k = k ^ (k >> np.uint64(33))
        first, step = k & np.uint64(0xFFFFFFFF), (k >> np.uint64(32)) | np.uint64(1)
        found = cp.ones(n, cp.bool_)
        for j in range(hashes):
            at = ((first + step * np.uint64(j)) % np.uint64(words * 32)).astype(cp.int64)
            found = found & (((bits[at >> 5].astype(cp.int64) >> (at & 31)) & 1) == 1)
        return Case((1056,), dict(keys=keys, bits=bits, found=cp.zeros(n, cp.uint8), hashes=np.int32(hashes)), dict(found=found.astype(cp.int32)), 0)
