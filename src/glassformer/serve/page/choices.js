// The glossaries and translation memories of the server, of which translations can use one each.

import { el } from "./elements.js";
import { local } from "./storage.js";
import { t } from "./strings.js";

/** A field with its label. */
export function choice(label, rows, more = {}) {
  return el("label", { class: "choice" }, label, el("select", { "aria-label": label, ...more }, rows.map(([value, text]) => el("option", { value }, text))));
}

/** Fields for what the server has; `changed` is called when the user chooses. */
export class Choices {
  constructor({ glossaries = [], memories = [] }, changed) {
    const rows = [["glossary", glossaries], ["memory", memories]].filter(([, names]) => names.length);
    this.selects = rows.map(([name, names]) => {
      const node = choice(t(`${name}OfServer`), [["", "—"], ...names.map((each) => [each, each])], { id: `${name}-name` });
      const select = node.querySelector("select");
      select.value = names.find((each) => each === local.get(name)) ?? "";
      select.addEventListener("change", () => { local.set(name, select.value); changed(); });
      return [name, node, select];
    });
    this.node = el("div", { class: "choices", hidden: !rows.length }, this.selects.map(([, node]) => node));
  }

  /** The fields of a request. */
  get fields() {
    return Object.fromEntries(this.selects.map(([name, , select]) => [name, select.value]).filter(([, value]) => value));
  }
}
