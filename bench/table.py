#!/usr/bin/env python3
"""The benchmark table of what run.py measured.

usage: table.py build/bench.json [--write docs/performance.md]
Every line gives Tenon's best time, each reference and the ratio to it, and whether the row's bars are
reached; a row without a number of Tenon's is listed too. --write replaces this CPU's section.
"""
import argparse
import json
import os
import re

from rows import BY_NAME, ROWS

# Limits that rows are held against, and what the table calls them.
LIMIT_NAMES = {"copy_524": "copy", "copy_524_fresh": "fresh copy", "copy_64": "copy"}


def cpu_name():
    """Model, the features that choose kernels, and cores."""
    with open("/proc/cpuinfo") as file:
        info = file.read()
    model = re.search(r"model name\s*: (.*)", info).group(1).strip()
    flags = set(re.search(r"flags\s*: (.*)", info).group(1).split())
    names = [("avx512f", "AVX-512"), ("avx512_bf16", "BF16"), ("avx512_vnni", "VNNI"), ("amx_tile", "AMX"),
             ("avx2", "AVX2")]
    features = [text for flag, text in names if flag in flags and not (flag == "avx2" and "avx512f" in flags)]
    return f"{model}, {'/'.join(features)}, {os.cpu_count()} cores"


def number(value, unit):
    if value is None:
        return "–"
    digits = max(0, 2 - len(str(int(value))) + 1) if value >= 1 else 3
    return f"{value:.{digits}f} {unit}"


class Line:
    """One row of the table: Tenon's value, the references by name, the verdict on each bar."""

    def __init__(self, row, measured, values):
        """`measured`: of this row, by Tenon, limits and peers. `values`: limits and rows that bars may name."""
        self.row = row
        tenon, peers = measured.get("tenon", {}), measured.get("peers", {})
        self.value = tenon.get("min")
        self.notes = tenon.get("notes", "")
        self.peers = {p: r["min"] for p, r in peers.items() if "min" in r}
        self.failed = {p: r["error"] for p, r in peers.items() if "error" in r}
        self.references = dict(self.peers)
        if self.peers:
            best = max if row.is_rate else min
            self.references["best"] = best(self.peers.values())
        for other, _ in row.bars:
            value = measured.get("limits", {}).get(other) or values.get(other)
            if value:
                self.references[other] = value["min"]

    def ratio(self, other):
        """How many times better than `other` Tenon is: over 1 is better."""
        if self.value is None or other not in self.references:
            return None
        quotient = self.value / self.references[other]
        return quotient if self.row.is_rate else 1 / quotient

    def verdict(self):
        parts = []
        for other, factor in self.row.bars:
            limit = factor if other == "" else factor * self.references[other] if other in self.references else None
            if limit is None or self.value is None:
                parts.append(f"{self.bar_text(other, factor)}: not measured")
                continue
            reached = self.value >= limit if self.row.is_rate else self.value <= limit
            parts.append(f"{self.bar_text(other, factor)}: {'yes' if reached else '**no**'}")
        return "; ".join(parts)

    def bar_text(self, other, factor):
        if other == "":
            return f"≤ {factor:g} {self.row.unit}"
        if self.row.is_rate:
            return f"≥ {factor:g} × {other}"
        if other in LIMIT_NAMES:
            return f"≤ {factor:g} × {LIMIT_NAMES[other]}"
        if other in BY_NAME:
            return f"≤ {factor:g} × {other}"
        return f"≥ {1 / factor:.3g} × {other}"

    def cells(self):
        shown = [f"{LIMIT_NAMES.get(name, name)} {number(value, '').strip()}"
                 f"{'' if self.ratio(name) is None else f' ({self.ratio(name):.2f}×)'}"
                 for name, value in sorted(self.references.items(), key=lambda item: item[1]) if name != "best"]
        shown += [f"{name} failed" for name in sorted(self.failed)]
        return [self.row.title, number(self.value, self.row.unit), ", ".join(shown) or "–", self.verdict() or "–"]


def section(lines, results):
    about = ", ".join(results["peers"].values())
    out = [f"## {cpu_name()}", "",
           f"{results['date']}; times are the best of many, in the row's unit; in brackets how many times",
           "faster Tenon is than that reference (below 1: slower).", "",
           "Limits: " + ", ".join(f"{name} {number(r['min'], r['unit'])}" for name, r in results["limits"].items()) + ".", ""]
    if about:
        out += [f"Peers: {about}.", ""]
    out += ["| work | Tenon | references | bar |", "|---|---|---|---|"]
    out += ["| " + " | ".join(line.cells()) + " |" for line in lines]
    notes = [f"- {line.row.title}: {line.notes}" for line in lines if line.notes]
    return "\n".join(out + ([""] + notes if notes else [])) + "\n"


def write_section(path, text):
    """Replaces the section with the same heading, or adds it at the end."""
    with open(path) as file:
        page = file.read()
    heading = text.split("\n", 1)[0]
    pieces = re.split(r"(?m)^(?=## )", page)
    kept = [piece for piece in pieces if not piece.startswith(heading + "\n")]
    with open(path, "w") as file:
        file.write("".join(kept).rstrip() + "\n\n" + text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("results")
    parser.add_argument("--write")
    options = parser.parse_args()
    with open(options.results) as file:
        results = json.load(file)
    rows = results["rows"]
    values = results["limits"] | {name: row["tenon"] for name, row in rows.items() if "tenon" in row}
    lines = [Line(row, rows.get(row.name, {}), values) for row in ROWS]
    text = section(lines, results)
    print(text)
    if options.write:
        write_section(options.write, text)


main()
