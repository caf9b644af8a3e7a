"""The peers: installs them, runs one row of one of them.

They live in build/peers/venv, installed when missing. Every row runs in a process of its own, with as many threads as
the machine has CPUs.
"""
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile

HOME = os.path.abspath("build/peers")
VENV = os.path.join(HOME, "venv")
PYTHON = os.path.join(VENV, "bin", "python")
CACHE = os.path.join(HOME, "cache")
HERE = os.path.dirname(os.path.abspath(__file__))

# Peer → what pip installs for it, and the free disk (GB) that takes. Cheapest first.
PEERS = {
    "numpy": (["numpy", "threadpoolctl"], 1),
    "jax": (["jax"], 2),
    "onnxruntime": (["onnxruntime", "onnx"], 1),
    "mlx": (["mlx[cpu]"], 2),
    "max": (["modular"], 8),
    "torch": (["torch"], 16),  # the registry's wheel brings the CUDA libraries along
    "llama.cpp": (["llama-cpp-python"], 4),  # built from source: minutes
}
# llama.cpp's AMX kernels (binding 0.3.36) crash on the quantised files of the demo model: it is built without them.
FLAGS = {"llama.cpp": "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"}
LIMIT_SECONDS = 300


def is_x86():
    return platform.machine() in ("x86_64", "AMD64")


def install(peer):
    """Installs a peer once; returns why not, or nothing."""
    stamp = os.path.join(HOME, peer + ".installed")
    packages, gigabytes = PEERS[peer]
    if os.path.exists(stamp):
        return None
    if not os.path.exists(PYTHON):
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    if shutil.disk_usage(HOME).free < gigabytes * 1e9:
        return f"not installed: less than {gigabytes} GB of disk free"
    print(f"installing {peer}", file=sys.stderr)
    flags = {name: FLAGS[peer] for name in ("CFLAGS", "CXXFLAGS")} if peer in FLAGS and is_x86() else {}
    pip = subprocess.run([PYTHON, "-m", "pip", "install", "-q", *packages], capture_output=True, text=True,
                         env=os.environ | flags)
    if pip.returncode != 0:
        return "not installed: " + pip.stderr.strip().split("\n")[-1]
    open(stamp, "w").close()
    return None


def environment(cache):
    threads = str(os.cpu_count())
    values = dict(os.environ, PEER_THREADS=threads, PEER_MODELS=os.path.abspath("build/models"),
                  OMP_NUM_THREADS=threads, MKL_NUM_THREADS=threads, OPENBLAS_NUM_THREADS=threads,
                  TORCHINDUCTOR_CACHE_DIR=os.path.join(cache, "torch"),
                  MODULAR_CACHE_DIR=os.path.join(cache, "max"), XDG_CACHE_HOME=cache)
    # Settings that make OpenBLAS take a new CPU for an old one would slow the peer.
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        values.pop(name, None)
    return values


def ask(peer, *row, cache=CACHE):
    """What measure.py prints for a row, or about the peer; {"error": …} when that failed."""
    command = [PYTHON, os.path.join(HERE, "peer", "measure.py"), peer, *row]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS,
                             env=environment(cache))
    except subprocess.TimeoutExpired:
        return {"error": f"over {LIMIT_SECONDS} s"}
    lines = run.stdout.strip().split("\n")
    if run.returncode != 0:
        return {"error": (run.stderr.strip() or "no output").split("\n")[-1][:200]}
    return json.loads(lines[-1])


def measure(peer, name):
    """One row; the first-call rows see a cache that is empty, or that a process before them filled."""
    if name.startswith("llm_start"):  # once a process; the file is in memory after the first
        values = [ask(peer, name) for _ in range(4)][1:]
        return next((v for v in values if "error" in v), min(values, key=lambda v: v.get("min", 0)))
    if name not in ("first_call", "first_call_cached"):
        return ask(peer, name)
    values = []
    with tempfile.TemporaryDirectory() as kept:
        if name == "first_call_cached":
            ask(peer, name, cache=kept)
        for _ in range(2):
            with tempfile.TemporaryDirectory() as empty:
                result = ask(peer, name, cache=kept if name == "first_call_cached" else empty)
            if "error" in result:
                return result
            values.append(result["min"])
    return {"min": min(values), "median": values[len(values) // 2]}


def about(peer):
    """Installs a peer when it is missing; what it is called with its version, and the names of its rows."""
    os.makedirs(HOME, exist_ok=True)
    error = install(peer)
    answer = {"error": error} if error else ask(peer)
    return answer.get("version") or "not usable: " + answer["error"], answer.get("rows", [])
