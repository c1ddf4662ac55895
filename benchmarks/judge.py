"""Answers a second that `rankwise judge` keeps, from several clients at once; none may be lost.

python -m benchmarks.judge [--clients 8] [--seconds 10] [--items 50]
"""

import argparse
import http.client
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from rankwise.judge import JudgementStore, read_items


def answer_until(end, address, judge, kept):
    """One client: answer as fast as replies come, and count what was confirmed."""
    connection = http.client.HTTPConnection(address)

    def post(path, **body):
        headers = {"Content-Type": "application/json"}
        connection.request("POST", path, json.dumps({"judge": judge} | body), headers)
        return json.load(connection.getresponse())

    found = post("/api/question")
    while time.perf_counter() < end:
        found = post("/api/answer", question=found["question"], outcome="first")
        kept[judge] += 1


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--items", type=int, default=50)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "items.txt"
        path.write_text("\n".join(f"item {k}" for k in range(options.items)))
        command = [sys.executable, "-m", "rankwise", "judge", str(path), "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        url = next(line.split()[1] for line in process.stdout if line.startswith("Open "))
        kept = {f"judge {k}": 0 for k in range(options.clients)}
        end = time.perf_counter() + options.seconds
        threads = [
            threading.Thread(target=answer_until, args=(end, urlsplit(url).netloc, judge, kept))
            for judge in kept
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        store = JudgementStore(f"{path}.judged.db", read_items(path).items)
        n, confirmed = store.n_answers(), sum(kept.values())
        store.close()
    print(
        f"{confirmed / options.seconds:.0f} answers a second, {confirmed - n} lost of {confirmed}"
    )
    return confirmed, n


if __name__ == "__main__":
    main()
