"""What Python adds: a lookup against the Rust client's, and a build against one from Parquet.

Usage: `python measure.py RUST`. RUST is the program that this makes:
`cargo build --release --package privet-client --example latencies`. Needs pyarrow.
"""

import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import pyarrow
import pyarrow.parquet

import privet

LOOKUPS = 2_000
ROUNDS = 5
ROWS = 3_000_000


def python_latencies(url: str) -> float:
    """The median of a lookup in microseconds."""
    with privet.connect(url, keep=False, progress=False) as db:
        taken = []
        for row in range(LOOKUPS):
            start = time.perf_counter()
            value = db.get(f"person {row % 100}")
            taken.append(time.perf_counter() - start)
            assert value is not None and value.json() == {"number": row % 100}
    return statistics.median(taken) * 1e6


def lookups(rust: str, directory: pathlib.Path) -> None:
    people = pyarrow.table({"name": [f"person {row}" for row in range(100)], "number": range(100)})
    privet.build(people, directory / "people.privet", key="name")
    for scheme in ("download", "simplepir"):
        with privet.serve(directory / "people.privet", scheme=scheme) as server:
            for _ in range(ROUNDS):
                told = subprocess.check_output([rust, server.url, str(LOOKUPS)], text=True)
                ours, theirs = python_latencies(server.url), float(told)
                print(f"{scheme}: get {ours:.1f} us in Python, {theirs:.1f} us in Rust, "
                      f"{ours - theirs:+.1f} us")


def builds(directory: pathlib.Path) -> None:
    table = pyarrow.table({
        "key": [f"key {row * 7919 % ROWS}" for row in range(ROWS)],
        "number": range(ROWS),
        "share": [row / 3 for row in range(ROWS)],
        "text": [f"the text of row {row}" for row in range(ROWS)],
    })
    file = directory / "rows.parquet"
    pyarrow.parquet.write_table(table, file)
    for _ in range(3):
        taken = {}
        for name, data in (("Arrow", table), ("Parquet", file)):
            start = time.perf_counter()
            report = privet.build(data, directory / f"{name}.privet", key="key", progress=False)
            taken[name] = time.perf_counter() - start
            assert report.rows == report.keys == ROWS
        print(f"build of {ROWS:,} rows: {taken['Arrow']:.2f} s from Arrow, "
              f"{taken['Parquet']:.2f} s from Parquet, {taken['Arrow'] / taken['Parquet']:.2f} x")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        lookups(sys.argv[1], pathlib.Path(temporary))
        builds(pathlib.Path(temporary))
