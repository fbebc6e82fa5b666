"""A graph compiled twice, with a rule and without it: what back_to_back.py and gated_products.py time in turns."""

import json
import subprocess
import sys


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def prepare(stem, text, rule, without, heddle, target, again=False):
    """The source, what was decided by the rule, and but for a CPU the plans with it and without; what is there is not made again."""
    source, facts = stem.with_suffix(".hir"), stem.with_suffix(".json")
    plans = [stem.with_suffix(".with.plan"), stem.with_suffix(".without.plan")]
    if not facts.exists() or again:
        source.write_text(text)
        if target != "cpu":
            for plan, flags in zip(plans, [[], without]):
                run(heddle, "compile", source, "--target", target, *flags, "-o", plan)
        decisions = json.loads(run(heddle, "explain", source, "--target", target, "--json"))["decisions"]
        facts.write_text(json.dumps([d for d in decisions if d["rule"] == rule]))
    return source, json.loads(facts.read_text()), plans
