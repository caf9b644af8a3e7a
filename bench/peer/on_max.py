"""MAX's rows, by max.experimental.compilation."""
from importlib.metadata import version as package_version

from max.driver import CPU
from max.dtype import DType
from max.experimental import compilation
from max.experimental import functional as F
from max.experimental.sharding import TensorLayout
from max.experimental.tensor import Tensor
from measure import CHAIN_SHAPE, GELU_SHAPE, MATMULS, SQUARE, first_call, normal, per_call


def version():
    return f"max {package_version('max')}"


def gelu(x):
    return x * (1.0 + F.erf(x * 0.7071067811865476)) * 0.5


def chain(x):
    for _ in range(5):
        x = F.sin(F.exp(F.tanh(x))) * 0.5
    return x


def rms_norm(x):
    return x * F.rsqrt(F.mean(x * x, axis=-1) + 1e-5)


def layer_norm(x):
    centred = x - F.mean(x, axis=-1)
    return rms_norm(centred)


def compiled(function, *shapes):
    def row():
        data = [Tensor.from_dlpack(normal(*shape)) for shape in shapes]
        layouts = [TensorLayout(DType.float32, list(shape), CPU()) for shape in shapes]
        fast = compilation.compile(function)(*layouts)
        return lambda: fast(*data)
    return row


def first():
    """Compiling and the first call, which MAX does in two steps."""
    return first_call(lambda: compiled(gelu, (1024,))()())


ROWS = {
    "gelu": compiled(gelu, GELU_SHAPE),
    "softmax": compiled(lambda x: F.softmax(x, axis=-1), SQUARE),
    "layer_norm": compiled(layer_norm, SQUARE),
    "rms_norm": compiled(rms_norm, SQUARE),
    "chain20": compiled(chain, CHAIN_SHAPE),
    "transpose_add": compiled(lambda x, y: F.transpose(x, 0, 1) + y, SQUARE, SQUARE),
    "first_call": first,
    "first_call_cached": first,
    "call": lambda: per_call(compiled(gelu, (16,))()),
} | {name: compiled(F.matmul, (m, k), (k, n)) for name, (m, k, n) in MATMULS.items()}
