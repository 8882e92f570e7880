#!/usr/bin/env python3
"""Writes vectors/ring_lwe_security.json: what it costs to break the encryption of simplepir-packed.

Needs nothing but Python, and some seconds. The attacks, their cost model and the check against
Kyber512 are those of estimate_lwe.py. Ring LWE of degree 2048 is treated as plain LWE of dimension
2048: no better attack on it is known.

The secret is uniform on -1, 0, 1, so its deviation is sqrt(2/3), and that of the error is 8.45. An
attacker scales the secret's part of the lattice by their quotient xi, so that both are equally long
(Bai and Galbraith, Lattice Decoding Attacks on Binary LWE, ACISP 2014): a lattice of m dimensions
then has the volume q^(m - n) xi^n. The number of samples is that of all columns of the largest
table, the two keys, and a word for the mask of each of at most 1024 blocks if masks are on demand.
"""
import json, pathlib
from math import log2, sqrt
from estimate_lwe import attacks, check_against_the_published_figures, reduction_cost, sieve_dimension

DEGREE, MODULUS_BITS, MAX_COLUMNS, MAX_BLOCKS = 2048, 50, 2**19, 2**10
SECRET_DEVIATION = sqrt(2 / 3)
DEVIATION = 8.45

def estimate(deviation):
    samples = MAX_COLUMNS + MAX_BLOCKS + 2 * DEGREE
    found = attacks(DEGREE, 2**MODULUS_BITS, deviation, samples, deviation / SECRET_DEVIATION)
    bits = min(found["usvp"]["bits"], found["bdd"]["bits"])
    return {
        "deviation": deviation, **found, "security_bits": int(10 * bits) / 10,
        "core_svp_bits": round(0.292 * found["bdd"]["block"], 1),
    }

def after_one_reduction(bits):
    """One reduction of about 2^bits gates serves all queries of a table. What each then costs."""
    block = next(b for b in range(60, 1000) if log2(reduction_cost(b, 3986)) >= bits)
    scale = DEVIATION / SECRET_DEVIATION

    def each(dimension):
        sieve = sieve_dimension(DEGREE, 2**MODULUS_BITS, DEVIATION, block, dimension, scale)
        return log2(reduction_cost(sieve + 1, sieve + 1) + (dimension - sieve) ** 2)

    return {
        "reduction_bits": bits, "block": block,
        "each_query_bits": round(min(each(d) for d in range(2500, 6000, 32)), 1),
    }

if __name__ == "__main__":
    check_against_the_published_figures()
    # The lattice estimator (27a581b) has uSVP 2^141.1 and BDD 2^140.1 for a deviation of 6.4.
    known = estimate(6.4)
    assert abs(known["usvp"]["bits"] - 141.1) < 0.3 and abs(known["bdd"]["bits"] - 140.1) < 0.3, known
    content = {
        "degree": DEGREE, "modulus_bits": MODULUS_BITS, "max_columns": MAX_COLUMNS, "max_blocks": MAX_BLOCKS,
        "secret_deviation": round(SECRET_DEVIATION, 6), "standard": estimate(DEVIATION), "narrower": known,
        "after_one_reduction": [after_one_reduction(bits) for bits in (144, 160)],
    }
    path = pathlib.Path(__file__).with_name("ring_lwe_security.json")
    path.write_text(json.dumps(content, indent=2) + "\n")
    print(json.dumps(content, indent=2))
