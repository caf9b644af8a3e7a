"""jax.jit's rows."""
import jax
import jax.numpy as jnp
from measure import (
    CHAIN_SHAPE, GELU_SHAPE, HEADS, IMAGES, MATMULS, SQUARE, first_call, normal, over_shapes, per_call, random_bins)


def version():
    return f"jax {jax.__version__}"


def gelu(x):
    return x * (1 + jax.lax.erf(x * 0.7071067811865476)) * 0.5


def normalise(x, centre, axis=-1):
    x = x - x.mean(axis, keepdims=True) if centre else x
    return x * jax.lax.rsqrt((x * x).mean(axis, keepdims=True) + 1e-5)


def chain(x):
    for _ in range(5):
        x = jnp.sin(jnp.exp(jnp.tanh(x))) * 0.5
    return x


def attention(q, k, v, causal=False):
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125
    if causal:
        s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -jnp.inf)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s, -1), v)


def jitted(function, *shapes):
    def row():
        data = [jnp.asarray(normal(*shape)) for shape in shapes]
        compiled = jax.jit(function)
        return lambda: compiled(*data).block_until_ready()
    return row


def histogram():
    bins = jnp.asarray(random_bins())
    count = jax.jit(lambda at: jnp.zeros(1000, int).at[at].add(1))
    return lambda: count(bins).block_until_ready()


def matmul(m, k, n):
    b = jnp.asarray(normal(k, n))  # a constant of the program, so that XLA may lay it out
    return jitted(lambda a: a @ b, (m, k))()


ROWS = {
    "gelu": jitted(gelu, GELU_SHAPE),
    "softmax": jitted(lambda x: jax.nn.softmax(x, -1), SQUARE),
    "layer_norm": jitted(lambda x: normalise(x, True), SQUARE),
    "rms_norm": jitted(lambda x: normalise(x, False), SQUARE),
    "softmax_axis0": jitted(lambda x: jax.nn.softmax(x, 0), SQUARE),
    "layer_norm_axis1": jitted(lambda x: normalise(x, True, 1), IMAGES),
    "chain20": jitted(chain, CHAIN_SHAPE),
    "sum_axis0": jitted(lambda x: x.sum(0), SQUARE),
    "sum_axis1": jitted(lambda x: x.sum(1), SQUARE),
    "var_all": jitted(jnp.var, SQUARE),
    "transpose_add": jitted(lambda x, y: x.T + y, SQUARE, SQUARE),
    "histogram": histogram,
    "cumsum": jitted(lambda x: jnp.cumsum(x, -1), SQUARE),
    "sort": jitted(jnp.sort, (1 << 20,)),
    "argsort": jitted(jnp.argsort, (1 << 20,)),
    "top_k": jitted(lambda x: jax.lax.top_k(x, 100)[1], (1 << 20,)),
    "sort_rows": jitted(jnp.sort, (4096, 64)),
    "attention": jitted(attention, HEADS, HEADS, HEADS),
    "attention_causal": jitted(lambda q, k, v: attention(q, k, v, True), HEADS, HEADS, HEADS),
    "first_call": lambda: first_call(jitted(gelu, (1024,))()),
    "call": lambda: per_call(jitted(gelu, (16,))()),
    "matmul_random": lambda: over_shapes(matmul),
} | {name: lambda s=shape: matmul(*s) for name, shape in MATMULS.items()}
