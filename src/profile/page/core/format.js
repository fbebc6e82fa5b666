// Numbers and names as text.

// Control characters, characters that reorder or break lines, and halves of surrogate pairs.
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** `text` as one line that shows what it holds and does not obey it. */
export function printable(text) {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
}

function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

/** `value` in the largest of `units` in which it is at least one. */
function scaled(value, units, step) {
  let unit = 0;
  let rest = value;
  while (unit + 1 < units.length && Math.abs(rest) >= step * 0.9995) {
    rest /= step;
    unit++;
  }
  return { text: unit === 0 && Number.isInteger(rest) ? String(rest) : digits(rest), unit: units[unit] };
}

const UNITS = {
  ns: { names: ["ns", "µs", "ms", "s"], step: 1000 },
  bytes: { names: ["B", "KB", "MB", "GB", "TB"], step: 1000 },
  "flop/s": { names: ["FLOP/s", "KFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"], step: 1000 },
  "bytes/s": { names: ["B/s", "KB/s", "MB/s", "GB/s", "TB/s"], step: 1000 },
  flop: { names: ["FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"], step: 1000 },
};

/** "1.24 ms"; an unknown unit counts things. */
export function quantity(value, unit) {
  const known = UNITS[unit];
  if (!known) return grouped(value) + (unit ? ` ${unit}` : "");
  const { text, unit: name } = scaled(value, known.names, known.step);
  return `${text} ${name}`;
}

/** An integer with its thousands apart: 1 234 567, exact. */
export function grouped(value) {
  if (!Number.isInteger(value)) return digits(value);
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** All digits, with the unit: for hints. */
export function exact(value, unit) {
  return `${grouped(value)}${unit ? ` ${unit}` : ""}`;
}

export function signed(value, unit) {
  return value > 0 ? `+${quantity(value, unit)}` : quantity(value, unit);
}

/** "12.3%"; "-" where there is no whole. */
export function percent(part, whole) {
  if (whole === 0) return "-";
  const share = (100 * part) / whole;
  return `${Math.abs(share) >= 99.95 || share === 0 ? share.toFixed(0) : Math.abs(share) < 0.1 ? share.toFixed(2) : share.toFixed(1)}%`;
}

/** How a value grew: "+12.5%", "new", "gone". */
export function growth(now, before) {
  if (before === 0) return now === 0 ? "-" : "new";
  if (now === 0) return "gone";
  const share = now / before - 1;
  return `${share > 0 ? "+" : ""}${(100 * share).toFixed(1)}%`;
}

/** The last part of a path. */
function baseName(path) {
  return path.slice(path.lastIndexOf("/") + 1) || path;
}

/** "train.py:40", or "" where the frame has no file. */
export function place(frames, frame) {
  const { file, line } = frames;
  if (frame < 0 || !file[frame]) return "";
  return printable(baseName(file[frame])) + (line[frame] > 0 ? `:${line[frame]}` : "");
}

/** What a frame is called. */
export function frameName(frames, frame) {
  return printable(frames.name[frame]) || (frames.kind[frame] === "root" ? "whole run" : `<${printable(frames.kind[frame])}>`);
}
