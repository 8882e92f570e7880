#!/usr/bin/env python3
"""Writes vectors/update_log.json: epochs of tables computed a second time, from the definition, sharing no code with the Rust crates.

Needs: pip install blake3 cryptography
Bytes are in hexadecimal. For each table by index:
  secret      the publisher's secret key (RFC 8032)
  publisher   its public key
  id          the table's id
  record_len  bytes of a record
  base        the epoch at which it begins
  layout      the encoded layout at the base
  records     all records at the base
  digest      the table's digest at the base
  epochs      each: its encoding (epoch), its hash, and the table after it: layout, records, digest
  log         the update log file with all of these
"""
import json, pathlib, struct
from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

def number(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))

def table_digest(layout, records, record_len):
    shape = struct.pack("<QQ", len(records) // record_len, record_len)
    parts = blake3(layout).digest() + blake3(records).digest()
    return blake3(shape + parts, derive_key_context="privet table digest v1").digest()

def commit(header_checksum, epoch, end, last):
    fields = struct.pack("<QQ", epoch, end) + last
    return fields + blake3(header_checksum + fields).digest()

def history(name, record_len, count, base, batches):
    """A batch: {index: new record}, a number of records to append, the bytes of the length before each value from then on, or None."""
    stream = blake3(name.encode()).digest(length=1 << 16)
    secret, table_id = stream[:32], stream[32:48]
    key = Ed25519PrivateKey.from_private_bytes(secret)
    publisher = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    used = 48
    def take(length):
        nonlocal used
        used += length
        return stream[used - length:used]
    layout = bytes([1, 0, 0, 0])
    records = take(count * record_len)
    begin = {"layout": layout.hex(), "records": records.hex(), "digest": table_digest(layout, records, record_len).hex()}
    header = b"\x89PRVL\r\n\x1a" + struct.pack("<I", 2) + table_id + struct.pack("<Q", base)
    header += table_digest(layout, records, record_len) + publisher + bytes(32) + struct.pack("<Q", count)
    header_checksum = blake3(header).digest()
    header += header_checksum
    previous, epoch, epochs, log = bytes(32), base, [], b""
    commits = {base % 2: (base, 12288, previous), 1 - base % 2: (base, 12288, previous)}
    for indices, appended, prefix in batches:
        epoch += 1
        before, digest_before = records, table_digest(layout, records, record_len)
        edits, least = b"", 0
        for index in sorted(indices):
            start = index * record_len
            new = take(record_len)
            edits += number(index - least) + before[start:start + record_len] + new
            records = records[:start] + new + records[start + record_len:]
            least = index + 1
        new_records = take(appended * record_len)
        records += new_records
        new_layout = b"" if prefix is None else bytes([1, 0, 0, prefix])
        layout = new_layout or layout
        body = struct.pack("<H", 1) + table_id + struct.pack("<Q", epoch) + previous + digest_before
        body += blake3(records).digest()
        body += struct.pack("<QQI", len(before) // record_len, len(records) // record_len, record_len)
        body += number(len(new_layout)) + new_layout + number(len(indices)) + edits + new_records
        previous = blake3(body, derive_key_context="privet update log epoch v1").digest()
        encoded = body + key.sign(previous)
        log += struct.pack("<Q", len(encoded)) + encoded
        commits[epoch % 2] = (epoch, 12288 + len(log), previous)
        epochs.append({
            "epoch": encoded.hex(),
            "hash": previous.hex(),
            "layout": layout.hex(),
            "records": records.hex(),
            "digest": table_digest(layout, records, record_len).hex(),
        })
    file = header.ljust(4096, b"\0") + commit(header_checksum, *commits[0])
    file = file.ljust(8192, b"\0") + commit(header_checksum, *commits[1])
    file = file.ljust(12288, b"\0") + log
    return {
        "secret": secret.hex(), "publisher": publisher.hex(), "id": table_id.hex(), "record_len": record_len, "base": base,
        **begin, "epochs": epochs, "log": file.hex(),
    }

answers = [
    history("one record", 1, 1, 0, [([0], 0, None), ([], 1, None)]),
    history("a few records", 6, 5, 3, [([1, 3, 4], 2, None), ([0, 6], 0, 1), ([], 0, 2), ([2], 1, 0)]),
    history("indices of two bytes", 2, 300, 8, [([0, 128, 299], 0, None), ([129], 3, None), ([302], 0, None)]),
    history("no epoch", 4, 2, 1, []),
]
path = pathlib.Path(__file__).with_name("update_log.json")
path.write_text(json.dumps(answers, indent=1) + "\n")
