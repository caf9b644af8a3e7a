#!/usr/bin/env python3
"""Measures Tenon, the machine's limits and the peers, row by row: run.py [--peers] [ROW…] writes build/bench.json.

A machine's speed drifts, so a row is measured by Tenon, by the limits that it is held against and by each peer within
minutes. Where memory lies makes some rows, and copies, a half slower in one process than in the next: all that such a
row is held against is measured as many times in turn as the row says, and the best of each counts. With ROWs the others
keep what was measured before.
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


def output(program, *names):
    """The rows that a program prints, by name; none where there is no such program for this CPU."""
    if not os.path.exists(program):
        return {}
    run = subprocess.run([program, *names], stdout=subprocess.PIPE, text=True, check=True)
    return {row["name"]: row for row in json.loads(run.stdout)}


def keep_best(into, name, value, is_rate=False):
    """Keeps the better of two values of one name; any value rather than an error."""
    old = into.get(name)
    better = max if is_rate else min
    if old is None or "error" in old or ("error" not in value and better(value["min"], old["min"]) != old["min"]):
        into[name] = value


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


def measure(row, results, limits, rows_of):
    """One row, and those that the same function of Tenon's measures, by all in turn."""
    found = {"tenon": {}, "limits": {}, "peers": {}}
    for _ in range(row.turns):
        for limit in (other for other, _ in row.bars if other in limits):
            keep_best(found["limits"], limit, output(LIMITS, limit)[limit])
        for name, value in output(TENON, row.name).items():
            keep_best(found["tenon"], name, value, row.is_rate)
        for peer, names in rows_of.items():
            if row.name in names:
                keep_best(found["peers"], peer, peers.measure(peer, row.name), row.is_rate)
    for name, value in found["tenon"].items():
        results.row(name)["tenon"] = value
    results.row(row.name).update(limits=found["limits"], peers=found["peers"])
    for who in found.values():
        for name, value in who.items():
            print(f"{row.name:<28} {name:<28} {value.get('min', value.get('error'))}", file=sys.stderr, flush=True)


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
        measure(row, results, results.all["limits"], rows_of)
        results.save()


main()
