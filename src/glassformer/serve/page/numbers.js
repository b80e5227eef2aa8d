// Numbers as the command line writes them.

/**
 * A number with four decimals; with more if the lowest and the highest are that close together. Counterpart:
 * tasks/regression.py.
 * @param {number} value @param {number} low @param {number} high
 */
export function written(value, low, high) {
  return value.toFixed(Math.max(4, 3 - Math.floor(Math.log10(high - low))));
}
