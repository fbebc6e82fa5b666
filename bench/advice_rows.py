"""A row of the benchmarks of advice (profile_advice.py, profile_ranks.py): seconds of a step of a faulty and of a repaired program, and the gain
that the profiler estimates for either."""

MOST_OFF = 1.5


def row_of(rule, before, after, estimated, left, evidence):
    gain = before - after
    return {"rule": rule, "us of a step": round(before * 1e6, 1), "repaired": round(after * 1e6, 1), "gain": round(gain * 1e6, 1),
            "estimated": round(estimated * 1e6, 1), "estimated, over the gain": round(estimated / gain, 3) if gain > 0 else None,
            "estimated of the repaired": round(left * 1e6, 1), "evidence": evidence}


def is_right(row):
    ratio = row["estimated, over the gain"]
    return ratio is not None and 1 / MOST_OFF <= ratio <= MOST_OFF and row["estimated of the repaired"] < row["estimated"]
