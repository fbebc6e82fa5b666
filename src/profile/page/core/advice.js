// Advice, one entry for what a rule says of several places.

/**
 * Entries with one rule, remedy and confidence are one group: gains of a rule are of different times and add up. Groups
 * and the places within them are in order of their gains.
 * @param {Object[]} advice  as decode() gives it
 * @returns {{rule: string, remedy: string, confidence: string, gain: number, share: number, places: Object[]}[]}
 */
export function groupedAdvice(advice) {
  const groups = new Map();
  for (const entry of advice) {
    const { rule, remedy, confidence } = entry;
    const key = JSON.stringify([rule, remedy, confidence]);
    const group = groups.get(key) ?? { rule, remedy, confidence, gain: 0, share: 0, places: [] };
    group.gain += entry.gain;
    group.share += entry.share;
    group.places.push(entry);
    groups.set(key, group);
  }
  const byGain = (a, b) => b.gain - a.gain;
  for (const group of groups.values()) group.places.sort(byGain);
  return [...groups.values()].sort(byGain);
}
