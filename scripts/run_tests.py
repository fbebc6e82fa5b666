#!/usr/bin/env python3
"""GoogleTest binaries, one process a test and many at a time: run_tests.py [OPTIONS] BINARY[@FILTER]...

FILTER is that of --gtest_filter. A line for each failure, then the counts; --log keeps what the tests wrote. With --tools
each test runs under each of these tools of compute-sanitizer (memcheck,racecheck,initcheck,synccheck), and what they report
is a failure. Exit status 1 where anything failed or did not run, or no test was found."""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import time

SANITIZER_FOUND = 99  # exit code for what the sanitizer reports; a failing test has 1
KEPT = 4000  # characters from either end of a test's output
AFTER_LAST = 10  # seconds that tests have after --seconds to end


def shorten(text):
    return text if len(text) <= 2 * KEPT else text[:KEPT] + "\n[...]\n" + text[-KEPT:]


def list_tests(binary, pattern):
    command = [binary, "--gtest_list_tests"] + ([f"--gtest_filter={pattern}"] if pattern else [])
    suite, tests = "", []
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        if line.startswith("  "):
            tests.append(suite + line.split()[0])
        elif line.split(" ")[0].endswith("."):
            suite = line.split()[0]
    return tests


def run_test(job, arguments, deadline):
    """(result, output, seconds); the result is "passed", "skipped", "not run" or what is wrong."""
    binary, test, tool = job
    if time.monotonic() > deadline:
        return "not run", "", 0
    command = [binary, "--gtest_brief=1", f"--gtest_filter={test}"]
    if tool:
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(SANITIZER_FOUND),
                   "--print-limit", "10", *command]
    start = time.monotonic()
    limit = min(arguments.limit, deadline + AFTER_LAST - start)
    # In a session of its own, so that a time-out ends what the sanitizer started as well.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=limit)
            result = "passed" if process.returncode == 0 else f"exit code {process.returncode}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            result = f"no end after {arguments.limit} s" if limit == arguments.limit else "not run"
    if process.returncode == SANITIZER_FOUND:
        result = f"reported by {tool}"
    elif tool and "before first instrumented API call" in output and "[  PASSED  ] 1 test." in output:
        result = "skipped"  # a test that needs no GPU: the tools take that for an error
    elif result == "passed" and "[  SKIPPED ]" in output:
        result = "skipped"
    return result, output, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", nargs="+", metavar="BINARY[@FILTER]")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=120, help="seconds for one test")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no test after this time, and end those that run 10 s later")
    parser.add_argument("--tools", default="", help="of compute-sanitizer, with commas between them")
    parser.add_argument("--log", type=pathlib.Path, help="file for the output of tests that fail")
    parser.add_argument("--slowest", type=int, default=0, help="name so many tests that took longest")
    arguments = parser.parse_args()
    jobs = []
    for text in arguments.binaries:
        binary, _, pattern = text.partition("@")
        binary = os.path.abspath(binary)
        jobs += [(binary, test, tool) for test in list_tests(binary, pattern) for tool in arguments.tools.split(",")]
    start = time.monotonic()
    counts, times = collections.Counter(), []
    log = arguments.log.open("w") if arguments.log else open(os.devnull, "w")
    with log, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = {pool.submit(run_test, job, arguments, start + arguments.seconds): job for job in jobs}
        for done in concurrent.futures.as_completed(running):
            (binary, test, tool), (result, output, seconds) = running[done], done.result()
            name = f"{os.path.basename(binary)} {test}" + (f" under {tool}" if tool else "")
            times.append((seconds, name))
            fine = result in ("passed", "skipped", "not run")
            counts[tool, result if fine else "failed"] += 1
            if not fine:
                print(f"FAILED {name} after {seconds:.1f} s: {result}", flush=True)
                log.write(f"=== {name}: {result}\n{shorten(output)}\n")
                log.flush()
    for seconds, name in sorted(times, reverse=True)[: arguments.slowest]:
        print(f"  {seconds:6.1f} s {name}")
    for tool in arguments.tools.split(","):
        parts = [f"{counts[tool, result]} {result}" for result in ("passed", "skipped", "not run", "failed")]
        print(f"{tool or 'tests'}: {', '.join(parts)}", flush=True)
    print(f"{time.monotonic() - start:.0f} s with {arguments.jobs} processes", flush=True)
    sys.exit(not jobs or any(result in ("not run", "failed") for _, result in counts))


if __name__ == "__main__":
    main()
