"""The samples of the documentation are what the command prints.

A fenced block of a page that begins with `$ heddle` is a sample: commands, each with its output below it. CONTRIBUTING.md
says which are run, what is compared, and how to mark a block that is not run.

usage: samples_test.py HEDDLE ROOT DATA [--update]
"""
import difflib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

HEDDLE, ROOT, DATA = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
UPDATE = "--update" in sys.argv[4:]
PAGES = [*ROOT.glob("*.md"),
         *(page for folder in ("bench", "docs", "examples", "tests") for page in sorted((ROOT / folder).rglob("*.md")))]
BLOCK = re.compile(r"((?:^<!--[^\n]*-->\n)*)^```\w*\n(\$ heddle .*?)^```$", re.MULTILINE | re.DOTALL)
GIVEN = re.compile(r"^<!-- (\S+) is (\S+) of the test data -->$", re.MULTILINE)
# Commands that neither compile a kernel nor run one.
READS = {"explain", "inspect", "opt", "zoo"}
# What differs between two machines or two runs: times and what is computed from them, hashes, and the widths of columns.
MASKS = [(re.compile(r"\b\d+(\.\d+)? (ns|us|ms|s|times)\b"), "TIME"), (re.compile(r"\b\d+%"), "SHARE"),
         (re.compile(r"(?<=[_ ])[0-9a-f]{16,32}\b"), "HASH"), (re.compile(r"-{2,}"), "--"), (re.compile(r" {2,}"), "  ")]
# A CPU's clock and caches decide which kernels take most of the time, which are far above their floor, and what is not
# worth fusing.
OF_THE_CPU = re.compile(r"^time  .*?(?=^memory )", re.MULTILINE | re.DOTALL)
CPU = re.compile(r"\bcpu-(\w+)(?:, (\d+) thread)?")


def commands_of(block):
    """The commands of a block with the lines below each."""
    for part in re.split(r"(?m)^\$ ", block)[1:]:
        command, _, output = part.partition("\n")
        yield shlex.split(command, comments=True), output


def lines_of(text):
    if CPU.search(text):
        text = OF_THE_CPU.sub("", text)
    for pattern, word in MASKS:
        text = pattern.sub(word, text)
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def pattern_of(lines):
    """`...` stands for any lines, and inside a line for anything."""
    return "".join(r"(?:.*\n)*?" if line.strip() == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n"
                   for line in lines)


def first_difference(sample, printed):
    """None where the lines agree."""
    text = "".join(line + "\n" for line in printed)
    if re.fullmatch(pattern_of(sample), text):
        return None
    for count, line in enumerate(sample, 1):
        if not re.match(pattern_of(sample[:count]), text):
            return "\n".join([f"sample:  {line}", *(f"printed: {near}" for near in difflib.get_close_matches(line, printed))])
    return "more is printed than the sample has"


def renewed(sample, printed):
    """The output in place of the sample, but for lines that are cut and still right; None where lines are left out."""
    cut = [line for line in sample.splitlines() if "..." in line]
    if any(line.strip() == "..." for line in cut):
        return None
    return "".join(next((line for line in cut if re.fullmatch(pattern_of([line]), now + "\n")), now) + "\n"
                   for now in printed.strip("\n").splitlines())


class Samples(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.compared = 0
        self.printed = {}  # by command

    def can_run(self, arguments):
        """Whether the command needs no kernel, no device and no file that is absent."""
        if arguments[0] not in READS or "--measure" in arguments:
            return False
        return arguments[0] == "zoo" or all((self.folder / word).exists() for word in arguments[1:2])

    def run_command(self, arguments, cpu):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HEDDLE_")}
        # Neither rates of a calibration nor a GPU of this machine.
        environment |= {"HEDDLE_CACHE_DIR": str(self.folder / "cache"),
                        "HEDDLE_CUDA_DRIVER": str(self.folder / "none")}
        cores = sorted(os.sched_getaffinity(0))
        if cpu:
            environment["HEDDLE_CPU_ISA"] = cpu.group(1)
            cores = cores[:int(cpu.group(2) or len(cores))]
        done = subprocess.run([HEDDLE, *arguments], cwd=self.folder, env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, preexec_fn=lambda: os.sched_setaffinity(0, cores))
        return done.stdout

    def check(self, page, arguments, sample):
        cpu = CPU.search(sample)
        command = shlex.join(arguments)
        printed = self.printed[command] = self.printed.get(command) or self.run_command(arguments, cpu)
        here = CPU.search(printed)
        if cpu and here and cpu.group() != here.group():
            return  # of a machine with more cores or instructions
        difference = first_difference(lines_of(sample), lines_of(printed))
        self.compared += 1
        if UPDATE and difference and (new := renewed(sample, printed)):
            page.write_text(page.read_text().replace(sample, new))
        else:
            self.assertIsNone(difference)

    def check_page(self, page):
        text = page.read_text()
        blocks = BLOCK.findall(text)
        commands = len(re.findall(r"^\$ heddle ", text, re.MULTILINE))
        self.assertEqual(sum(len(re.findall(r"^\$ heddle ", block, re.MULTILINE)) for _, block in blocks), commands)
        for comments, block in blocks:
            for (program, *arguments), sample in commands_of(block):
                if program == "heddle" and "<!-- not run:" not in comments and self.can_run(arguments):
                    with self.subTest(f"{page.relative_to(ROOT)}: heddle {shlex.join(arguments)}"):
                        self.check(page, arguments, sample)

    def test_samples_are_what_is_printed(self):
        for name, source in {given for page in PAGES for given in GIVEN.findall(page.read_text())}:
            self.assertFalse((self.folder / name).exists(), f"two files are {name}")
            if (DATA / source).exists():
                shutil.copy(DATA / source, self.folder / name)
        for page in PAGES:
            self.check_page(page)
        self.assertGreater(self.compared, 3)


class Comparison(unittest.TestCase):
    SAMPLE = "782 operators -> 85 kernels, 355.4 us (22%)\n...\nlast, ...\n"

    def difference(self, printed):
        return first_difference(lines_of(self.SAMPLE), lines_of(printed))

    def test_times_and_omissions_agree(self):
        self.assertIsNone(self.difference("782 operators -> 85 kernels, 3.1 ms (7%)\nx\ny\nlast, z\n"))

    def test_counts_and_missing_lines_differ(self):
        first = "782 operators -> 85 kernels, 355.4 us (22%)\n"
        self.assertIn("86", self.difference(first.replace("85", "86") + "x\nlast, z\n"))
        self.assertIn("last", self.difference(first + "x\n"))
        self.assertIn("more is printed", self.difference(first + "last, z\nmore\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
