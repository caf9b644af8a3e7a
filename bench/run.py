#!/usr/bin/env python3
"""Measures Tenon, the machine's limits and the peers, row by row: run.py [--peers] [ROW…] writes build/bench.json.

A machine's speed drifts, so a row is measured by Tenon, by the limits that it is held against and by each peer within
minutes. A copy differs by a half from process to process, by where its memory lies: rows that are held against one are
measured in TURNS processes of Tenon and of the limit in turn, and the best of each counts. With ROWs the others keep
what was measured before.
"""
import json
import os
import subprocess
import sys
import time

import peers
from rows import ROWS

LIMITS = os.path.abspath("build/release/bench/limits")
TENON = os.path.abspath("build/release/bench/tenon_bench")
RESULTS = os.path.abspath("build/bench.json")
TURNS = 3


def output(program, *names):
    """The rows that a program prints, by name; none where there is no such program for this CPU."""
    if not os.path.exists(program):
        return {}
    run = subprocess.run([program, *names], stdout=subprocess.PIPE, text=True, check=True)
    return {row["name"]: row for row in json.loads(run.stdout)}


def keep_best(into, name, value, is_rate=False):
    old = into.get(name)
    if old is None or (value["min"] > old["min"] if is_rate else value["min"] < old["min"]):
        into[name] = value


def report(who, name, value):
    print(f"{who:<10} {name:<24} {value}", file=sys.stderr, flush=True)


class Results:
    """What was measured: {"date", "limits": {name: …}, "peers": {peer: version}, "rows": {name: {"tenon", "limits",
    "peers"}}}."""

    def __init__(self, fresh):
        self.all = {"limits": {}, "peers": {}, "rows": {}}
        if not fresh and os.path.exists(RESULTS):
            with open(RESULTS) as file:
                self.all = json.load(file)
        self.all["date"] = time.strftime("%Y-%m-%d")

    def row(self, name):
        return self.all["rows"].setdefault(name, {"limits": {}, "peers": {}})

    def save(self):
        with open(RESULTS + ".new", "w") as file:
            json.dump(self.all, file, indent=1)
        os.replace(RESULTS + ".new", RESULTS)


def measure_tenon(row, results, limit_names):
    """Tenon's value of a row, and of those that the same function measures; the limits that it is held against."""
    limits = [other for other, _ in row.bars if other in limit_names]
    mine, theirs = {}, {}
    for _ in range(TURNS if limits else 1):
        for limit in limits:
            keep_best(theirs, limit, output(LIMITS, limit)[limit])
        for name, value in output(TENON, row.name).items():
            keep_best(mine, name, value, row.is_rate)
    results.row(row.name)["limits"] = theirs
    for limit, value in theirs.items():
        report("limit", limit, value["min"])
    for name, value in mine.items():
        results.row(name)["tenon"] = value
        report("tenon", name, value["min"])


def main():
    wanted = [name for name in sys.argv[1:] if name != "--peers"]
    rows = [row for row in ROWS if not wanted or row.name in wanted]
    unknown = set(wanted) - {row.name for row in rows}
    if unknown:
        sys.exit(f"bench: no row {', '.join(sorted(unknown))}; the rows are {', '.join(row.name for row in ROWS)}")
    results = Results(fresh=not wanted)
    results.all["limits"] = output(LIMITS)
    rows_of = {}
    if "--peers" in sys.argv[1:]:
        for peer in peers.PEERS:
            results.all["peers"][peer], rows_of[peer] = peers.about(peer)
    for row in rows:
        measure_tenon(row, results, results.all["limits"])
        results.save()
        for peer, names in rows_of.items():
            if row.name not in names:
                continue
            value = results.row(row.name)["peers"][peer] = peers.measure(peer, row.name)
            report(peer, row.name, value.get("min", value.get("error")))
            results.save()


main()
