"""llama.cpp's rows, on the demo model's weights written out as f32."""
import os
import time

import llama_cpp
import numpy as np
from measure import summary

MODEL = os.environ["PEER_MODELS"] + "/SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL_F32 = os.environ["PEER_MODELS"] + "/SmolLM2-135M-Instruct.F32.gguf"
PROMPT, STEPS = 128, 64


def version():
    return f"llama-cpp-python {llama_cpp.__version__}"


def write_f32():
    """The same model with every tensor dequantised, once."""
    if os.path.exists(MODEL_F32):
        return
    import gguf
    reader = gguf.GGUFReader(MODEL)
    arch = reader.get_field("general.architecture").contents()
    writer = gguf.GGUFWriter(MODEL_F32 + ".part", arch)
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        writer.add_key_value(field.name, field.contents(), kind, field.types[-1] if len(field.types) > 1 else None)
    for tensor in reader.tensors:
        data = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, np.ascontiguousarray(data, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.rename(MODEL_F32 + ".part", MODEL_F32)


def open_model():
    write_f32()
    threads = int(os.environ["PEER_THREADS"])
    return llama_cpp.Llama(MODEL_F32, n_ctx=512, n_batch=512, n_threads=threads, n_threads_batch=threads,
                           verbose=False)


def prompt_ids(model):
    ids = model.tokenize(b"The quick brown fox jumps over the lazy dog and walks home. " * 20)
    return ids[:PROMPT]


def rates(count, run, repeats=5):
    times = [run() for _ in range(repeats + 1)][1:]
    values = summary([count / t for t in times], f"{count} tokens")
    return values | {"min": count / min(times)}


def prompt():
    model = open_model()
    ids = prompt_ids(model)

    def run():
        model.reset()
        begin = time.perf_counter()
        model.eval(ids)
        return time.perf_counter() - begin
    return rates(PROMPT, run)


def decode():
    """The greedy loop over llama.cpp's C functions, without the binding's sampler."""
    model = open_model()
    ids = prompt_ids(model)
    context, vocabulary = model._ctx.ctx, model.n_vocab()

    def best():
        logits = llama_cpp.llama_get_logits_ith(context, -1)
        return int(np.argmax(np.ctypeslib.as_array(logits, shape=(vocabulary,))))

    def run():
        model.reset()
        model.eval(ids)
        token = best()
        begin = time.perf_counter()
        for _ in range(STEPS):
            one = (llama_cpp.llama_token * 1)(token)
            if llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(one, 1)) != 0:
                raise RuntimeError("llama_decode failed")
            token = best()
        return time.perf_counter() - begin
    return rates(STEPS, run, repeats=5)


ROWS = {"llm_prompt": prompt, "llm_decode": decode}
