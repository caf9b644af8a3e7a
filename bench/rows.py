"""Every row of the benchmark table: what it is called, and what Tenon's number is held against.

A bar (other, factor) reads, for times: Tenon takes at most `factor` times what `other` takes; for
rates: Tenon reaches at least `factor` times what `other` reaches. `other` is a limit (copy_524,
copy_64), another row of Tenon's, the name of a peer, "best" for the best peer, or "" for an absolute
value in the row's unit.
"""
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    name: str
    title: str
    unit: str = "ms"
    bars: tuple = field(default_factory=tuple)

    @property
    def is_rate(self):
        return self.unit.endswith("/s")


def matmul(shape, title):
    return Row(f"matmul_{shape}", f"f32 matmul {title}", bars=(("best", 1 / 0.85),))


ROWS = [
    Row("gelu", "exact GELU (32,1000,4096)",
        bars=(("copy_524", 1.7), ("mlx", 1 / 25), ("jax", 1 / 2), ("torch", 1 / 2))),
    Row("gelu_fresh", "exact GELU into fresh memory", 
        bars=(("copy_524", 3.0), ("copy_524_fresh", 1.3))),
    Row("softmax", "softmax (4096,4096)", bars=(("copy_64", 1.4),)),
    Row("layer_norm", "layer_norm (4096,4096)", bars=(("copy_64", 1.4),)),
    Row("rms_norm", "rms_norm (4096,4096)", bars=(("copy_64", 1.4),)),
    Row("chain20", "20 elementwise ops (1024,1024)", bars=(("best", 1 / 2),)),
    matmul("2048x2048x2048", "2048³"),
    matmul("128x576x1536", "128×576×1536"),
    matmul("8x4096x4096", "8×4096×4096"),
    matmul("1x4096x4096", "1×4096×4096"),
    matmul("64x64x64", "64³"),
    Row("sum_axis0", "sum over axis 0 (4096,4096)"),
    Row("sum_axis1", "sum over axis 1 (4096,4096)"),
    Row("var_all", "variance of all (4096,4096)"),
    Row("transpose_add", "x.T + y (4096,4096)"),
    Row("cumsum", "cumsum (4096,4096)"),
    Row("sort", "sort of 2^20"),
    Row("attention", "attention (1,16,1024,64)"),
    Row("attention_causal", "causal attention (1,16,1024,64)"),
    Row("first_call", "first call of GELU, no cache", bars=(("", 30.0),)),
    Row("first_call_cached", "first call of GELU, cached on disk", bars=(("", 3.0),)),
    Row("call", "call on 16 elements", "us", bars=(("", 1.0),)),
    Row("artifact", "artifact: exec to first result", bars=(("", 5.0),)),
    Row("compile_decode", "compile of SmolLM2's decode program", bars=(("", 1500.0),)),
    Row("compile_decode_60", "the same with 60 layers for 30", bars=(("compile_decode", 1.1),)),
    Row("llm_prompt", "SmolLM2 f32, prompt of 128", "tokens/s", bars=(("llama.cpp", 0.75),)),
    Row("llm_decode", "SmolLM2 f32, decode of 64", "tokens/s", bars=(("llama.cpp", 0.95),)),
]

BY_NAME = {row.name: row for row in ROWS}
