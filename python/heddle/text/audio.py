"""Recordings, and the log-mel spectra that Whisper reads."""
import pathlib
import wave
from typing import Any, Tuple

import numpy as np

from heddle import _hir
from heddle._options import refuse
from heddle.text.folder import missing


def read_wav(path: pathlib.Path, rate: int) -> np.ndarray:
    """Samples f32[n] in [-1, 1] at `rate` per second: the mean of the channels of a WAV file of whole numbers."""
    if not path.is_file():
        missing(path, "Give a WAV file")
    try:
        with wave.open(str(path), "rb") as file:
            channels, width, given = file.getnchannels(), file.getsampwidth(), file.getframerate()
            content = file.readframes(file.getnframes())
    except (wave.Error, EOFError, OSError) as reason:
        refuse(str(path), f"the file cannot be read as WAV of whole numbers: {reason}", f"Convert it: `ffmpeg -i FILE -ar {rate} -ac 1 new.wav`")
    if given < 1 or width > 4 or channels < 1:
        refuse(str(path), f"it has {channels} channels of {8 * width} bits at {given} Hz", f"Convert it: `ffmpeg -i FILE -ar {rate} -ac 1 new.wav`")
    parts = np.frombuffer(content[:len(content) // (width * channels) * (width * channels)], np.uint8).reshape(-1, width)
    if width == 1:  # without a sign
        samples = (parts[:, 0].astype(np.float64) - 128) / 128
    else:
        words = np.zeros((len(parts), 4), np.uint8)
        words[:, 4 - width:] = parts
        samples = words.view("<i4")[:, 0] / float(1 << 31)
    return _resampled(samples.reshape(-1, channels).mean(1), given, rate).astype(np.float32)


def _resampled(samples: np.ndarray, given: int, rate: int) -> np.ndarray:
    """Band-limited: the frequencies that both rates have."""
    if given == rate or len(samples) == 0:
        return samples
    count = max(1, round(len(samples) * rate / given))
    return np.fft.irfft(np.fft.rfft(samples)[:count // 2 + 1], count) * (count / len(samples))


def _mel_of(hertz: np.ndarray) -> np.ndarray:
    """Slaney's scale: linear up to 1 kHz, logarithmic above."""
    linear = hertz * 3 / 200
    return np.where(hertz < 1000, linear, 15 + np.log(np.maximum(hertz, 1000) / 1000) * 27 / np.log(6.4))


def _hertz_of(mel: np.ndarray) -> np.ndarray:
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * np.log(6.4) / 27))


def mel_filters(bands: int, window: int, rate: int) -> np.ndarray:
    """f64[bands, window / 2 + 1]: triangles of equal area on the mel scale up to half the rate."""
    frequencies = np.linspace(0, rate / 2, window // 2 + 1)
    corners = _hertz_of(np.linspace(0, _mel_of(np.array(rate / 2)), bands + 2))
    rising = (frequencies - corners[:-2, None]) / np.diff(corners)[:-1, None]
    falling = (corners[2:, None] - frequencies) / np.diff(corners)[1:, None]
    return np.maximum(0, np.minimum(rising, falling)) * (2 / (corners[2:] - corners[:-2]))[:, None]


def spectrum(batch: int, samples: int, bands: int, window: int, hop: int, rate: int) -> Tuple[str, Any]:
    """A graph (samples f32[batch, samples]) -> features f32[batch, bands, samples / hop], and its constants.

    Logarithms of the energies in mel bands of windows of `window` samples every `hop`, limited to 8 decades below the highest.
    """
    frames, bins = samples // hop, window // 2 + 1
    phase = 2 * np.pi * np.outer(np.arange(bins), np.arange(window)) / window
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    waves = np.concatenate([np.cos(phase), np.sin(phase)]) * hann
    constants = {"waves": waves[:, None].astype(np.float32), "filters": mel_filters(bands, window, rate).astype(np.float32)}
    w = _hir.Writer()
    given = w.parameter("f32", (batch, samples), "samples")
    filters = w.parameter("f32", (2 * bins, 1, window), "waves")
    triangles = w.parameter("f32", (bands, bins), "filters")
    # The last frame of the padded samples is left out.
    half, rows = window // 2, (batch, 1, samples + window)
    padded = w.emit("pad", [w.emit("reshape", [given], "f32", (batch, 1, samples), shape=[batch, 1, samples]), w.constant(0, "f32")], "f32", rows,
                    low=[0, 0, half], high=[0, 0, half], mode="reflect")
    count = samples // hop + 1
    parts = w.emit("conv", [padded, filters], "f32", (batch, 2 * bins, count), strides=[hop], low=[0], high=[0], dilations=[1],
                   lhs_dilations=[1], groups=1, layout="nchw")
    squares = w.emit("mul", [parts, parts], "f32", parts.shape)
    halves = [w.emit("slice", [squares], "f32", (batch, bins, frames), starts=[0, at, 0], limits=[batch, at + bins, frames], strides=[1, 1, 1])
              for at in (0, bins)]
    power = w.emit("add", halves, "f32", halves[0].shape)
    mel = w.emit("dot", [triangles, power], "f32", (bands, batch, frames), lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1])
    mel = w.emit("transpose", [mel], "f32", (batch, bands, frames), perm=[1, 0, 2])
    shape = mel.shape
    decades = w.emit("mul", [w.emit("log", [w.emit("max", [mel, w.constant(1e-10, "f32", shape)], "f32", shape)], "f32", shape),
                             w.constant(1 / np.log(10), "f32", shape)], "f32", shape)
    highest = w.emit("reduce", [decades], "f32", (batch,), kind="max", dims=[1, 2])
    least = w.emit("sub", [highest, w.constant(8, "f32", (batch,))], "f32", (batch,))
    limited = w.emit("max", [decades, w.emit("broadcast", [least], "f32", shape, shape=list(shape), dims=[0])], "f32", shape)
    features = w.emit("mul", [w.emit("add", [limited, w.constant(4, "f32", shape)], "f32", shape), w.constant(0.25, "f32", shape)], "f32", shape)
    return w.text([features], ["features"]), constants
