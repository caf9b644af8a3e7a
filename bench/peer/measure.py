"""Runs one row of one peer and prints its measurement as one JSON object: measure.py PEER ROW

Each peer is a module on_PEER.py beside this file with `version()` and ROWS, which maps a row's name
to a function without arguments. The function prepares its data and returns either a callable, whose
calls are then timed, or a dict with "min" and "median" when it has timed itself.
"""
import importlib
import json
import math
import os
import statistics
import sys
import time

import numpy as np

GELU_SHAPE = (32, 1000, 4096)
SQUARE = (4096, 4096)
CHAIN_SHAPE = (1024, 1024)
HEADS = (1, 16, 1024, 64)
IMAGES = (16, 64, 128, 128)
LONG = (100000, 512)
ROW, CACHED = (1, 16, 1, 64), (1, 16, 4096, 64)
MATMULS = {f"matmul_{m}x{k}x{n}": (m, k, n) for m, k, n in [
    (2048, 2048, 2048), (128, 576, 1536), (8, 4096, 4096), (1, 4096, 4096), (64, 64, 64), (100, 4096, 5),
    (16, 100000, 16)]}
MATMULS["matmul_free_15x1024x1024"] = (15, 1024, 1024)
BATCHED = {"matmul_batched_64x128x64x128": ((64, 128, 64), (64, 64, 128))}
# Shapes of a and of b, which is transposed.
TRANSPOSED = {
    "matmul_transposed_100x4096x5": ((100, 4096), (5, 4096)),
    "matmul_transposed_1x4096x4096": ((1, 4096), (4096, 4096)),
}


def random_shapes():
    """The shapes (m, k, n) of the row matmul_random."""
    with open(os.path.join(os.path.dirname(__file__), "..", "random_shapes.txt")) as file:
        return [tuple(map(int, line.split())) for line in file]


def over_shapes(product):
    """GFLOP/s of product(m, k, n)(), the geometric mean over random_shapes()."""
    logs = {"min": [], "median": []}
    for m, k, n in random_shapes():
        times = timed(product(m, k, n))
        for key, values in logs.items():
            values.append(math.log(2e-6 * m * k * n / times[key]))
    notes = " ".join(f"{math.exp(value):.0f}" for value in logs["min"])
    return {key: math.exp(statistics.mean(values)) for key, values in logs.items()} | {"notes": notes}


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def random_rows():
    return np.random.default_rng(1).integers(0, LONG[0], 32768)


def random_bins():
    return np.random.default_rng(1).integers(0, 1000, 1000000)


def summary(times, notes=""):
    return {"min": min(times), "median": statistics.median(times), "repeats": len(times), "notes": notes}


def timed(call, scale=1e3, seconds=2.0, least=5):
    """Warm-up, then `call` for about `seconds`; short calls are timed in batches."""
    for _ in range(3):
        call()
    begin = time.perf_counter()
    call()
    batch = max(1, int(1e-3 / max(time.perf_counter() - begin, 1e-9)))
    times = []
    end = time.perf_counter() + seconds
    while len(times) < least or (time.perf_counter() < end and len(times) < 1000):
        begin = time.perf_counter()
        for _ in range(batch):
            call()
        times.append((time.perf_counter() - begin) / batch * scale)
    return summary(times)


def first_call(call):
    """Milliseconds of one first call, in this process."""
    begin = time.perf_counter()
    call()
    return {"min": (value := (time.perf_counter() - begin) * 1e3), "median": value}


def per_call(call, count=1000, batches=15):
    """Microseconds a call, as the mean of batches."""
    for _ in range(count):
        call()
    times = []
    for _ in range(batches):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        times.append((time.perf_counter() - begin) / count * 1e6)
    return summary(times)


def main():
    peer = importlib.import_module("on_" + sys.argv[1].replace(".", "_"))
    if len(sys.argv) == 2:
        print(json.dumps({"version": peer.version(), "rows": sorted(peer.ROWS)}))
        return
    result = peer.ROWS[sys.argv[2]]()
    print(json.dumps(result if isinstance(result, dict) else timed(result)))


if __name__ == "__main__":
    main()
