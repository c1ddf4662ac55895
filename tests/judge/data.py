"""Shared by the tests of `rankwise judge`."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request

MAX_WAIT = 120  # seconds, for what takes one second on an idle machine


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
