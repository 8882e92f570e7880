#!/usr/bin/env python3
"""Writes vectors/lwe_security.json: what it costs to break SimplePIR's and DoublePIR's encryption
for each width of the error, and which width the code chooses for how many columns.

Needs nothing but Python, and a few seconds.

The estimate. Two attacks by lattice reduction, as the lattice estimator of Albrecht and others has
them (github.com/malb/lattice-estimator, its defaults: the geometric series assumption for the shape
of a reduced basis, the cost model "MATZOV" for a sieve):
  uSVP  embed the query into a lattice and reduce until its error is the shortest vector left
  BDD   reduce the lattice without the query, then find the nearest point by one sieve in fewer
        dimensions
The script first computes both for Kyber512 and stops if they are not what that estimator publishes.

The secret is uniform modulo q. From n of the samples an attacker makes the secret one of the
errors' width, so m columns are an instance with n coordinates of the secret and m - n samples, all
of one deviation: a lattice of at most m dimensions and volume q^(m - n). The best attacks use 2200
to 2400 dimensions, so a table of fewer columns is harder to attack, and one of more is not easier.

The failure. A byte of an answer carries the noise sum((D_j - 128) e_j) over its columns, with
|D_j - 128| <= 128. An error is w1 X1 + w2 X2 with two discrete Gaussians of deviation 8.45, and so
sub-Gaussian with parameter sigma = 8.45 sqrt(w1^2 + w2^2). The byte comes out wrong only if the
noise reaches 2^23: with probability at most 2 exp(-(2^23)^2 / (2 * 128^2 * sigma^2 * columns)). A
byte of a record hangs on one such byte (SimplePIR, and the first level of DoublePIR) or on 4100
(DoublePIR's second level); the code takes the widest error at which these fail with probability
2^-65 at most.
"""
import json, math, pathlib
from math import e, lgamma, log, log2, pi, sqrt

DIMENSION, MODULUS = 1024, 2**32
BASE_VARIANCE = 8.45**2
# From wide to narrow. The last is one that the code must refuse.
WEIGHTS = [(1, 4), (1, 3), (1, 2), (1, 1), (1, 0)]
LEAST_BITS, LEVEL_FAILURE_LOG2, MAX_COLUMNS = 128.0, -65.0, 2**18
# Bytes that one byte of a record hangs on.
ONE, SECOND_LEVEL = 1, 4 * DIMENSION + 4


def log_root_hermite(block):
    return log(block / (2 * pi * e) * (pi * block) ** (1 / block)) / (2 * (block - 1))


def reduction_cost(block, dimension):
    """Gates of a progressive BKZ with sieves ("MATZOV", list decoding, classical)."""
    free = max(block * log(4 / 3) / log(block / (2 * pi * e)), 0)
    sieve = 5.46 * 2 ** (0.29613500308205365 * (block - free) + 20.387885985467914)
    return dimension**3 + 5.46 * max(dimension - block, 1) * sieve


# In the attacks, `scale` is what the secret's part of the lattice is multiplied with: how many times
# the errors' deviation is that of the secret.


def unique_shortest_vector(n, q, deviation, samples, scale=1):
    """Bits, block size and dimension: the smallest block that succeeds, in few dimensions."""

    def succeeds(block, dimension):
        shape = log_root_hermite(block) * (2 * block - dimension - 1)
        volume = (log(deviation) + log(q) * (dimension - n - 1) + n * log(scale)) / dimension
        return log(deviation * sqrt(block)) <= shape + volume

    for block in range(60, 1000):
        first, last = max(n + 2, block + 1), n + samples + 1
        # Where the right-hand side is largest.
        best = (n + 1) * log(q) - log(deviation) - n * log(scale)
        best = sqrt(best / log_root_hermite(block))
        best = min(max(int(best), first), last)
        if any(succeeds(block, d) for d in (best, min(best + 1, last))):
            dimension = next(d for d in range(first, last + 1) if succeeds(block, d))
            return log2(reduction_cost(block, dimension)), block, dimension
    raise ValueError("no block size succeeds")


def sieve_dimension(n, q, deviation, block, dimension, scale=1):
    """The dimension in which, after reduction, one sieve finds the error's projection."""
    slope = log_root_hermite(block)
    volume = (dimension - n) * log(q) + n * log(scale)

    def found(first):
        rank = dimension - first
        projected = rank / dimension * volume - first * rank * slope + log(deviation)
        ball = (rank + 1) / 2 * log(pi) - lgamma((rank + 1) / 2 + 1)
        return 2 * (projected - ball) / (rank + 1) < log(deviation**2 * (rank + 1))

    if found(0):
        return dimension
    low, high = 0, dimension - 2
    if not found(high):
        return 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if found(middle) else (middle, high)
    return dimension - high + 1


def bounded_distance(n, q, deviation, samples, blocks, scale=1):
    """The cheapest (bits, block, sieve, dimension, bits of the sieve alone) among `blocks`."""

    def attack(block, dimension):
        sieve = sieve_dimension(n, q, deviation, block, dimension, scale)
        search = reduction_cost(sieve + 1, sieve + 1) + (dimension - sieve) ** 2
        return reduction_cost(block, dimension) + search, block, sieve, dimension, search

    best = (math.inf,)
    for block in blocks:
        span = range(max(n + 2, block + 1), min(n + samples, 4 * n) + 1)
        step = 32
        tries = span[::step]
        while step:
            best_here = min(attack(block, dimension) for dimension in tries)
            best, around, step = min(best, best_here), best_here[3], step // 4
            wide = range(around - 4 * max(step, 1), around + 4 * max(step, 1) + 1, max(step, 1))
            tries = [dimension for dimension in wide if dimension in span]
    cost, block, sieve, dimension, search = best
    return log2(cost), block, sieve, dimension, log2(search)


def attacks(n, q, deviation, samples, scale=1):
    bits, block, dimension = unique_shortest_vector(n, q, deviation, samples, scale)
    blocks = range(block - 22, block + 1)
    found = bounded_distance(n, q, deviation, samples, blocks, scale)
    return {
        "usvp": {"bits": round(bits, 2), "block": block, "dimension": dimension},
        "bdd": {
            "bits": round(found[0], 2), "block": found[1], "sieve": found[2],
            "dimension": found[3],
        },
    }


def check_against_the_published_figures():
    """Kyber512 (n = 512, q = 3329, deviation sqrt(3/2), as many samples), as published: uSVP
    2^143.8 with block size 406 in dimension 998, BDD 2^140.3."""
    kyber = attacks(512, 3329, sqrt(1.5), 512)
    usvp = kyber["usvp"]
    assert (round(usvp["bits"], 1), usvp["block"], usvp["dimension"]) == (143.8, 406, 998), usvp
    assert abs(kyber["bdd"]["bits"] - 140.3) < 0.1, kyber["bdd"]
    return kyber


def failure_log2(columns, variance):
    return 1 - (2**23) ** 2 / (2 * 128**2 * variance * columns) / log(2)


def after_one_reduction(deviation, bits):
    """One reduction of about 2^bits gates serves all queries of a table. What each then costs."""
    block = next(b for b in range(60, 1000) if log2(reduction_cost(b, 2300)) >= bits)

    def each(dimension):
        sieve = sieve_dimension(DIMENSION, MODULUS, deviation, block, dimension)
        return log2(reduction_cost(sieve + 1, sieve + 1) + (dimension - sieve) ** 2)

    return {
        "reduction_bits": bits, "block": block,
        "each_query_bits": round(min(each(d) for d in range(1600, 3200, 16)), 1),
    }


def error(weights):
    variance = BASE_VARIANCE * sum(w * w for w in weights)
    found = attacks(DIMENSION, MODULUS, sqrt(variance), MAX_COLUMNS - DIMENSION)
    least = min(found["usvp"]["bits"], found["bdd"]["bits"])
    # The most columns at which the failure bound is still 2^-65.
    most = int(2**46 / (2 * 128**2 * variance) / ((1 - LEVEL_FAILURE_LOG2) * log(2)))
    return {
        "weights": list(weights), "deviation": round(sqrt(variance), 6), **found,
        "core_svp_bits": round(0.292 * found["usvp"]["block"], 1),
        "security_bits": math.floor(least * 10) / 10, "most_columns": most,
        "after_one_reduction": [after_one_reduction(sqrt(variance), b) for b in (144, 160)],
    }


def chosen(errors, columns, decryptions):
    """The widest error whose failure bound is small enough; None if that one, or none, is safe."""
    for error in errors:
        variance = BASE_VARIANCE * sum(w * w for w in error["weights"])
        failure = failure_log2(columns, variance) + log2(decryptions)
        if columns <= MAX_COLUMNS and failure <= LEVEL_FAILURE_LOG2:
            return (error, failure) if error["security_bits"] >= LEAST_BITS else None


if __name__ == "__main__":
    kyber = check_against_the_published_figures()
    errors = [error(weights) for weights in WEIGHTS]
    print("bytes  columns    sigma  failure of the bytes   uSVP     BDD    core-SVP")
    counts = sorted([2**i for i in range(10, 20)] + [x["most_columns"] for x in errors])
    rows = []
    for decryptions, columns in [(d, c) for d in (ONE, SECOND_LEVEL) for c in counts]:
        choice = chosen(errors, columns, decryptions)
        row = {"columns": columns, "decryptions": decryptions, "refused": choice is None}
        if choice is None:
            print(f"{decryptions:5d}  {columns:7d}    refused")
        else:
            width, failure = choice
            row |= {"weights": width["weights"], "failure_log2": round(failure, 2)}
            print(
                f"{decryptions:5d}  {columns:7d}   {width['deviation']:6.2f}  2^{failure:<12.1f}"
                f"       2^{width['usvp']['bits']:.1f}  2^{width['bdd']['bits']:.1f}  "
                f"2^{width['core_svp_bits']:.0f}"
            )
        rows.append(row)
    # An attacker who has fewer samples than the best attack wants.
    few = [
        {"columns": columns, **attacks(DIMENSION, MODULUS, errors[0]["deviation"], columns - 1024)}
        for columns in (1800, 2048)
    ]
    for one in few:
        print(f"{one['columns']} columns alone: 2^{one['usvp']['bits']}, 2^{one['bdd']['bits']}")
    for one in errors:
        shared = ", ".join(
            f"2^{x['each_query_bits']} each after 2^{x['reduction_bits']}"
            for x in one["after_one_reduction"]
        )
        print(f"sigma {one['deviation']:.2f}, queries of one table: {shared}")
    path = pathlib.Path(__file__).with_name("lwe_security.json")
    content = {
        "dimension": DIMENSION, "modulus_bits": 32, "base_deviation": sqrt(BASE_VARIANCE),
        "least_security_bits": LEAST_BITS, "level_failure_log2": LEVEL_FAILURE_LOG2,
        "max_columns": MAX_COLUMNS, "kyber512": kyber, "errors": errors, "columns": rows,
        "few_columns": few,
    }
    path.write_text(json.dumps(content, indent=2) + "\n")
    print(f"written to {path}")
