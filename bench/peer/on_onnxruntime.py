"""ONNX Runtime's rows: graphs of one operator, constants as initializers, NumPy arrays in and out."""
import os

import numpy as np
import onnxruntime
from measure import GELU_SHAPE, IMAGES, MATMULS, SQUARE, normal, over_shapes
from onnx import TensorProto, helper, numpy_helper

TYPES = {"float32": TensorProto.FLOAT, "uint8": TensorProto.UINT8, "int32": TensorProto.INT32,
         "int64": TensorProto.INT64}
THREADS = int(os.environ["PEER_THREADS"])


def version():
    return f"onnxruntime {onnxruntime.__version__}"


def node(op, x, constants=(), result="float32", **attributes):
    """A call of one operator on x, or on a list of arrays, and constants."""
    arguments = {f"x{i}": a for i, a in enumerate(x if isinstance(x, list) else [x])}
    names = [f"c{i}" for i in range(len(constants))]
    graph = helper.make_graph(
        [helper.make_node(op, [*arguments, *names], ["y"], **attributes)], op,
        [helper.make_tensor_value_info(name, TYPES[a.dtype.name], a.shape) for name, a in arguments.items()],
        [helper.make_tensor_value_info("y", TYPES[result], None)],
        [numpy_helper.from_array(np.asarray(c), name) for c, name in zip(constants, names)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, arguments)


def matmul(m, k, n):
    return node("MatMul", normal(m, k), [normal(k, n)])


def free_matmul(m, k, n):
    return node("MatMul", [normal(m, k), normal(k, n)])


def layer_norm():
    ones, zeros = np.ones(SQUARE[1], np.float32), np.zeros(SQUARE[1], np.float32)
    return node("LayerNormalization", normal(*SQUARE), [ones, zeros], axis=-1, epsilon=1e-5)


def bytes_product(n):
    # Unsigned bytes with a zero point of 128 are signed ones; as int8 the left operand takes twenty times as long.
    a, b = np.random.default_rng(0).integers(-128, 128, (2, n, n)).astype(np.int8)
    left = (a.astype(np.int16) + 128).astype(np.uint8)
    return node("MatMulInteger", left, [b, np.uint8(128)], result="int32")


ROWS = {
    "gelu": lambda: node("Gelu", normal(*GELU_SHAPE)),
    "softmax": lambda: node("Softmax", normal(*SQUARE), axis=-1),
    "layer_norm": layer_norm,
    "sum_axis0": lambda: node("ReduceSum", normal(*SQUARE), [np.array([0])], keepdims=0),
    "sum_axis1": lambda: node("ReduceSum", normal(*SQUARE), [np.array([1])], keepdims=0),
    "transpose": lambda: node("Transpose", normal(*SQUARE), perm=[1, 0]),
    "to_nhwc": lambda: node("Transpose", normal(*IMAGES), perm=[0, 2, 3, 1]),
    "argmax": lambda: node("ArgMax", normal(*SQUARE), result="int64", axis=-1, keepdims=0),
    "matmul_random": lambda: over_shapes(matmul),
    "matmul_s8_2048x2048x2048": lambda: bytes_product(2048),
} | {name: lambda s=shape, f=free_matmul if "_free_" in name else matmul: f(*s) for name, shape in MATMULS.items()}
