"""Every row of the benchmark table: what it is called, and what Tenon's number is held against.

A bar (other, factor) reads, for times: Tenon takes at most `factor` times what `other` takes; for
rates: Tenon reaches at least `factor` times what `other` reaches. `other` is a limit (copy_524,
copy_64), another row of Tenon's, the name of a peer, "best" for the best peer, or "" for an absolute
value in the row's unit. A row that depends on where memory lies, as copies do, is measured by all in several turns.
"""
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    name: str
    title: str
    unit: str = "ms"
    bars: tuple = field(default_factory=tuple)
    turns: int = 1

    @property
    def is_rate(self):
        return self.unit.endswith("/s")


BEST = (("best", 1.0),)


def has_amx():
    with open("/proc/cpuinfo") as file:
        return "amx_tile" in file.read()


def matmul(shape, title, dtype="f32", with_amx=1.0, turns=1):
    """`with_amx`: the factor on a CPU that has matrix tiles, 1 elsewhere."""
    name = f"matmul_{shape}" if dtype == "f32" else f"matmul_{dtype}_{shape}"
    return Row(name, f"{dtype} matmul {title}", bars=(("best", 1 / (with_amx if has_amx() else 1.0)),), turns=turns)


def norm(name):
    return Row(name, f"{name} (4096,4096)", bars=(("copy_64", 1.0), ("max", 1.0)), turns=3)


def language(kind, prompt, decode, title=""):
    """The two rows of one file, held against llama.cpp on the same file."""
    return [Row(f"llm_{kind}_prompt", f"SmolLM2 {title or kind}, prompt of 128", "tokens/s", (("llama.cpp", prompt),)),
            Row(f"llm_{kind}_decode", f"SmolLM2 {title or kind}, decode of 64", "tokens/s", (("llama.cpp", decode),))]


def attention(suffix, kind, factor=1.0):
    """All keys, causal, and one row to a cache."""
    name, bars = "attention" + suffix, (("torch", 1 / factor),)
    return [Row(name, f"{kind}attention (1,16,1024,64)", bars=bars),
            Row(name + "_causal", f"{kind}causal attention (1,16,1024,64)", bars=bars),
            Row(name + "_decode", f"{kind}attention of one row to 4096 cached", bars=bars)]


ROWS = [
    Row("gelu", "exact GELU (32,1000,4096)", bars=(("copy_524", 1.3), ("max", 1 / 1.1)), turns=3),
    Row("gelu_fresh", "exact GELU into fresh memory", bars=(("copy_524_fresh", 1.0),), turns=3),
    norm("softmax"), norm("layer_norm"), norm("rms_norm"),
    Row("softmax_axis0", "softmax over axis 0 (4096,4096)", bars=(("copy_64", 2.2), ("best", 1.0)), turns=3),
    Row("layer_norm_axis1", "layer_norm over axis 1 (16,64,128,128)", bars=(("copy_64", 1.5), ("best", 1.0)), turns=3),
    Row("chain20", "20 elementwise ops (1024,1024)", bars=(("best", 1 / 2),)),
    matmul("2048x2048x2048", "2048³"),
    matmul("128x576x1536", "128×576×1536"),
    matmul("8x4096x4096", "8×4096×4096"),
    matmul("1x4096x4096", "1×4096×4096", turns=3),
    matmul("64x64x64", "64³"),
    matmul("100x4096x5", "100×4096×5"),
    matmul("16x100000x16", "16×100000×16"),
    matmul("free_15x1024x1024", "15×1024×1024, no weight", turns=3),
    matmul("batched_64x128x64x128", "64 of 128×64×128, no weight"),
    matmul("transposed_100x4096x5", "100×4096×5, transposed, no weight"),
    matmul("transposed_1x4096x4096", "1×4096×4096, transposed, no weight"),
    Row("matmul_free_bf16_4x1024x1024", "bf16 matmul 4×1024×1024, no weight", bars=BEST),
    Row("matmul_random", "f32 matmul, 20 shapes from 1 to 4096", "GFLOP/s", BEST),
    matmul("2048x2048x2048", "2048³", "bf16", with_amx=1.3, turns=3),
    matmul("1x4096x4096", "1×4096×4096", "bf16"),
    matmul("2048x2048x2048", "2048³", "s8", with_amx=1.2),
    Row("sum_axis0", "sum over axis 0 (4096,4096)", bars=BEST),
    Row("sum_axis1", "sum over axis 1 (4096,4096)", bars=BEST),
    Row("var_all", "variance of all (4096,4096)", bars=BEST),
    Row("transpose_add", "x.T + y (4096,4096)", bars=(("best", 1 / 2),)),
    Row("transpose", "x.T (4096,4096)", bars=(("copy_64", 1.0), ("best", 1.0)), turns=3),
    Row("to_nhwc", "(16,64,128,128) with channels last", bars=(("copy_64", 1.0), ("best", 1.0)), turns=3),
    Row("take_rows", "32768 random rows of (100000,512)", bars=(("copy_64", 1.0), ("best", 1.0)), turns=3),
    Row("scatter_rows", "32768 random rows written into (100000,512)", bars=(("copy_64", 1.0), ("best", 1.0)), turns=3),
    Row("histogram", "10^6 positions counted in 1000 bins", bars=BEST),
    Row("cumsum", "cumsum (4096,4096)", bars=(("best", 1 / 2),)),
    Row("argmax", "argmax of rows of (4096,4096)", bars=(("numpy", 1.0),)),
    Row("sort", "sort of 2^20", bars=(("numpy", 1.0),)),
    Row("argsort", "argsort of 2^20", bars=(("numpy", 1.0),)),
    Row("top_k", "the 100 largest of 2^20", bars=(("numpy", 1.0),)),
    Row("sort_rows", "sort of rows of (4096,64)", bars=(("numpy", 1.0),)),
    *attention("", "", 1.2), *attention("_bf16", "bf16 "), *attention("_f16", "f16 "),
    Row("attention_bf16_masked", "bf16 attention (1,16,1024,64) with a mask", bars=(("torch", 1.0),)),
    Row("first_call", "first call of GELU, no cache", bars=(("", 15.0),)),
    Row("first_call_cached", "first call of GELU, cached on disk", bars=(("", 1.0),)),
    Row("call", "call on 16 elements", "us", bars=(("", 0.5),)),
    Row("artifact", "artifact: exec to first result", bars=(("", 3.0),)),
    Row("compile_decode", "compile of SmolLM2's decode program", bars=(("", 1500.0),)),
    Row("compile_decode_60", "the same with 60 layers for 30", bars=(("compile_decode", 1.1),)),
    *language("F32", 1.0, 1.0, "f32"),
    *language("Q4_1", 2.5, 1.5),
    *language("Q4_1_exact", 1.0, 1.0, "Q4_1, exact"),
    *(row for kind in ("Q4_0", "Q4_K", "Q6_K", "Q8_0") for row in language(kind, 1.5, 1.2)),
    Row("llm_start", "SmolLM2 Q4_1, file to first token", bars=(("llama.cpp", 0.5),)),
    Row("llm_start_kept", "the same, packed weights kept on disk", bars=(("llama.cpp", 0.5),)),
]

BY_NAME = {row.name: row for row in ROWS}
