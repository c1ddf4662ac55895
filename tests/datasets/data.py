"""Small files, and random damage to them."""

LETOR = b"2 qid:1 1:0.5 2:1 # first\r\n0 qid:1 2:-0.25e-3\n# note\n\n1.5 qid:b 1:3 3:7 # x\n" * 2
PLAIN = b"2 1:0.5 2:1 # first\n0 2:-0.25\n1 1:3 3:7\n"
PIECES = [
    *(b"qid:", b"qid", b":", b"#", b" ", b"\n", b"\r", b"\t", b"\0", b"\xff", b"\xef\xbb\xbf"),
    *(b"nan", b"inf", b"1e999", b"-1", b"0:", b"1_0", b"0x1", b"99999999999", b"9" * 25),
    *(b'"', b",", b";", b"\x0c", b"\x1c", b"\xc2\xa0", b"\xe2\x80\xa8", b"+", b"-", b".", b"\x1a"),
    *(b"\n\n", b",,", b'""', b'"\n', b"NA", b"tie", b"y", b"a,", b"\r\r", b"1.2.3", b"e", b"- "),
    *(b"PAR1", b"PK\x03\x04", b"{", b"[", b"1:2", b"\xc3\xa9", b"1e5e5"),
]


def mutated(content, rng):
    """Flip, delete, insert, repeat or cut some bytes."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        change = rng.randrange(5)
        if change == 0 and at < len(data):
            data[at] = rng.randrange(256)
        elif change == 1:
            del data[at : at + rng.randint(1, 5)]
        elif change == 2:
            data[at:at] = rng.choice(PIECES)
        elif change == 3:
            data[at:at] = data[at : at + rng.randint(1, 30)]
        elif rng.random() < 0.2:
            del data[at:]
    return bytes(data)
