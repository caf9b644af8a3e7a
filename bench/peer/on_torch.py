"""torch.compile's rows; products and attention are torch's own kernels."""
import os

import torch
from measure import (
    BATCHED, CACHED, CHAIN_SHAPE, GELU_SHAPE, HEADS, IMAGES, LONG, MATMULS, ROW, SQUARE, TRANSPOSED, first_call, normal,
    over_shapes, per_call, random_bins, random_rows)

torch.set_num_threads(int(os.environ["PEER_THREADS"]))
torch.set_grad_enabled(False)


def version():
    return f"torch {torch.__version__}"


def gelu(x):
    return x * (1 + torch.erf(x * 0.7071067811865476)) * 0.5


def chain(x):
    for _ in range(5):
        x = torch.sin(torch.exp(torch.tanh(x))) * 0.5
    return x


def compiled(function, *shapes):
    def row():
        data = [torch.from_numpy(normal(*shape)) for shape in shapes]
        fast = torch.compile(function)
        return lambda: fast(*data)
    return row


def eager(function, *shapes):
    def row():
        data = [torch.from_numpy(normal(*shape)) for shape in shapes]
        return lambda: function(*data)
    return row


def halves(*shapes):
    def row():
        a, b = [torch.from_numpy(normal(*shape)).bfloat16() for shape in shapes]
        return lambda: a @ b
    return row


def bytes_product(size):
    a, b = [(torch.from_numpy(normal(size, size)) * 40).to(torch.int8) for _ in range(2)]
    return lambda: torch._int_mm(a, b)


def take_rows():
    x, rows = torch.from_numpy(normal(*LONG)), torch.from_numpy(random_rows())
    return lambda: x[rows]


def scatter_rows():
    x, rows = torch.from_numpy(normal(*LONG)), torch.from_numpy(random_rows())
    updates = torch.from_numpy(normal(32768, LONG[1]))
    return lambda: x.index_copy_(0, rows, updates)


def channel_norm(x):
    x = x - x.mean(1, keepdim=True)
    return x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5)


def histogram():
    rows = torch.from_numpy(random_bins())
    return lambda: torch.bincount(rows, minlength=1000)


def attention(dtype, causal, queries=HEADS, keys=HEADS):
    def row():
        q, k, v = [torch.from_numpy(normal(*shape)).to(dtype) for shape in (queries, keys, keys)]
        return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return row


def masked_attention(dtype):
    q, k, v = [torch.from_numpy(normal(*HEADS)).to(dtype) for _ in range(3)]
    mask = torch.from_numpy(normal(HEADS[2], HEADS[2])).to(dtype)
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def attentions():
    rows = {"attention_bf16_masked": lambda: masked_attention(torch.bfloat16)}
    for suffix, dtype in (("", torch.float32), ("_bf16", torch.bfloat16), ("_f16", torch.float16)):
        rows[f"attention{suffix}"] = attention(dtype, causal=False)
        rows[f"attention{suffix}_causal"] = attention(dtype, causal=True)
        rows[f"attention{suffix}_decode"] = attention(dtype, False, ROW, CACHED)
    return rows


ROWS = {
    "gelu": compiled(gelu, GELU_SHAPE),
    "softmax": compiled(lambda x: torch.softmax(x, -1), SQUARE),
    "layer_norm": compiled(lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:], eps=1e-5), SQUARE),
    "rms_norm": compiled(lambda x: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5), SQUARE),
    "softmax_axis0": compiled(lambda x: torch.softmax(x, 0), SQUARE),
    "layer_norm_axis1": compiled(channel_norm, IMAGES),
    "chain20": compiled(chain, CHAIN_SHAPE),
    "sum_axis0": compiled(lambda x: x.sum(0), SQUARE),
    "sum_axis1": compiled(lambda x: x.sum(1), SQUARE),
    "var_all": compiled(lambda x: x.var(correction=0), SQUARE),
    "transpose_add": compiled(lambda x, y: x.T + y, SQUARE, SQUARE),
    "transpose": compiled(lambda x: x.T.contiguous(), SQUARE),
    "to_nhwc": compiled(lambda x: x.permute(0, 2, 3, 1).contiguous(), IMAGES),
    "take_rows": take_rows,
    "scatter_rows": scatter_rows,
    "histogram": histogram,
    "argmax": compiled(lambda x: x.argmax(-1), SQUARE),
    "cumsum": compiled(lambda x: x.cumsum(-1), SQUARE),
    "sort": eager(lambda x: x.sort().values, (1 << 20,)),
    "argsort": eager(lambda x: x.argsort(), (1 << 20,)),
    "top_k": eager(lambda x: x.topk(100).indices, (1 << 20,)),
    "sort_rows": eager(lambda x: x.sort().values, (4096, 64)),
    "first_call": lambda: first_call(compiled(gelu, (1024,))()),
    "first_call_cached": lambda: first_call(compiled(gelu, (1024,))()),
    "call": lambda: per_call(compiled(gelu, (16,))()),
    "matmul_random": lambda: over_shapes(lambda m, k, n: eager(torch.matmul, (m, k), (k, n))()),
    "matmul_bf16_2048x2048x2048": halves((2048, 2048), (2048, 2048)),
    "matmul_free_bf16_4x1024x1024": halves((4, 1024), (1024, 1024)),
    "matmul_bf16_1x4096x4096": halves((1, 4096), (4096, 4096)),
    "matmul_s8_2048x2048x2048": lambda: bytes_product(2048),
} | attentions() | {name: eager(torch.matmul, (m, k), (k, n)) for name, (m, k, n) in MATMULS.items()
} | {name: eager(torch.matmul, *shapes) for name, shapes in BATCHED.items()
} | {name: eager(lambda a, b: a @ b.T, *shapes) for name, shapes in TRANSPOSED.items()}
