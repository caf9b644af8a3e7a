"""llama.cpp's rows, on the files that `./dev bench` makes of the demo model."""
import os
import time

import llama_cpp
import numpy as np
from measure import summary

KINDS = ("F32", "Q4_1", "Q4_0", "Q4_K", "Q6_K", "Q8_0")
PROMPT, STEPS, FIRST = 128, 64, 16


def version():
    return f"llama-cpp-python {llama_cpp.__version__}"


def open_model(kind):
    threads = int(os.environ["PEER_THREADS"])
    path = f"{os.environ['PEER_MODELS']}/SmolLM2-135M-Instruct.{kind}.gguf"
    return llama_cpp.Llama(path, n_ctx=512, n_batch=512, n_threads=threads, n_threads_batch=threads,
                           verbose=False)


def prompt_ids(model):
    ids = model.tokenize(b"The quick brown fox jumps over the lazy dog and walks home. " * 20)
    return ids[:PROMPT]


def rates(count, run, repeats=5):
    times = [run() for _ in range(repeats + 1)][1:]
    values = summary([count / t for t in times], f"{count} tokens")
    return values | {"min": count / min(times)}


def prompt(kind):
    model = open_model(kind)
    ids = prompt_ids(model)

    def run():
        model.reset()
        begin = time.perf_counter()
        model.eval(ids)
        return time.perf_counter() - begin
    return rates(PROMPT, run)


def decode(kind):
    """The greedy loop over llama.cpp's C functions, without the binding's sampler."""
    model = open_model(kind)
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


def start():
    """From the file to the first token: once a process."""
    begin = time.perf_counter()
    model = open_model("Q4_1")
    model.eval(list(range(1000, 1000 + 37 * FIRST, 37)))
    return {"min": (value := (time.perf_counter() - begin) * 1e3), "median": value}


ROWS = {f"llm_{kind}_{name}": (lambda kind=kind, row=row: row(kind))
        for kind in KINDS for name, row in (("prompt", prompt), ("decode", decode))}
ROWS |= {f"llm_Q4_1_exact_{name}": ROWS[f"llm_Q4_1_{name}"] for name in ("prompt", "decode")}
ROWS |= {"llm_start": start, "llm_start_kept": start}
