#!/usr/bin/env python3
"""Sends requests to an HTTP server on this machine at random times: serve_load.py URL WIDTH --rate R [--seconds S]

An open loop: arrivals are a Poisson process of R requests a second, whether the server keeps up or not, and a latency counts from
the time when its request was due. A request is a row of WIDTH random numbers as JSON. Prints one JSON line: requests, errors, the
throughput, and latencies in ms (p50, p99, the longest). With --saturate in place of --rate, as many requests as given are under way
all the time; the throughput is then what the server can do at most.
"""

import argparse
import asyncio
import json
import random
import sys
import time
import urllib.parse

PATIENCE_S = 30  # a request without an answer counts as an error that hangs
BODIES = 64


class Client:
    """Requests on connections that are kept. Unlike a general client, it costs the servers' cores little."""

    def __init__(self, url, width):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.idle = parts.hostname, parts.port, []
        generator = random.Random(1)
        self.requests = []
        for _ in range(BODIES):
            body = json.dumps([round(generator.gauss(0, 1), 4) for _ in range(width)]).encode()
            head = f"POST {parts.path or '/'} HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            self.requests.append(head.encode() + body)

    def kept(self):
        """A kept connection that the server has not closed in the meantime, or None."""
        while self.idle:
            reader, writer = self.idle.pop()
            if not reader.at_eof():
                return reader, writer
            writer.close()
        return None

    async def ask(self, number):
        """Raises if the answer is no success."""
        reader, writer = self.kept() or await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(self.requests[number % BODIES])
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if b"transfer-encoding: chunked" in head:
                while size := int(await reader.readline(), 16):
                    await reader.readexactly(size + 2)
                await reader.readline()
            else:
                await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
        except BaseException:
            writer.close()
            raise
        self.idle.append((reader, writer))
        status = head.split(maxsplit=2)[1].decode()
        if status != "200":
            raise ConnectionError(f"status {status}")


class Tally:
    def __init__(self):
        self.latencies, self.errors, self.times_of_errors = [], {}, []

    async def count(self, client, number, due):
        try:
            await asyncio.wait_for(client.ask(number), PATIENCE_S)
            self.latencies.append((time.perf_counter() - due) * 1e3)
        except (OSError, EOFError, asyncio.TimeoutError) as error:
            name = "hangs" if isinstance(error, asyncio.TimeoutError) else str(error) or type(error).__name__
            self.errors[name] = self.errors.get(name, 0) + 1
            self.times_of_errors.append(due)

    def summary(self, seconds):
        ordered = sorted(self.latencies)
        at = lambda share: round(ordered[min(int(share * len(ordered)), len(ordered) - 1)], 3) if ordered else None
        return {"answers": len(ordered), "errors": self.errors, "per_second": round(len(ordered) / seconds, 2), "p50_ms": at(0.5),
                "p99_ms": at(0.99), "longest_ms": at(1)}


async def poisson(client, rate, seconds, seed=0):
    """(the tally, the seconds until the last answer)"""
    generator, tally, tasks = random.Random(seed), Tally(), set()
    start = due = time.perf_counter()
    number = 0
    while True:
        due += generator.expovariate(rate)
        if due > start + seconds:
            break
        if (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        task = asyncio.create_task(tally.count(client, number, due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        number += 1
    await asyncio.gather(*tasks)
    return tally, time.perf_counter() - start


async def saturate(client, under_way, seconds):
    tally = Tally()
    start = time.perf_counter()

    async def one(number):
        while time.perf_counter() < start + seconds:
            await tally.count(client, number, time.perf_counter())
            number += under_way

    await asyncio.gather(*(one(number) for number in range(under_way)))
    return tally, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("width", type=int)
    load = parser.add_mutually_exclusive_group(required=True)
    load.add_argument("--rate", type=float, help="requests a second")
    load.add_argument("--saturate", type=int, metavar="N", help="requests under way")
    parser.add_argument("--seconds", type=float, default=10)
    arguments = parser.parse_args()
    client = Client(arguments.url, arguments.width)
    run = poisson(client, arguments.rate, arguments.seconds) if arguments.rate else saturate(client, arguments.saturate, arguments.seconds)
    tally, seconds = asyncio.run(run)
    print(json.dumps(tally.summary(seconds)))
    return bool(tally.errors)


if __name__ == "__main__":
    sys.exit(main())
