"""mx.compile's rows on MLX's CPU back end."""
import mlx.core as mx
from measure import CHAIN_SHAPE, GELU_SHAPE, HEADS, MATMULS, SQUARE, first_call, normal, per_call

mx.set_default_device(mx.cpu)


def version():
    return f"mlx {mx.__version__}"


def gelu(x):
    return x * (1 + mx.erf(x * 0.7071067811865476)) * 0.5


def chain(x):
    for _ in range(5):
        x = mx.sin(mx.exp(mx.tanh(x))) * 0.5
    return x


def compiled(function, *shapes):
    def row():
        data = [mx.array(normal(*shape)) for shape in shapes]
        mx.eval(data)
        fast = mx.compile(function)
        return lambda: mx.eval(fast(*data))
    return row


def layer_norm(x):
    return mx.fast.layer_norm(x, None, None, 1e-5)


def attention(q, k, v):
    return mx.fast.scaled_dot_product_attention(q, k, v, scale=0.125)


ROWS = {
    "gelu": compiled(gelu, GELU_SHAPE),
    "softmax": compiled(lambda x: mx.softmax(x, -1), SQUARE),
    "layer_norm": compiled(layer_norm, SQUARE),
    "rms_norm": compiled(lambda x: mx.fast.rms_norm(x, None, 1e-5), SQUARE),
    "softmax_axis0": compiled(lambda x: mx.softmax(x, 0), SQUARE),
    "chain20": compiled(chain, CHAIN_SHAPE),
    "sum_axis0": compiled(lambda x: x.sum(0), SQUARE),
    "sum_axis1": compiled(lambda x: x.sum(1), SQUARE),
    "var_all": compiled(mx.var, SQUARE),
    "transpose_add": compiled(lambda x, y: x.T + y, SQUARE, SQUARE),
    "cumsum": compiled(lambda x: mx.cumsum(x, -1), SQUARE),
    "sort": compiled(mx.sort, (1 << 20,)),
    "attention": compiled(attention, HEADS, HEADS, HEADS),
    "first_call": lambda: first_call(compiled(gelu, (1024,))()),
    "call": lambda: per_call(compiled(gelu, (16,))()),
} | {name: compiled(mx.matmul, (m, k), (k, n)) for name, (m, k, n) in MATMULS.items()}
