// The glossaries and translation memories of the server, and the domains of the model, of which translations can use one each.

import { el } from "./elements.js";
import { local } from "./storage.js";
import { t } from "./strings.js";

const OF_MACHINE = "back-translated"; // a tag of text for the training, which is no domain

/**
 * A field with its label.
 * @param {string} label @param {string[][]} rows @param {Record<string, any>} more
 */
export function choice(label, rows, more = {}) {
  return el("label", { class: "choice" }, label, el("select", { "aria-label": label, ...more }, rows.map(([value, text]) => el("option", { value }, text))));
}

/**
 * Fill a field with names; without any it is hidden.
 * @param {HTMLElement} node @param {HTMLSelectElement} select @param {string[]} names
 * @param {string | null} chosen by the user last, or by a link
 */
function offer(node, select, names, chosen) {
  select.replaceChildren(...["", ...names].map((value) => el("option", { value }, value || "—")));
  select.value = names.find((each) => each === chosen) ?? "";
  node.hidden = !names.length;
}

/** Fields for what server and model have; `changed` is called when the user chooses. */
export class Choices {
  /** @param {Settings} settings @param {() => void} changed */
  constructor({ glossaries = [], memories = [] }, changed) {
    /** @type {string | undefined} */
    this.linkedTag = undefined;
    /** @type {["glossary" | "memory" | "tag", string[]][]} */
    const rows = [["glossary", glossaries], ["memory", memories], ["tag", []]];
    /** @type {[name: string, node: HTMLElement, select: HTMLSelectElement][]} */
    this.selects = rows.map(([name, names]) => {
      const node = choice(t(`${name}Choice`), [], { id: `${name}-name` });
      const select = node.querySelector("select");
      select.addEventListener("change", () => {
        if (name === "tag") this.linkedTag = undefined;
        local.set(name, select.value);
        changed();
      });
      offer(node, select, names, local.get(name));
      return [name, node, select];
    });
    this.node = el("div", { class: "choices" }, this.selects.map(([, node]) => node));
    this.showTags([]);
  }

  /**
   * Offer the domains of a model.
   * @param {string[]} tags
   */
  showTags(tags) {
    const [name, node, select] = this.selects.at(-1);
    offer(node, select, tags.filter((tag) => tag !== OF_MACHINE), this.linkedTag ?? local.get(name));
    this.node.hidden = this.selects.every(([, node]) => node.hidden);
  }

  /**
   * Choose a domain, if the model has it, until the user chooses another.
   * @param {string} [tag]
   */
  chooseTag(tag = "") {
    this.linkedTag = tag;
  }

  /**
   * The fields of a request.
   * @returns {Record<string, string>}
   */
  get fields() {
    return Object.fromEntries(this.selects.map(([name, , select]) => [name, select.value]).filter(([, value]) => value));
  }
}
