"""NumPy's rows, as a user would write them: no out arguments."""
import numpy as np
from measure import (
    BATCHED, CHAIN_SHAPE, HEADS, IMAGES, LONG, MATMULS, SQUARE, TRANSPOSED, normal, over_shapes, random_bins, random_rows)


def version():
    from threadpoolctl import threadpool_info
    blas = [f"{p['internal_api']} {p['version']} {p.get('architecture')}" for p in threadpool_info()]
    return f"numpy {np.__version__} ({', '.join(blas)})"


def softmax(axis=-1):
    x = normal(*SQUARE)

    def call():
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)
    return call


def layer_norm(shape=SQUARE, axis=-1):
    x = normal(*shape)
    return lambda: (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + np.float32(1e-5))


def rms_norm():
    x = normal(*SQUARE)
    return lambda: x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-5))


def chain20():
    start, half = normal(*CHAIN_SHAPE), np.float32(0.5)

    def call():
        x = start
        for _ in range(5):
            x = np.sin(np.exp(np.tanh(x))) * half
        return x
    return call


def matmul(m, k, n):
    a, b = normal(m, k), normal(k, n)
    return lambda: a @ b


def transposed(left, right):
    a, b = normal(*left), normal(*right)
    return lambda: a @ b.T


def batched(left, right):
    a, b = normal(*left), normal(*right)
    return lambda: a @ b


def attention():
    q, k, v = normal(*HEADS), normal(*HEADS), normal(*HEADS)

    def call():
        s = q @ k.swapaxes(-1, -2) * np.float32(0.125)
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True) @ v
    return call


def on_square(function):
    def row():
        x = normal(*SQUARE)
        return lambda: function(x)
    return row


def to_nhwc():
    x = normal(*IMAGES)
    return lambda: np.ascontiguousarray(x.transpose(0, 2, 3, 1))


def take_rows():
    x, rows = normal(*LONG), random_rows()
    return lambda: x[rows]


def scatter_rows():
    x, rows, updates = normal(*LONG), random_rows(), normal(32768, LONG[1])
    return lambda: x.__setitem__(rows, updates)


def histogram():
    rows = random_bins()
    return lambda: np.bincount(rows, minlength=1000)


def top_k():
    x = normal(1 << 20)

    def run():
        best = np.argpartition(x, -100)[-100:]
        return best[np.argsort(-x[best])]

    return run


ROWS = {
    "softmax": softmax,
    "layer_norm": layer_norm,
    "softmax_axis0": lambda: softmax(0),
    "layer_norm_axis1": lambda: layer_norm(IMAGES, 1),
    "rms_norm": rms_norm,
    "chain20": chain20,
    "attention": attention,
    "sum_axis0": on_square(lambda x: x.sum(0)),
    "sum_axis1": on_square(lambda x: x.sum(1)),
    "var_all": on_square(lambda x: x.var()),
    "transpose_add": on_square(lambda x: x.T + x),
    "transpose": on_square(lambda x: np.ascontiguousarray(x.T)),
    "to_nhwc": to_nhwc,
    "take_rows": take_rows,
    "scatter_rows": scatter_rows,
    "histogram": histogram,
    "argmax": on_square(lambda x: x.argmax(-1)),
    "cumsum": on_square(lambda x: x.cumsum(-1)),
    "sort": lambda: (lambda x: lambda: np.sort(x))(normal(1 << 20)),
    "argsort": lambda: (lambda x: lambda: np.argsort(x))(normal(1 << 20)),
    "top_k": top_k,
    "sort_rows": lambda: (lambda x: lambda: np.sort(x, -1))(normal(4096, 64)),
    "matmul_random": lambda: over_shapes(matmul),
} | {name: lambda s=shape: matmul(*s) for name, shape in MATMULS.items()
} | {name: lambda s=shapes: batched(*s) for name, shapes in BATCHED.items()
} | {name: lambda s=shapes: transposed(*s) for name, shapes in TRANSPOSED.items()}
