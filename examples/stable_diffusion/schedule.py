"""The noise schedules of diffusion models as a table with one row of coefficients for each step.

For a network that predicts the noise or the velocity, a step of DDIM (without added noise) and one of Euler's method are
linear in the latents x and the prediction p:

    p = network(input_scale * x, time);  x = keep * x + move * p

So one graph serves both, and a table is all that differs.
"""
import json
import pathlib
from dataclasses import dataclass

import numpy as np

NAMES = ("ddim", "euler")
TRAINED_STEPS = 1000


class WrongSchedule(ValueError):
    """A scheduler_config.json that these schedules cannot follow."""


@dataclass(frozen=True)
class Schedule:
    rows: np.ndarray  # [steps, 4] f32: time, input_scale, keep, move
    first_scale: float  # standard deviation of the noise that the first step begins with


def read(path):
    """The settings of a scheduler_config.json, checked."""
    settings = json.loads(pathlib.Path(path).read_text())
    for name, known in (("prediction_type", ("epsilon", "v_prediction")),
                        ("beta_schedule", ("linear", "scaled_linear")),
                        ("timestep_spacing", ("leading", "linspace", "trailing"))):
        if settings.get(name, known[0]) not in known:
            raise WrongSchedule(f"{path}: {name} is {settings[name]!r}; known: {', '.join(known)}")
    if settings.get("num_train_timesteps", TRAINED_STEPS) != TRAINED_STEPS:
        raise WrongSchedule(f"{path}: num_train_timesteps is {settings['num_train_timesteps']}, not {TRAINED_STEPS}")
    if settings.get("trained_betas") is not None:
        raise WrongSchedule(f"{path}: trained_betas are set, which is not supported")
    for name in ("clip_sample", "thresholding", "rescale_betas_zero_snr"):
        if settings.get(name):
            raise WrongSchedule(f"{path}: {name} is set, which makes steps that are not linear")
    return settings


def require_steps(steps):
    if not 1 <= steps <= TRAINED_STEPS:
        raise WrongSchedule(f"{steps} steps: between 1 and {TRAINED_STEPS} are possible")


def make(name, settings, steps):
    require_steps(steps)
    kept = _kept_signal(settings)
    return (_ddim if name == "ddim" else _euler)(settings, kept, steps)


def _kept_signal(settings):
    """The share of the signal's variance that is left after each step of the training."""
    ends = settings.get("beta_start", 0.0001), settings.get("beta_end", 0.02)
    if settings.get("beta_schedule", "linear") == "scaled_linear":
        betas = np.linspace(ends[0] ** 0.5, ends[1] ** 0.5, TRAINED_STEPS) ** 2
    else:
        betas = np.linspace(*ends, TRAINED_STEPS)
    return np.cumprod(1 - betas)


def _times(settings, default_spacing, steps):
    spacing = settings.get("timestep_spacing", default_spacing)
    if spacing == "linspace":
        return np.linspace(0, TRAINED_STEPS - 1, steps)[::-1]
    if spacing == "leading":
        return (np.arange(steps) * (TRAINED_STEPS // steps))[::-1] + float(settings.get("steps_offset", 0))
    return np.round(np.arange(TRAINED_STEPS, 0, -TRAINED_STEPS / steps))[:steps] - 1.0


def _ddim(settings, kept, steps):
    times = np.round(_times(settings, "leading", steps))
    before = times - TRAINED_STEPS // steps
    now = kept[times.astype(int).clip(0, TRAINED_STEPS - 1)]
    last = 1.0 if settings.get("set_alpha_to_one", True) else kept[0]
    after = np.where(before >= 0, kept[before.astype(int).clip(0, TRAINED_STEPS - 1)], last)
    signal, noise, next_signal, next_noise = np.sqrt(now), np.sqrt(1 - now), np.sqrt(after), np.sqrt(1 - after)
    if settings.get("prediction_type", "epsilon") == "epsilon":
        keep, move = next_signal / signal, next_noise - next_signal * noise / signal
    else:
        keep, move = next_signal * signal + next_noise * noise, next_noise * signal - next_signal * noise
    return Schedule(_table(times, np.ones(steps), keep, move), 1.0)


def _euler(settings, kept, steps):
    for name, plain in (("use_karras_sigmas", False), ("use_exponential_sigmas", False), ("use_beta_sigmas", False),
                        ("interpolation_type", "linear"), ("final_sigmas_type", "zero"), ("timestep_type", "discrete")):
        if (settings.get(name) or plain) != plain:
            raise WrongSchedule(f"{name} is {settings[name]!r}; supported: {plain!r}")
    times = _times(settings, "linspace", steps)
    sigmas = np.append(np.interp(times, np.arange(TRAINED_STEPS), np.sqrt((1 - kept) / kept)), 0.0)
    sigma, change = sigmas[:-1], np.diff(sigmas)
    square = sigma**2 + 1
    if settings.get("prediction_type", "epsilon") == "epsilon":
        keep, move = np.ones(steps), change
    else:
        keep, move = 1 + change * sigma / square, change / np.sqrt(square)
    leading = settings.get("timestep_spacing", "linspace") == "leading"
    first = np.sqrt(sigma[0] ** 2 + 1) if leading else sigma[0]
    return Schedule(_table(times, 1 / np.sqrt(square), keep, move), float(first))


def _table(*columns):
    return np.stack(columns, axis=1).astype(np.float32)
