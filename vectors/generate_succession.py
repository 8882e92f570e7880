#!/usr/bin/env python3
"""Writes vectors/succession.json: successions of tables computed a second time, from the definition, sharing no code with the Rust crates.

Needs: pip install blake3 cryptography
Bytes are in hexadecimal. For each succession:
  publisher      the secret key (RFC 8032) of the old table's publisher
  next           the secret key of that publisher's next key, or null
  id, epoch      the old table's id, and its last epoch
  previous       the hash of that epoch
  records, record_len, layout, digest    the old table then, and its digest
  new_id, new_records, new_layout, new_digest    the successor, with records of the same length
  new_publisher  the public key that signs from then on
  new_next       the digest of the new publisher's next key, or null
  revokes        whether the publisher does not sign
  succession     the record
  hash           its hash
"""
import json, pathlib, struct
from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

def table_digest(layout, records, record_len):
    shape = struct.pack("<QQ", len(records) // record_len, record_len)
    parts = blake3(layout).digest() + blake3(records).digest()
    return blake3(shape + parts, derive_key_context="privet table digest v1").digest()

def public(key):
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

def next_digest(key):
    return blake3(public(key), derive_key_context="privet next publisher key v1").digest()

def succession(name, epoch, record_len, counts, has_next, names_next, revokes, rotates):
    stream = blake3(name.encode()).digest(length=1 << 12)
    used = 0
    def take(length):
        nonlocal used
        used += length
        return stream[used - length:used]
    publisher, following, later = [Ed25519PrivateKey.from_private_bytes(take(32)) for _ in range(3)]
    old_id, new_id = take(16), take(16)
    previous = take(32) if epoch else bytes(32)
    layout = bytes([1, 0, 0, 0])
    records = take(counts[0] * record_len)
    new_layout, new_records = layout, records
    if not rotates:
        new_layout, new_records = bytes([1, 0, 0, 1]), take(counts[1] * record_len)
    new_id = old_id if rotates else new_id
    new_publisher = following if has_next else publisher
    body = struct.pack("<HB", 2, (1 if revokes else 0) | (2 if has_next else 0) | (4 if names_next else 0))
    body += old_id + struct.pack("<Q", epoch + 1) + previous + table_digest(layout, records, record_len)
    body += new_id + struct.pack("<QI", len(new_records) // record_len, record_len)
    body += blake3(new_layout).digest() + blake3(new_records).digest() + public(new_publisher)
    body += next_digest(later) if names_next else b""
    hash = blake3(body, derive_key_context="privet succession v1").digest()
    record = body
    record += b"" if revokes else publisher.sign(hash)
    record += following.sign(hash) if has_next else b""
    secret = lambda key: key.private_bytes_raw().hex()
    return {
        "publisher": secret(publisher), "next": secret(following) if has_next else None,
        "id": old_id.hex(), "epoch": epoch, "previous": previous.hex(),
        "records": records.hex(), "record_len": record_len, "layout": layout.hex(),
        "digest": table_digest(layout, records, record_len).hex(),
        "new_id": new_id.hex(), "new_records": new_records.hex(), "new_layout": new_layout.hex(),
        "new_digest": table_digest(new_layout, new_records, record_len).hex(),
        "new_publisher": public(new_publisher).hex(),
        "new_next": next_digest(later).hex() if names_next else None,
        "revokes": revokes, "succession": record.hex(), "hash": hash.hex(),
    }

answers = [
    succession("the publisher alone", 0, 4, (3, 5), False, False, False, False),
    succession("a next key is named", 7, 4, (3, 2), False, True, False, False),
    succession("both sign", 300, 2, (5, 5), True, True, False, False),
    succession("the next key revokes", 2, 6, (1, 9), True, False, True, False),
    succession("a rotation", 9, 3, (4, 4), True, True, False, True),
    succession("a rotation that names a next key", 0, 3, (4, 4), False, True, False, True),
]
path = pathlib.Path(__file__).with_name("succession.json")
path.write_text(json.dumps(answers, indent=1) + "\n")
