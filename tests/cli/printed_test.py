"""The manual page and the completions, which the command prints, have every command and option of its help.

usage: printed_test.py HEDDLE
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HEDDLE = sys.argv[1]


def heddle(*arguments):
    return subprocess.run([HEDDLE, *arguments], capture_output=True, text=True, check=True).stdout


def part_of(text, title):
    found = re.search(rf"^{title}:\n((?:  .*\n)*)", text, re.MULTILINE)
    return found.group(1) if found else ""


def tree(*path):
    """Path of a command -> names of its options, for all commands; () is the command itself."""
    text = heddle(*path, "--help")
    names = [name for line in part_of(text, "Options").splitlines() if (match := re.match(r"  (-[-\w,]+)", line))
             for name in match.group(1).split(",")]
    found = {path: set(names)}
    for name in re.findall(r"^  (\w+)", part_of(text, "Subcommands"), re.MULTILINE):
        found |= tree(*path, name)
    return found


TREE = tree()
LEAVES = [path for path in TREE if not any(other[:-1] == path for other in TREE if other)]


class Manual(unittest.TestCase):
    PAGE = heddle("manual")

    def test_commands_with_their_options(self):
        page = self.PAGE.replace("\\-", "-")
        shared = re.search(r"\n\.SH SHARED OPTIONS\n(.*?)\n\.SH ", page, re.DOTALL).group(1)
        for path in LEAVES:
            section = re.search(rf"\n\.SS heddle {' '.join(path)}\n(.*?)(?=\n\.S[SH] )", page, re.DOTALL)
            self.assertIsNotNone(section, path)
            for name in TREE[path] - {"-h", "--help"}:
                with self.subTest(f"{path} {name}"):
                    described = rf"(?m)^\.TP\n.*\\fB{name}\\fR"
                    if not re.search(described, section.group(1)):
                        self.assertRegex(shared, described)
                        # A short name stands beside its long one.
                        self.assertRegex(section.group(1), "Shared options: .*" + (name if name[1] == "-" else ""))

    def test_variables(self):
        self.assertEqual(set(re.findall(r"HEDDLE_\w+", self.PAGE)), set(re.findall(r"HEDDLE_\w+", heddle("--help"))))

    @unittest.skipUnless(shutil.which("groff"), "there is no groff")
    def test_formatter_has_no_warnings(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww"], input=self.PAGE, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        self.assertIn("heddle run", done.stdout)


class Bash(unittest.TestCase):
    SCRIPT = heddle("completion", "bash")

    def complete(self, *words):
        """What pressing TAB behind the last word offers."""
        text = " ".join(f"'{word}'" for word in words)
        script = (f"{self.SCRIPT}\nCOMP_WORDS=({text}); COMP_CWORD={len(words) - 1}\n"
                  "_heddle; printf '%s\\n' \"${COMPREPLY[@]}\"")
        done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_commands(self):
        self.assertEqual(self.complete("heddle", ""), {path[0] for path in TREE if len(path) == 1})
        self.assertEqual(self.complete("heddle", "kernel", ""), {"attention", "b2b", "conv", "gemm", "packed"})
        self.assertEqual(self.complete("heddle", "dev"), {"devices"})

    def test_options_of_every_command(self):
        for path, names in TREE.items():
            with self.subTest(path):
                self.assertEqual(self.complete("heddle", *path, "-"), names)
        self.assertEqual(self.complete("heddle", "run", "model.onnx", "--target", "cuda", "--prec"), {"--precision"})

    def test_values(self):
        self.assertEqual(self.complete("heddle", "run", "--precision", "f"), {"f32", "f16"})
        self.assertEqual(self.complete("heddle", "run", "--precision", "=", "b"), {"bf16"})
        self.assertEqual(self.complete("heddle", "run", "--precision", "="), {"f32", "tf32", "f16", "bf16"})
        self.assertEqual(self.complete("heddle", "cache", ""), {"info", "clear"})
        self.assertEqual(self.complete("heddle", "zoo", "resnet"), {"resnet18", "resnet50"})
        self.assertEqual(self.complete("heddle", "run", "--threads", ""), set())

    def test_files(self):
        with tempfile.NamedTemporaryFile(suffix=".onnx") as model:
            for words in (["run"], ["run", "--input", "x", "="], ["compile", "m.onnx", "-o"]):
                with self.subTest(words):
                    self.assertEqual(self.complete("heddle", *words, model.name[:-2]), {model.name})


class OtherShells(unittest.TestCase):
    """Every command and option is there, and where the shell is installed it reads the script."""

    def check(self, shell, pattern):
        script = heddle("completion", shell)
        for name in set().union(*TREE.values()):
            with self.subTest(name):
                self.assertRegex(script, pattern(name))
        if shutil.which(shell):
            done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_zsh(self):
        self.check("zsh", lambda name: rf"[ {{,(']{re.escape(name)}[=+,}}')\[]")

    def test_fish(self):
        self.check("fish", lambda name: rf" -{'l' if name[1] == '-' else 's'} {name.lstrip('-')} ")

    @unittest.skipUnless(shutil.which("fish"), "there is no fish")
    def test_fish_completes(self):
        lines = {"heddle ": {path[0] for path in TREE if len(path) == 1}, "heddle zoo resnet": {"resnet18", "resnet50"},
                 "heddle run --precision ": {"f32", "tf32", "f16", "bf16"}, "heddle run --threads ": set()}
        lines |= {f"heddle {' '.join(path)} -": TREE[path] for path in LEAVES}
        with tempfile.TemporaryDirectory() as folder:
            script = heddle("completion", "fish") + "".join(f"echo '# {line}'; complete -C '{line}'\n" for line in lines)
            done = subprocess.run(["fish", "--no-config"], input=script, capture_output=True, text=True, cwd=folder,
                                  env={**os.environ, "HOME": folder})
        self.assertEqual(done.stderr, "")
        for part in done.stdout.removeprefix("# ").split("\n# "):
            line, *offered = part.splitlines()
            with self.subTest(line):
                self.assertEqual({words.split("\t")[0] for words in offered}, lines[line])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
