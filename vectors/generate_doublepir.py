#!/usr/bin/env python3
"""Writes vectors/doublepir.json: DoublePIR computed a second time, from the definition, sharing no code with the Rust crates.

Needs: pip install blake3 pycryptodome numpy mpmath
Table, hints, query and answer are given as BLAKE3 digests of their bytes; everything can be recomputed from the fields of a case:
  table     BLAKE3's output stream of the text "a table"
  table id  sixteen bytes 07
  matrices  as SimplePIR's (generate_simplepir.py), for the purposes "privet 2026-11 doublepir first public matrix" and "... second public matrix"
  coins     ChaCha20 as in SimplePIR, one stream: first the encryption of the column, then that of the record within it
A column of the second matrix is what one record of a column has of the first hint: its rows, as little-endian bytes. If a column has more than 4100 records, the first product
is folded: its words' bytes, 4 * record_len for each record, are the columns of a third matrix; the answer then carries that matrix times A2, row by row, and times the query.
"""
import numpy as np
from blake3 import blake3
from generate_simplepir import DIMENSION, chacha20_words, decrypt, encrypt, hexdigest, product, public_matrix, write

def as_columns(words, per_column):
    """The little-endian bytes of `words`, cut into `per_column` columns."""
    return np.frombuffer(words.astype("<u4").tobytes(), dtype=np.uint8).reshape(per_column, -1).T

def as_words(column):
    return np.frombuffer(column.astype(np.uint8).tobytes(), dtype="<u4").astype(np.uint64)

def case(records, record_len, per_column, index, rng_seed):
    size = records * record_len
    table = blake3(b"a table").digest(length=size)
    rows, columns = per_column * record_len, -(-records // per_column)
    matrix = np.frombuffer(table.ljust(rows * columns, b"\0"), dtype=np.uint8).reshape(columns, rows).T
    first_public = public_matrix("privet 2026-11 doublepir first public matrix", columns)
    second_public = public_matrix("privet 2026-11 doublepir second public matrix", per_column)
    first_hint = product(matrix, first_public)
    second = as_columns(first_hint, per_column)
    hint = product(second, second_public)

    column, slot = divmod(index, per_column)
    first_len = DIMENSION + 8 * columns
    words = chacha20_words(bytes([rng_seed] * 32), first_len + DIMENSION + 8 * per_column)
    first_query, first_secret, first_errors = encrypt(first_public, column, words[:first_len])
    second_coins, second_bytes = words[first_len:], 4 * (DIMENSION + 1)
    encrypted = encrypt(second_public, slot, second_coins, second_bytes)
    second_query, second_secret, second_errors = encrypted

    first = product(matrix, first_query)
    hint_rows = product(second, second_query)
    folds = per_column > 4 * (DIMENSION + 1)
    if folds:
        third = as_columns(first, per_column)
        third_hint, masked = product(third, second_public), product(third, second_query)
        sent_first = np.concatenate([third_hint.reshape(-1), masked])
    else:
        sent_first = first

    rows_of_hint = as_words(decrypt(hint_rows, product(hint, second_secret), second_errors)).reshape(record_len, DIMENSION)
    if folds:
        words_of_first = as_words(decrypt(masked, product(third_hint, second_secret), second_errors))
    else:
        words_of_first = first[slot * record_len:(slot + 1) * record_len]
    record = bytes(decrypt(words_of_first, product(rows_of_hint, first_secret), first_errors).astype(np.uint8))
    assert record == table[index * record_len:(index + 1) * record_len]
    return {
        "records": records, "record_len": record_len, "records_per_column": per_column, "index": index, "rng_seed": rng_seed,
        "table_blake3": blake3(table).hexdigest(), "first_hint_blake3": hexdigest(first_hint), "hint_blake3": hexdigest(hint),
        "query_blake3": hexdigest(np.concatenate([first_query, second_query])),
        "answer_blake3": hexdigest(np.concatenate([hint_rows, sent_first])), "record": record.hex(),
    }

if __name__ == "__main__":
    write("doublepir.json", [case(1, 1, 1, 0, 1), case(1000, 1, 32, 999, 2), case(700, 3, 50, 333, 3), case(10_000, 1, 4_101, 8_000, 4), case(9_000, 2, 4_500, 4_499, 5)])
