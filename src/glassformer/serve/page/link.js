// What a link to this page asks for: #en-fr&q=TEXT, and with &inside= the inside of the model, with its settings.

const asked = new URLSearchParams(location.hash.slice(1));

/** The text; null if there is none. */
export const linkedText = asked.get("q");

const isIndex = (x) => Number.isInteger(x) && x >= 0;
const isHead = (x) => Array.isArray(x) && ["encoder", "decoder", "cross"].includes(x[0]) && isIndex(x[1]) && isIndex(x[2]);
const LIMITS = { beam: [1, 12], alpha: [0, 2] }; // of the sliders
const isSearch = ([name, x]) => name in LIMITS && x >= LIMITS[name][0] && x <= LIMITS[name][1] && (name !== "beam" || isIndex(x));

/** The settings of the inside: heads that are switched off, the search, the head that is shown, and the domain; undefined if it is not asked for. */
export const linkedInside = settings(asked.get("inside"));

/** @param {string | null} text @returns {InsideBegin | undefined} */
function settings(text) {
  if (text === null) return undefined;
  try {
    const { off = [], search, view, tag } = JSON.parse(text || "{}");
    const { kind, layer, head } = view ?? {};
    const isView = isHead([kind, layer, ["mean", "roll-out"].includes(head) ? 0 : head]);
    return {
      wanted: { off: [off].flat().filter(isHead), search: Object.fromEntries(Object.entries(search ?? {}).filter(isSearch)) },
      view: isView ? { kind, layer, head } : undefined,
      tag: typeof tag === "string" ? tag : "",
    };
  } catch { // not of this page
    return { wanted: { off: [], search: {} } };
  }
}

/**
 * The address of this page with a text and the settings of the inside.
 * @param {string} text @param {InsideBegin} settings
 */
export function linkTo(text, { wanted, view, tag }) {
  const inside = JSON.stringify({ ...wanted, view, tag });
  const [pair] = /^#[\w-]+-\w+/.exec(location.hash) ?? [];
  return `${location.href.split("#")[0]}${pair ? `${pair}&` : "#"}${new URLSearchParams({ q: text, inside })}`;
}

/** From now on, the address has no text, so that a reload keeps what is edited. The languages stay in it. */
export function forgetLink() {
  const [first] = location.hash.slice(1).split("&");
  const pair = first.includes("=") ? "" : first;
  history.replaceState(null, "", `${location.pathname}${location.search}${pair && `#${pair}`}`);
}

addEventListener("hashchange", () => location.reload());
