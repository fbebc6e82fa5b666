"""docs/reference/command-line.md names exactly the options that the command has, with their defaults, and its
variables; what other pages tell to type has no options that the command lacks.

usage: reference_test.py HEDDLE PAGE
"""
import pathlib
import re
import subprocess
import sys
import unittest

HEDDLE, PAGE = sys.argv[1], pathlib.Path(sys.argv[2])
COMMON = "Common options"
OF_MODELS = {"inspect", "run", "bench", "verify", "explain", "profile", "tune", "compile"}
TYPED = re.compile(r"^(?:[A-Z_]+=\S+ )*heddle ((?:kernel |profile (?=show|diff|merge))?[a-z]+ [^\n#]*)", re.MULTILINE)
NAME = re.compile(r"--?[a-zA-Z][-\w]*")


def help_of(command):
    return subprocess.run([HEDDLE, *command.split(), "--help"], capture_output=True, text=True, check=True).stdout


def part_of(text, title):
    """The indented lines below a title of the help."""
    return re.search(rf"^{title}:\n((?:  .*\n)*)", text, re.MULTILINE)


def commands(prefix=""):
    part = part_of(help_of(prefix), "Subcommands")
    if part is None:
        return [prefix]
    names = re.findall(r"^  (\w+)", part.group(1), re.MULTILINE)
    own = [prefix] if prefix and part_of(help_of(prefix), "Positionals") else []
    return own + [found for name in names for found in commands(f"{prefix} {name}".strip())]


def options(command):
    """Every name of an option -> its default, None where the help has none."""
    found = {}
    for line in part_of(help_of(command), "Options").group(1).splitlines():
        match = re.match(r"  (-[-\w,]+)(.*)", line)
        if match is None or "--help" in match.group(1):
            continue
        default = re.match(r" \w[^= ]*(?: in \[[^]]*\])?=(\S+)", match.group(2))
        for name in match.group(1).split(","):
            found[name] = default and default.group(1)
    return found


def sections():
    """Title -> {name of an option: the cell of its default}."""
    found = {}
    for part in PAGE.read_text().split("\n## ")[1:]:
        title, body = part.split("\n", 1)
        rows = [line.split(" | ") for line in body.splitlines() if line.startswith("| `")]
        found[title.removeprefix("heddle ")] = {
            name: row[1].strip(" `") for row in rows for name in NAME.findall(row[0]) if name.startswith("-")}
    return found


class Reference(unittest.TestCase):
    def test_every_option_is_named_and_no_other(self):
        page = sections()
        self.assertEqual(set(page) - {COMMON, "Environment"}, set(commands()))
        for command in commands():
            with self.subTest(command):
                named = {**(page[COMMON] if command in OF_MODELS else {}), **page[command]}
                self.assertEqual(set(named), set(options(command)))

    def test_defaults(self):
        page = sections()
        for command in commands():
            named = {**(page[COMMON] if command in OF_MODELS else {}), **page[command]}
            for name, default in options(command).items():
                with self.subTest(f"{command} {name}"):
                    if default is not None:
                        self.assertEqual(named.get(name), default)

    def test_every_command_has_an_example(self):
        for command in commands():
            self.assertRegex(PAGE.read_text(), rf"(?m)^heddle {command}( |$)")

    def test_commands_of_all_pages(self):
        root = PAGE.resolve().parents[2]
        seen = 0
        for page in [root / "README.md", *(root / "docs").rglob("*.md")]:
            for words in TYPED.findall(page.read_text()):
                words = words.split(" -- ")[0]  # what follows is another program's
                command = re.match(r"(?:kernel |profile (?=show|diff|merge))?\w+", words).group(0)
                if command not in commands():
                    continue  # prose
                seen += 1
                with self.subTest(f"{page.name}: heddle {words}"):
                    used = {word for word in re.sub(r'"[^"]*"', "", words).split() if NAME.fullmatch(word)}
                    self.assertLessEqual(used, set(options(command)))
        self.assertGreater(seen, 20)

    def test_variables(self):
        told = set(re.findall(r"HEDDLE_\w+", help_of("")))
        self.assertEqual(set(re.findall(r"^\| `(HEDDLE_\w+)`", PAGE.read_text(), re.MULTILINE)), told)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
