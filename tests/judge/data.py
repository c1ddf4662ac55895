"""Shared by the tests of `rankwise judge`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request

from rankwise.judge.item_set import Item

MAX_WAIT = 120  # seconds, for what takes one second on an idle machine
LOCAL = "http://127.0.0.1"
FIVE = [Item(name, (("", f"about {name}"),)) for name in "abcde"]


class Program:
    """`rankwise judge` in a process of its own."""

    def __init__(self, path, *options, **pipes):
        command = [sys.executable, "-m", "rankwise", "judge", str(path), "--port", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **pipes)
        for line in self.process.stdout:
            if line.startswith("Open "):
                self.url = line.split()[1]
                break
        else:
            raise AssertionError("it did not start")

    def post(self, path, **body):
        request = urllib.request.Request(
            f"{self.url}api/{path}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def end(self, sign):
        self.process.send_signal(sign)
        said = self.process.communicate(timeout=MAX_WAIT)[0]
        return said


def post(client, path, **body):
    return client.post(path, json={"judge": "Ann"} | body)


def names(session, question):
    """Of the two items, in the order of their sides."""
    return tuple(session.items[place].name for place in session.positions(question))


def write(tmp_path, text, name="items.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def wait_for(condition):
    deadline = time.monotonic() + MAX_WAIT
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen in {MAX_WAIT} s"
        time.sleep(0.02)
