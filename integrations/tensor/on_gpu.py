"""The tensor compiler on an NVIDIA GPU, beside torch: PROGRAM is gpulower-tensor.

    python3 on_gpu.py PROGRAM [MODEL ...]

Results are compared with numpy in float64. Times are of the whole graph, in milliseconds: ours, torch eager, torch compiled.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

MODELS = ("mlp:1024,1024,4096,1024", "attention:1024,1024")
SHAPES = {
    "mlp": lambda m, i, h, o: {"x": (m, i), "w1": (i, h), "b1": (h,), "w2": (h, o), "b2": (o,)},
    "attention": lambda m, d: {"x": (m, d), "scale": (d,), "shift": (d,), **{name: (d, d) for name in ("wq", "wk", "wv", "wo")}},
}


def inputs_of(model: str) -> dict[str, Any]:
    name, sizes = model.split(":")
    shapes = SHAPES[name](*map(int, sizes.split(",")))
    rng = np.random.default_rng(1)
    made = {}
    for key, shape in shapes.items():
        scale = 1 / math.sqrt(shape[0]) if key.startswith("w") else 1.0
        made[key] = (rng.standard_normal(shape) * scale).astype(np.float16)
    return made


def reference(model: str, inputs: dict[str, Any]) -> Any:
    v = {name: array.astype(np.float64) for name, array in inputs.items()}
    if model.startswith("mlp"):
        h = v["x"] @ v["w1"] + v["b1"]
        h = h / 2 * (1 + np.vectorize(math.erf)(h / math.sqrt(2)))
        return h @ v["w2"] + v["b2"]
    x = v["x"]
    n = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * v["scale"] + v["shift"]
    q, k, values = n @ v["wq"], n @ v["wk"], n @ v["wv"]
    s = q @ k.T / math.sqrt(x.shape[1])
    e = np.exp(s - s.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)) @ values @ v["wo"] + x


def with_torch(model: str, inputs: dict[str, Any]) -> dict[str, float]:
    import torch
    import torch.nn.functional as F

    v = {name: torch.from_numpy(array).cuda() for name, array in inputs.items()}

    def mlp(x, w1, b1, w2, b2):
        return torch.addmm(b2, F.gelu(torch.addmm(b1, x, w1)), w2)

    def attention(x, scale, shift, wq, wk, wv, wo):
        n = F.layer_norm(x, x.shape[1:], scale, shift)
        q, k, values = n @ wq, n @ wk, n @ wv
        return torch.softmax(q @ k.T / math.sqrt(x.shape[1]), 1) @ values @ wo + x

    function = mlp if model.startswith("mlp") else attention
    times = {}
    for name, call in (("torch eager", function), ("torch compiled", torch.compile(function))):
        for _ in range(5):
            call(**v)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(50):
            call(**v)
        end.record()
        torch.cuda.synchronize()
        times[name] = start.elapsed_time(end) / 50
    return times


def main() -> int:
    right = True
    for model in sys.argv[2:] or MODELS:
        print(f"== {model}", flush=True)
        inputs = inputs_of(model)
        with tempfile.TemporaryDirectory() as name:
            for key, array in inputs.items():
                array.tofile(Path(name) / f"{key}.bin")
            run = subprocess.run([sys.argv[1], "run", model, name], check=False, capture_output=True, text=True)
            print(run.stdout + run.stderr, flush=True)
            if run.returncode != 0:
                right = False
                continue
            expected = reference(model, inputs)
            result = np.fromfile(Path(name) / "result.bin", np.float16).reshape(expected.shape)
        error = np.abs(result - expected).max() / np.abs(expected).max()
        print(f"relative error {error:.1e}: {'right' if error < 4e-3 else 'WRONG'}")
        right &= bool(error < 4e-3)
        for key, time in with_torch(model, inputs).items():
            print(f"{key}: {time:.4f} ms", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
