// What a link to this page asks for: #en-fr&q=TEXT, and with &inside= the inside of the model, with its settings.

const asked = new URLSearchParams(location.hash.slice(1));

/** The text; null if there is none. */
export const linkedText = asked.get("q");

const isHead = (x) => Array.isArray(x) && ["encoder", "decoder", "cross"].includes(x[0]) && [x[1], x[2]].every(Number.isInteger);
const numbers = (x = {}) => Object.fromEntries(["beam", "alpha"].filter((name) => Number.isFinite(x?.[name])).map((name) => [name, x[name]]));

/** The settings of the inside: heads that are switched off, the search, and the head that is shown; undefined if it is not asked for. */
export const linkedInside = settings(asked.get("inside"));

function settings(text) {
  if (text === null) return undefined;
  try {
    const { off = [], search, view } = JSON.parse(text || "{}");
    const { kind, layer, head } = view ?? {};
    const isView = isHead([kind, layer, Number.isInteger(head) ? head : 0]);
    return { wanted: { off: [off].flat().filter(isHead), search: numbers(search) }, view: isView ? { kind, layer, head } : undefined };
  } catch { // not of this page
    return { wanted: { off: [], search: {} } };
  }
}

/** The address of this page with a text and the settings of the inside. */
export function linkTo(text, { wanted, view }) {
  const inside = JSON.stringify({ ...wanted, view });
  const [pair] = /^#[\w-]+-\w+/.exec(location.hash) ?? [];
  return `${location.href.split("#")[0]}${pair ? `${pair}&` : "#"}${new URLSearchParams({ q: text, inside })}`;
}

addEventListener("hashchange", () => location.reload());
